//! A test in a process of its own, and what there is to be read about a process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Says to a process that it is the one in which a test is alone.
const ALONE: &str = "SHARDWHEEL_ALONE";

/// How long such a process may take, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs `work` in a process in which nothing else happens: this test's binary, with this one test. `name` is the
/// test's, with its module's.
pub(crate) fn alone(name: &str, work: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        return work();
    }
    let program = std::env::current_exe().expect("the test's own binary");
    let mut command = Command::new(program);
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(ALONE, name);
    let mut child = command.stdout(Stdio::null()).spawn().expect("a further process");
    let status = wait(&mut child);
    assert!(status.success(), "{name}: {status}");
}

fn wait(child: &mut Child) -> std::process::ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return status;
        }
        if begin.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("it hangs");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Resident memory of this process, in bytes.
#[cfg(target_os = "linux")]
pub(crate) fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    4096 * pages.expect("the second number is that of resident pages")
}

/// How many threads this process has.
#[cfg(target_os = "linux")]
pub(crate) fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").expect("Linux has it").count()
}

/// How many mappings this process has.
#[cfg(target_os = "linux")]
pub(crate) fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").expect("Linux has it").lines().count()
}

/// Bytes that the process has allocated and not given back.
pub(crate) fn held() -> isize {
    HELD.load(Ordering::Relaxed)
}

struct Counting;

static HELD: AtomicIsize = AtomicIsize::new(0);

fn add(bytes: usize) {
    HELD.fetch_add(bytes as isize, Ordering::Relaxed);
}

fn remove(bytes: usize) {
    HELD.fetch_sub(bytes as isize, Ordering::Relaxed);
}

// SAFETY: all is passed on to the system's allocator as it is; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        remove(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        remove(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
