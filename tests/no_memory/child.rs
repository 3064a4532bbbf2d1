//! Work in processes of its own, with each request for memory refused in turn.

use std::process::Output;
use std::thread;
use std::time::Duration;

use crate::faults::{self, Fail};
use crate::support::{output_within, select, test_name, this_binary};

/// Tells a process that it is a child, and which request is the first to be refused.
const FIRST: &str = "SHARDWHEEL_FIRST";

/// How long a child may run.
const LIMIT: Duration = Duration::from_secs(120);

/// The most requests that the work may make, and the number of failures at which the test stops.
const MOST: usize = 5_000;
const WRONG: usize = 40;

/// Runs `work`, the closure of the calling test, with each of its requests for memory refused in
/// turn: that request alone, and that request with all that follow it.
pub(crate) fn at_every_request<F: Fn() + Copy + Send + 'static>(work: F) {
    match std::env::var(FIRST) {
        Ok(first) => refuse(first.parse().expect("a number"), work),
        Err(_) => watch(test_name::<F>()),
    }
}

/// Each number stands for two attempts: one request refused, or all from one on.
fn plan(number: usize) -> Fail {
    if number.is_multiple_of(2) { Fail::Once(1 + number / 2) } else { Fail::From(1 + number / 2) }
}

/// Goes on until no request is refused any more.
fn refuse<F: Fn() + Copy + Send + 'static>(first: usize, work: F) {
    for number in first..=MOST {
        eprintln!("number {number}");
        // A thread that has not used the shard before.
        let refused = thread::spawn(move || {
            faults::begin(plan(number));
            work();
            faults::end()
        });
        let refused = refused.join().unwrap_or_else(|_| std::process::exit(1));
        if !refused {
            return;
        }
    }
    panic!("it makes no end of requests");
}

/// Starts children until one comes to the end. Under a debugger, `SHARDWHEEL_FIRST` begins with the
/// request that ended a child.
fn watch(name: &str) {
    let (mut first, mut wrong) = (0, Vec::new());
    while wrong.len() < WRONG {
        let output = run(name, first);
        if output.status.success() {
            break;
        }
        let last = last_number(&output).unwrap_or_else(|| panic!("it does not begin: {output:?}"));
        wrong.push(format!("{last}, {:?}: {}\n{}", plan(last), output.status, complaint(&output)));
        first = last + 1;
    }
    assert!(wrong.is_empty(), "{} of the requests end it:\n{}", wrong.len(), wrong.join("\n"));
}

fn last_number(output: &Output) -> Option<usize> {
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().rev().find_map(|line| line.strip_prefix("number "))?;
    last.parse().ok()
}

/// The output of a child, without uninformative lines.
fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines = text.lines().filter(|line| {
        !line.trim().is_empty() && !line.starts_with("number ") && !line.starts_with("note: ")
    });
    lines.take(8).map(|line| format!("    {line}\n")).collect()
}

fn run(name: &str, first: usize) -> Output {
    let mut command = this_binary();
    select(&mut command, name, 1);
    command.env(FIRST, first.to_string()).env("RUST_BACKTRACE", "0");
    output_within(LIMIT, command)
}
