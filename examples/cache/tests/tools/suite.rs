//! Redis's own test suite for expiry, as its runner runs it against any server.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::support::{Server, skip};

const VERSION: &str = "7.0.15";
const SOURCE: &str = "https://github.com/redis/redis";

/// Tests of commands that this cache does not have, and the command.
const OUT_OF_SCOPE: [(&str, &str); 7] = [
    ("EXPIRE - write on expire should work", "LPUSH"),
    ("Redis should lazy expire keys", "DEBUG"),
    ("EXPIRE should not resurrect keys (issue #1026)", "DEBUG"),
    ("SET - use KEEPTTL option, TTL should not be removed after loadaof", "DEBUG"),
    ("GETEX use of PERSIST option should remove TTL after loadaof", "DEBUG"),
    ("SCAN: Lazy-expire should not be wrapped in MULTI/EXEC", "DEBUG"),
    ("RANDOMKEY: Lazy-expire should not be wrapped in MULTI/EXEC", "DEBUG"),
];

/// The tests that have to pass at least: all others of the file.
const PASSED: usize = 57;

fn succeeds(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The runner, in the directory that `REDIS_SOURCE` names, or else in a copy of the repository.
fn suite() -> Option<PathBuf> {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("redis-{VERSION}"));
    let place = std::env::var_os("REDIS_SOURCE").map_or(kept, PathBuf::from);
    let to = place.to_str()?;
    let has_tcl = || succeeds("tclsh8.6", &["/dev/null"]);
    let has_tcl = has_tcl() || succeeds("apt-get", &["install", "-y", "-qq", "tcl"]) && has_tcl();
    let is_there = place.join("runtest").exists()
        || succeeds("git", &["clone", "--quiet", "--depth", "1", "--branch", VERSION, SOURCE, to]);
    if !has_tcl || !is_there {
        skip("Redis's test suite cannot be fetched, or there is no Tcl: see REDIS_SOURCE in the README");
    }
    (has_tcl && is_there).then_some(place)
}

#[test]
fn unit_expire() {
    let Some(place) = suite() else { return };
    let server = Server::cache(&["--threads", "2"]);
    let port = server.port();
    let args = ["--host", "127.0.0.1", "--port", &port, "--single", "unit/expire", "--singledb", "--durable"];
    let output = Command::new("timeout")
        .args(["300", "./runtest"])
        .args(args)
        .args(["--tags", "-needs:repl"])
        .current_dir(place)
        .output()
        .expect("the runner");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = |mark: &str| -> Vec<_> {
        let marked = text.lines().filter(|line| line.starts_with('[') && line.contains(mark));
        marked.map(|line| line.split("]: ").nth(1).unwrap_or_default()).collect()
    };
    let failed = lines("err\u{1b}");
    for name in &failed {
        assert!(OUT_OF_SCOPE.iter().any(|(known, _)| name.starts_with(known)), "{name}\n{text}");
    }
    assert_eq!(lines("exception\u{1b}"), [""; 0], "{text}");
    assert_eq!((failed.len(), lines("ok\u{1b}").len()), (OUT_OF_SCOPE.len(), PASSED), "{text}");
}
