//! Tests that run in a process of their own, and what the system says about a process.

use std::any::type_name;
use std::env;
use std::io::Read;
use std::panic;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::waiting::{LIMIT, until};

/// Names the test that a process was started for.
const CHILD: &str = "SHARDWHEEL_CHILD";

/// How long a process may run whose test measures time or memory.
const LONG: Duration = Duration::from_secs(300);

/// Runs the calling test, whose closure is `body`, in a process of its own, which must neither
/// abort nor hang.
pub(crate) fn survives<F: FnOnce()>(body: F) {
    // With one test thread the test would run on the main thread, whose end ends the process.
    survives_in(this_binary(), 2, LIMIT, body);
}

/// Runs the calling test in a process of its own, in which nothing else happens: what the system
/// says about the process then belongs to the test.
pub(crate) fn alone<F: FnOnce()>(body: F) {
    survives_in(this_binary(), 1, LONG, body);
}

/// Runs the calling test in a process that `command` starts, with that number of test threads; it
/// must succeed within `limit`.
pub(crate) fn survives_in<F: FnOnce()>(command: Command, threads: usize, limit: Duration, body: F) {
    survives_as::<F>(command, threads, limit, body);
}

/// The same. The calling test is the one whose closure is an `F`.
pub(crate) fn survives_as<F>(mut command: Command, threads: usize, limit: Duration, body: impl FnOnce()) {
    let test = test_name::<F>();
    if env::var(CHILD).is_ok_and(|child| child == test) {
        // A panic during another panic would print a backtrace, which takes seconds under a sanitizer.
        panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
        return body();
    }
    command.args([test, "--exact", "--nocapture", &format!("--test-threads={threads}")]).env(CHILD, test);
    let output = output_within(limit, command);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{test}: {}\n{errors}", output.status);
}

/// The program that runs this target's tests, under the emulator that `SHARDWHEEL_EMULATOR` names, if
/// any.
pub(crate) fn this_binary() -> Command {
    let file = env::current_exe().expect("a test has a file");
    let emulator = env::var("SHARDWHEEL_EMULATOR").unwrap_or_default();
    let mut words = emulator.split_whitespace();
    let Some(program) = words.next() else { return Command::new(file) };
    let mut command = Command::new(program);
    command.args(words).arg(file);
    command
}

/// The name of the test whose closure is an `F`.
fn test_name<F>() -> &'static str {
    let closure = type_name::<F>().trim_end_matches("::{{closure}}");
    closure.split_once("::").expect("a test of a module").1
}

/// Runs a process to its end. A process that does not end within `limit` is killed, and the test
/// fails.
fn output_within(limit: Duration, mut command: Command) -> Output {
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a process can be started");
    let mut stderr = child.stderr.take().expect("standard error is a pipe");
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        drop(stderr.read_to_end(&mut text));
        text
    });
    let begin = Instant::now();
    let mut is_killed = false;
    let status = loop {
        if let Some(status) = child.try_wait().expect("the process is a child") {
            break status;
        }
        if begin.elapsed() > limit && !is_killed {
            child.kill().expect("the process is a child");
            is_killed = true;
        }
        thread::sleep(Duration::from_millis(2));
    };
    let stderr = reader.join().expect("reading does not panic");
    assert!(!is_killed, "process {} hangs:\n{}", child.id(), String::from_utf8_lossy(&stderr));
    Output { status, stdout: Vec::new(), stderr }
}

/// A number of `/proc/self/statm`, in bytes.
fn statm(nth: usize) -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = statm.split(' ').nth(nth).and_then(|pages| pages.parse::<usize>().ok());
    4096 * pages.expect("a number of pages")
}

/// Bytes that this process has mapped.
pub(crate) fn mapped() -> usize {
    statm(0)
}

/// Resident memory of this process, in bytes.
pub(crate) fn resident() -> usize {
    statm(1)
}

/// How many threads this process has.
pub(crate) fn number_of_threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("Linux has it").count()
}

/// How many mappings this process has.
pub(crate) fn number_of_mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").expect("Linux has it").lines().count()
}

/// The names of this process's threads that start with `prefix`, sorted. The system cuts long
/// names. Returns none where the system has no list of threads. (Under Wine, a program finds the
/// folders of Linux.)
pub(crate) fn threads_named(prefix: &str) -> Option<Vec<String>> {
    let tasks = cfg!(target_os = "linux").then(|| std::fs::read_dir("/proc/self/task").ok())??;
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    let names = tasks.filter_map(|task| task.ok().and_then(name)).map(|name| name.trim_end().to_owned());
    let mut names: Vec<_> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort_unstable();
    Some(names)
}

/// Checks the number of threads with that name. The system lists a thread for a moment after it was
/// joined.
pub(crate) fn are_threads(prefix: &str, count: usize) {
    let named = || threads_named(prefix);
    until("the number of threads is right", || named().is_none_or(|names| names.len() == count));
}
