//! The examples of one file: each runs to its end, and prints what a newcomer should see.
//!
//! `cargo test` builds them. With `--test examples` alone cargo builds them here.

use std::env;
use std::path::Path;
use std::process::Command;

/// Runs an example, a name and perhaps arguments, and returns what it prints.
fn run(example: &str) -> String {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is within the target directory");
    let mut words = example.split(' ');
    let mut command = Command::new(env::var_os("CARGO").expect("cargo runs the tests"));
    command.args(["run", "--quiet", "--locked", "--example"]).args(words.next());
    command.arg("--target-dir").arg(target);
    if cfg!(feature = "introspect") {
        command.args(["--features", "introspect"]);
    }
    let output = command.arg("--").args(words).output().expect("cargo can be started");
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{example}: {}\n{out}\n{err}", output.status);
    out
}

/// Runs an example, and looks for each of these texts, in this order.
fn prints(example: &str, texts: &[&str]) {
    let out = run(example);
    texts.iter().fold(out.as_str(), |rest, text| {
        let found = rest.split_once(text);
        found.unwrap_or_else(|| panic!("{example} does not print {text:?}, or too early, in\n{out}")).1
    });
}

/// Returns how often `text` stands in `out`.
fn count(out: &str, text: &str) -> usize {
    out.matches(text).count()
}

#[test]
fn timeouts() {
    let texts = ["fast: \"the answer to fast\"", "slow: Err(TimedOut)", "closed after 5"];
    prints("timeouts", &[&texts[..], &["10000 of 10000 tasks were in time", " 0 pending"]].concat());
}

#[test]
#[cfg(feature = "introspect")]
fn introspect() {
    let leak = ["set at", "examples/introspect.rs:", ": 1000 timers, the oldest 10 minutes ago"];
    prints("introspect", &leak);
    let out = run("introspect");
    let (_, after) = out.split_once("have been cancelled").expect("it mends the leak");
    assert!(count(after, "examples/introspect.rs:") == 2 && !after.contains("1000"), "{out}");
}

#[test]
fn callbacks() {
    let out = run("callbacks");
    for (text, times) in [
        ("once", 1),
        ("attempt, 0 left", 1),
        ("backoff", 3),
        ("is its release cancelled? true", 1),
        ("idle: ", 1),
        ("in an hour, run at the end", 1),
        (" 0 pending", 1),
        ("NOT PAID", 0),
        ("NEVER", 0),
    ] {
        assert_eq!(count(&out, text), times, "{text:?} in\n{out}");
    }
    let idle = out.split_once("the last packet").is_some_and(|(_, after)| after.contains("idle: "));
    assert!(idle && count(&out, "heartbeat") >= 2, "{out}");
}

#[test]
fn deadline() {
    let texts = ["most 100 ms: true", "fast: books for Ada", "most 100 ms: true", "slow: nothing in time"];
    let ends = ["stuck: the time is over", "outside: None", r#"the timeout is "100 ms"; it must be"#];
    prints("deadline", &[&texts[..], &ends].concat());
}

#[test]
fn delay_queue() {
    let out = run("delay_queue");
    for text in [
        "removed before it was due: Some(\"count the sheep\"); 3 jobs wait",
        "send a mail: done at attempt 3",
        "scale a picture: done at attempt 2",
        "write a report: done at attempt 1",
        "the queue is empty",
        "4 jobs wait again, the next for Some(",
        "4 are written to a file, 0 are left",
    ] {
        assert_eq!(count(&out, text), 1, "{text:?} in\n{out}");
    }
    assert_eq!(count(&out, "failed, again in"), 3, "{out}");
}

#[test]
fn nightly() {
    let nights =
        ["day 1, 03:00: backup", "set forward", "day 2, 04:01: backup", "set back", "day 3, 03:00: backup"];
    prints("nightly", &[&nights[..], &[" looks at the clock"]].concat());
    assert_eq!(count(&run("nightly"), ": backup"), 3);
}

#[test]
fn boot_clock() {
    prints("boot_clock", &["the session has ended after ", "the machine was suspended for "]);
}

#[test]
fn testing() {
    let texts = ["after  7 h: 0 ", "after  8 h: 1 ", "after 16 h: 2 ", "in the next 1000 h"];
    prints("testing", &texts);
}

#[test]
fn scope() {
    let texts =
        ["connected at attempt Some(Ok(3)), after 7260s", "0 sleeps are pending", "1 timer is pending"];
    prints("scope", &[&texts[..], &["the first at 10800s", "a minute: true"]].concat());
}

/// A timer is drawn once on each dial on its way down, the coarsest first.
#[test]
fn dials() {
    let out = run("dials");
    for (timer, dials) in [(6, 1), (42, 2), (350, 3), (1_001, 4)] {
        let (_, way) = out.split_once(&format!("a timer for tick {timer}\n")).expect("it is followed");
        let (way, _) = way.split_once(&format!("fired after {} cascades", dials - 1)).expect("it fires");
        let drawn: Vec<_> = way.lines().filter_map(|line| line.split_once("dial ")?.1.get(..1)).collect();
        let expected: Vec<_> = (1..=dials).rev().map(|dial| dial.to_string()).collect();
        assert_eq!(drawn, expected, "{out}");
        assert!(way.lines().last().is_some_and(|line| line.contains(&format!("tick {timer:>4}"))), "{out}");
    }
}

#[test]
fn buffs() {
    let texts =
        ["100000 timers pending", "after 10 s: 3 hits each, 100000 timers pending", "dispelled: true"];
    let ends = ["plain: 10 hits, extended: 15, dispelled: 3", "999998 hits by 100000 timers, 0 left"];
    prints("buffs", &[&texts[..], &ends].concat());
}

#[test]
fn groups() {
    let texts = [
        "10000 connections: 3 members each, 30000 timers pending",
        "after 100 s: 50000 pings, 0 idle",
        "one connection ends its 4 timers",
        ": 0 timers pending",
        "10000 tasks have ended, 40000 pings had no answer",
    ];
    prints("groups", &texts);
}

/// No turn gets through the burst, and all of it fires in the end.
#[test]
fn budget() {
    let out = run("budget");
    assert!(out.contains("turn   2") && out.contains("    0 wait\nall 20000 fired, in the order"), "{out}");
}

/// In two halves, which wait at the same time.
#[test]
fn slack() {
    prints("slack 0 1", &["100000 sleeps", "wake-ups", "mean late", " 0ns ", " 1ms "]);
}

#[test]
fn more_slack() {
    prints("slack 10 100", &["100000 sleeps", "wake-ups", "mean late", " 10ms ", " 100ms "]);
}
