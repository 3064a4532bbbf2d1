//! The event loop answers each packet when it is due, and wakes for another thread's timer.

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
