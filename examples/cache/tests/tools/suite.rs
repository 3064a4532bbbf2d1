//! Units of Redis's own test suite, as its runner runs them against any server.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::support::{Server, skip};

const VERSION: &str = "7.0.15";
const SOURCE: &str = "https://github.com/redis/redis";

/// A unit, the tests that have to pass at least, all others of the file, and the tests of what this cache does
/// not have, with the command or what else they need.
struct Unit {
    name: &'static str,
    passed: usize,
    out_of_scope: &'static [(&'static str, &'static str)],
}

/// Tests that a unit leaves in another mode of the client, because a test before them ends early. They have to
/// pass alone.
const ALONE: (&str, &[&str]) =
    ("unit/protocol", &["test large number of args", "test argument rewriting - issue 9598"]);

/// `unit/auth` is not here: all of its tests start a server of their own, so the runner skips them.
const UNITS: &[Unit] = &[
    Unit {
        name: "unit/protocol",
        passed: 13,
        out_of_scope: &[
            ("raw protocol response", "SRANDMEMBER"),
            ("raw protocol response - deferred", "SRANDMEMBER"),
            ("raw protocol response - multiline", "SADD"),
            ("RESP3 attributes", "DEBUG"),
            ("RESP3 attributes readraw", "DEBUG"),
            ("RESP3 attributes on RESP2", "DEBUG"),
            ("test big number parsing", "DEBUG"),
            ("test bool parsing", "DEBUG"),
            ("test verbatim str parsing", "DEBUG"),
            ("test large number of args", "see ALONE"),
            ("test argument rewriting - issue 9598", "see ALONE"),
            ("Regression for a crash with blocking ops and pipelining", "BLPOP"),
        ],
    },
    Unit {
        name: "unit/querybuf",
        passed: 0,
        out_of_scope: &[
            ("query buffer resized correctly", "buffers: a client that is idle has none"),
            ("query buffer resized correctly when not idle", "buffers"),
        ],
    },
    Unit {
        name: "unit/expire",
        passed: 57,
        out_of_scope: &[
            ("EXPIRE - write on expire should work", "LPUSH"),
            ("Redis should lazy expire keys", "DEBUG"),
            ("EXPIRE should not resurrect keys (issue #1026)", "DEBUG"),
            ("SET - use KEEPTTL option, TTL should not be removed after loadaof", "DEBUG"),
            ("GETEX use of PERSIST option should remove TTL after loadaof", "DEBUG"),
            ("SCAN: Lazy-expire should not be wrapped in MULTI/EXEC", "DEBUG"),
            ("RANDOMKEY: Lazy-expire should not be wrapped in MULTI/EXEC", "DEBUG"),
        ],
    },
    Unit {
        name: "unit/pubsub",
        passed: 23,
        out_of_scope: &[
            ("Keyspace notifications: we are able to mask events", "LPUSH"),
            ("Keyspace notifications: list events test", "LPUSH"),
            ("Keyspace notifications: set events test", "SADD"),
            ("Keyspace notifications: zset events test", "ZADD"),
            ("Keyspace notifications: hash events test", "HMSET"),
            ("Keyspace notifications: stream events test", "XGROUP"),
            ("Keyspace notifications: evicted events", "eviction"),
        ],
    },
    Unit {
        name: "unit/multi",
        passed: 25,
        out_of_scope: &[
            ("MULTI / EXEC basics", "RPUSH"),
            ("DISCARD", "RPUSH"),
            ("MULTI where commands alter argc/argv", "SADD"),
            ("EXEC fail on WATCHed key modified by SORT with STORE even if the result is empty", "LPUSH"),
            ("EXEC fail on lazy expired WATCHed key", "DEBUG"),
            ("WATCH stale keys should not fail EXEC", "DEBUG"),
            ("Delete WATCHed stale keys should not fail EXEC", "DEBUG"),
            ("FLUSHDB while watching stale keys should not fail EXEC", "DEBUG"),
            ("MULTI and script timeout", "EVAL"),
            ("EXEC and script timeout", "EVAL"),
            ("MULTI-EXEC body and script timeout", "EVAL"),
            ("just EXEC and script timeout", "EVAL"),
            ("Blocking commands ignores the timeout", "XGROUP"),
            ("MULTI with SAVE", "SAVE"),
            ("MULTI with SHUTDOWN", "SHUTDOWN"),
        ],
    },
    Unit {
        name: "unit/type/string",
        passed: 55,
        out_of_scope: &[
            ("MGET against non-string key", "SADD"),
            ("SETBIT against non-existing key", "SETBIT"),
            ("SETBIT against string-encoded key", "SETBIT"),
            ("SETBIT against integer-encoded key", "SETBIT"),
            ("SETBIT against key with wrong type", "LPUSH"),
            ("SETBIT with out of range bit offset", "SETBIT"),
            ("SETBIT with non-bit argument", "SETBIT"),
            ("SETBIT fuzzing", "SETBIT"),
            ("GETBIT against non-existing key", "GETBIT"),
            ("GETBIT against string-encoded key", "GETBIT"),
            ("GETBIT against integer-encoded key", "GETBIT"),
            ("SETRANGE against integer-encoded key", "encodings"),
            ("SETRANGE against key with wrong type", "LPUSH"),
            ("Extended SET GET with incorrect type should result in wrong type error", "RPUSH"),
            ("LCS basic", "LCS"),
            ("LCS len", "LCS"),
            ("LCS indexes", "LCS"),
            ("LCS indexes with match len", "LCS"),
            ("LCS indexes with match len and minimum match len", "LCS"),
        ],
    },
    Unit {
        name: "unit/type/incr",
        passed: 21,
        out_of_scope: &[
            ("INCR fails against a key holding a list", "RPUSH"),
            ("INCR uses shared objects in the 0-9999 range", "shared objects"),
            ("INCR can modify objects in-place", "DEBUG"),
            ("INCRBYFLOAT fails against a key holding a list", "RPUSH"),
        ],
    },
    Unit {
        name: "unit/scan",
        passed: 5,
        out_of_scope: &[
            ("SSCAN with encoding intset", "SADD"),
            ("SSCAN with encoding hashtable", "SADD"),
            ("HSCAN with encoding listpack", "HMSET"),
            ("HSCAN with encoding hashtable", "HMSET"),
            ("ZSCAN with encoding listpack", "ZADD"),
            ("ZSCAN with encoding skiplist", "ZADD"),
            ("SSCAN with integer encoded object (issue #1345)", "SADD"),
            ("SSCAN with PATTERN", "SADD"),
            ("HSCAN with PATTERN", "HMSET"),
            ("ZSCAN with PATTERN", "ZADD"),
            ("ZSCAN scores: regression test for issue #2175", "ZADD"),
            ("SCAN regression test for issue #4906", "SADD"),
        ],
    },
];

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
fn units() {
    let Some(place) = suite() else { return };
    for unit in UNITS {
        let Outcome { passed, failed, text } = run(&place, unit.name, &[]);
        for name in &failed {
            let is_it =
                |known: &str| name.strip_prefix(known).is_some_and(|rest| rest.starts_with(" in tests/"));
            assert!(unit.out_of_scope.iter().any(|(known, _)| is_it(known)), "{name}\n{text}");
        }
        let found = (failed.len(), passed);
        assert_eq!(found, (unit.out_of_scope.len(), unit.passed), "{}\n{text}", unit.name);
    }
    let only: Vec<_> = ALONE.1.iter().flat_map(|name| ["--only", name]).collect();
    let Outcome { passed, failed, text } = run(&place, ALONE.0, &only);
    assert_eq!((passed, &failed[..]), (ALONE.1.len(), &[][..]), "{text}");
}

struct Outcome {
    passed: usize,
    failed: Vec<String>,
    text: String,
}

fn run(place: &Path, unit: &str, more: &[&str]) -> Outcome {
    let server = Server::cache(&["--threads", "2"]);
    let port = server.port();
    let output = Command::new("timeout")
        .args(["300", "./runtest", "--host", "127.0.0.1", "--port", &port, "--single", unit])
        .args(["--singledb", "--durable", "--tags", "-needs:repl"])
        .args(more)
        .current_dir(place)
        .output()
        .expect("the runner");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = |mark: &str| -> Vec<String> {
        let marked = text.lines().filter(|line| line.starts_with('[') && line.contains(mark));
        marked.map(|line| line.split("]: ").nth(1).unwrap_or_default().to_owned()).collect()
    };
    let (passed, failed) = (lines("ok\u{1b}").len(), lines("err\u{1b}"));
    assert_eq!(lines("exception\u{1b}"), [""; 0], "{text}");
    Outcome { passed, failed, text }
}
