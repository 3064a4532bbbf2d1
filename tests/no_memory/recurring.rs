//! A recurring timer in a process that may map a limited amount of memory.

use std::env;
use std::process::Command;

use shardwheel::{ScheduleErrorKind, Timer};

use crate::support::{HOUR, LIMIT, manual, survives_in};

/// Kilobytes that the process may map.
const KILOBYTES: u32 = 150_000;

/// Schedules until memory is refused.
fn fill(timer: &Timer) {
    let refused = (0..).find_map(|_| timer.schedule_after(2 * HOUR, || ()).err()).expect("memory ends");
    assert!(matches!(refused.kind(), ScheduleErrorKind::OutOfMemory { .. }), "{refused}");
}

/// A cancelled recurring timer cannot be moved, whether or not there is memory for a move. Promise
/// 2.
#[test]
fn a_cancelled_recurring_timer_is_not_moved_without_memory() {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("ulimit -v {KILOBYTES}; exec \"$0\" \"$@\"")])
        .arg(env::current_exe().expect("a test has a file"));
    shell.env("MALLOC_ARENA_MAX", "1");
    survives_in(shell, 2, LIMIT, || {
        let (timer, _clock) = manual();
        let ballast = vec![1_u8; 16 << 20];
        let key = timer.schedule_every(HOUR, || ()).expect("there is memory");
        fill(&timer);
        assert!(timer.cancel(key));
        fill(&timer);
        let moved = timer.reschedule_after(key, HOUR / 2);
        drop(ballast);
        assert_eq!(moved, None);
        drop(timer.shutdown());
    });
}
