//! A disk whose syncs hang: no request waits without a limit, and the server says that it is not well.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use support::{Directory, PROGRAM, Server, order, until};

/// Syncs wait while a file is there.
const HANGING: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_while_told(void) {
    const char *told = getenv("HANG_WHILE");
    while (told && access(told, F_OK) == 0) usleep(10000);
}

int fsync(int fd) {
    wait_while_told();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}

int fdatasync(int fd) {
    wait_while_told();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}
"#;

/// Compiles it with the compiler that links Rust programs.
fn hanging(directory: &Path) -> PathBuf {
    let (source, library) = (directory.join("hanging.c"), directory.join("hanging.so"));
    fs::write(&source, HANGING).expect("a file");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
    assert!(compiler.status().is_ok_and(|status| status.success()), "cc is installed");
    library
}

#[test]
fn syncs_that_hang_are_seen_and_no_request_waits_for_ever() {
    let directory = Directory::new("slow-disk");
    let (data, told) = (directory.path().join("data"), directory.path().join("hang"));
    let mut command = Command::new("env");
    let preload = format!("LD_PRELOAD={}", hanging(directory.path()).display());
    command.args([preload, format!("HANG_WHILE={}", told.display()), PROGRAM.to_owned()]);
    let server = Server::launch(command, &data, &["--check-after", "1h", "--timeout", "3s"]);
    server.wait_until_ready();
    assert_eq!(server.post("/orders", &order(1, "nut")).statuses(), ["placed"]);
    assert_eq!((server.metric("orders_ready"), server.metric("orders_unanswered_seconds")), (1.0, 0.0));
    fs::write(&told, "").expect("a file");
    thread::scope(|scope| {
        let waits = scope.spawn(|| server.post("/orders", &order(2, "nut")));
        until("it is not well", || server.get("/healthz").status == 503);
        let said = server.get("/healthz").text();
        assert!(said.contains("the disk does not answer"), "{said}");
        assert_eq!(server.metric("orders_ready"), 0.0);
        assert!(server.metric("orders_unanswered_seconds") >= 10.0);
        let answer = waits.join().expect("an answer");
        assert_eq!((answer.status, answer.head.contains("retry-after")), (503, true), "{answer:?}");
        assert_eq!(server.post("/orders", &order(3, "nut")).status, 503, "nor does the next one wait");
    });
    fs::remove_file(&told).expect("it goes on");
    server.wait_until_ready();
    until("what waited is durable", || server.post("/orders", &order(2, "nut")).statuses() == ["duplicate"]);
    until("all is well", || server.metric("orders_unanswered_seconds") == 0.0);
    assert_eq!(server.metric("orders_ready"), 1.0);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(server.get("/orders/2").json()["state"], "pending");
}
