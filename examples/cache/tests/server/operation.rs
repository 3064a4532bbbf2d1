use std::io::Read;
use std::process::{Command, Stdio};

use super::TWO;
use super::support::Server;
use super::support::client::Value;

#[test]
fn the_program_says_its_version() {
    let output = Command::new(env!("CARGO_BIN_EXE_cache")).arg("--version").output().expect("it ran");
    let version = concat!("cache ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), version);
}

/// The password comes from a file or the environment, and no other user can see it.
#[test]
fn the_password_is_not_in_the_list_of_processes() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("password");
    std::fs::write(&file, "secret\n").expect("a file");
    let path = file.to_str().expect("a path");
    for (args, variables) in [
        (&["--threads", "2", "--requirepass-file", path][..], &[][..]),
        (TWO, &[("CACHE_REQUIREPASS", "secret")]),
        (&["--requirepass-file", path], &[("CACHE_REQUIREPASS", "other")]),
    ] {
        let server = Server::cache_in(args, variables);
        let mut client = server.connect();
        assert_eq!(client.run("GET a"), Value::Error("NOAUTH Authentication required.".into()));
        assert_eq!(client.run("AUTH secret").text(), "OK");
        let line = std::fs::read(format!("/proc/{}/cmdline", server.process.id())).expect("its arguments");
        assert!(!line.windows(6).any(|it| it == b"secret"));
    }
    std::fs::write(&file, "\n").expect("a file");
    let mut program = Command::new(env!("CARGO_BIN_EXE_cache"));
    let output = program.args(["--requirepass-file", path]).output().expect("it ran");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the file is empty"));
}

/// By default the system places the threads, of which there is one for every two cores; with `--pin` each has
/// a core.
#[test]
fn threads_have_cores_only_if_told() {
    let cores = |id: &str| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("a status");
        let list =
            status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("its cores");
        list.trim().to_owned()
    };
    let threads = |args: &[&str]| -> Vec<String> {
        let server = Server::cache(args);
        // A thread that serves a client has been placed before.
        (0..4).for_each(|_| assert_eq!(server.connect().run("PING").text(), "PONG"));
        let process = server.process.id();
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("its threads");
        let ids = tasks.map(|task| task.expect("a thread").file_name().into_string().expect("a number"));
        let is_worker = |id: &String| {
            std::fs::read_to_string(format!("/proc/{process}/task/{id}/comm"))
                .is_ok_and(|it| it.starts_with("cache-"))
        };
        ids.filter(is_worker).map(|id| cores(&format!("{process}/task/{id}"))).collect()
    };
    let (all, number) = (cores("self"), std::thread::available_parallelism().expect("cores").get());
    assert_eq!(threads(&[]), vec![all.clone(); (number / 2).max(1)]);
    assert_eq!(threads(&["--threads", "3"]), vec![all; 3]);
    let mut pinned = threads(&["--threads", "2", "--pin"]);
    assert!(number == 1 || pinned.iter().all(|it| it.parse::<usize>().is_ok()), "{pinned:?}");
    pinned.dedup();
    assert_eq!(pinned.len(), 2.min(number));
}

/// What the program says of itself at an address, and how many connections its listener keeps waiting.
fn start(address: &str, args: &[&str]) -> (String, String) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_cache"))
        .args(["--threads", "1", "--listen", address])
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut output = [0; 64];
    let len = process.stdout.as_mut().expect("its output").read(&mut output).expect("a line");
    process.kill().expect("killed");
    let mut errors = String::new();
    process.stderr.take().expect("its errors").read_to_string(&mut errors).expect("text");
    process.wait().expect("its end");
    (String::from_utf8_lossy(&output[..len]).into_owned(), errors)
}

#[test]
fn a_name_is_an_address_and_an_open_door_is_a_warning() {
    let (output, errors) = start("localhost:0", &[]);
    assert!(output.starts_with("listening on 127.0.0.1:") && errors.is_empty(), "{output}{errors}");
    let (_, errors) = start("0.0.0.0:0", &[]);
    assert!(errors.starts_with("warning: 0.0.0.0:") && errors.contains("no password"), "{errors}");
    let (_, errors) = start("0.0.0.0:0", &["--requirepass", "secret"]);
    assert_eq!(errors, "");
}

/// A burst of clients waits in the listener while the server does something else.
#[test]
fn a_thousand_clients_at_once_are_accepted() {
    // Each client has two descriptors.
    rlimit::increase_nofile_limit(4_096).expect("descriptors");
    let server = Server::cache(TWO);
    server.signal("-STOP");
    let mut clients: Vec<_> = (0..1_024).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(b"PING\r\n"));
    server.signal("-CONT");
    clients.iter_mut().for_each(|client| assert_eq!(client.read().text(), "PONG"));
}
