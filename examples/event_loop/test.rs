//! The event loops answer each packet or line when it is due; the first wakes for another thread's timer.

use std::process::Command;

#[test]
fn answers_come_in_the_order_of_their_delays_and_none_is_early() {
    let output = Command::new(env!("CARGO_BIN_EXE_event-loop")).output().expect("it can be started");
    let out = String::from_utf8(output.stdout).expect("it prints text");
    assert!(output.status.success(), "{out}");
    let mut lines = out.lines();
    for (answer, least) in [("water", 50), ("coffee", 100), ("tea", 150), ("the loop ended", 250)] {
        let line = lines.next().unwrap_or_else(|| panic!("{answer} is missing in\n{out}"));
        let after = line.split(' ').rev().nth(1).and_then(|millis| millis.parse::<u64>().ok());
        assert!(line.starts_with(answer) && after.is_some_and(|millis| millis >= least), "{out}");
    }
}

#[test]
fn a_thread_a_core_answers_its_clients_and_closes_those_that_are_silent() {
    let output = Command::new(env!("CARGO_BIN_EXE_pinned")).output().expect("it can be started");
    let out = String::from_utf8(output.stdout).expect("it prints text");
    assert!(output.status.success(), "{out}");
    for (text, least) in [("coffee came", 100), ("tea came", 150), ("closed", 450)] {
        let lines: Vec<_> = out.lines().filter(|line| line.starts_with(text)).collect();
        assert!(!lines.is_empty() && lines.len().is_multiple_of(3), "{out}");
        for line in lines {
            let after = line.split(' ').rev().nth(1).and_then(|millis| millis.parse::<u64>().ok());
            assert!(after.is_some_and(|millis| millis >= least), "{line}");
        }
    }
}
