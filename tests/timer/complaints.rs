//! Complaints about other timers, which this one must not deserve.

use std::thread;
use std::time::Duration;

use shardwheel::Timer;

use crate::support::{Built, HOUR, after, fires, is_balanced, ms, secs, threads, until};

/// After a burst of cancelled timeouts, with nothing due for a long time, the thread wakes and
/// frees memory. Promise 5.
#[test]
fn memory_goes_back_while_nothing_is_due() {
    let timer = threads(1);
    let keys: Vec<_> = (0..200_000).map(|_| after(&timer, secs(300_000), || ())).collect();
    let peak = timer.stats().node_capacity;
    assert!(keys.into_iter().all(|key| timer.cancel(key)));
    until("memory has gone back", || timer.stats().node_capacity <= peak / 3);
    is_balanced(&timer);
}

/// How often the thread of this name has gone to sleep; none where the system does not say.
fn sleeps_of(name: &str) -> Option<u64> {
    let tasks = cfg!(target_os = "linux").then(|| std::fs::read_dir("/proc/self/task").ok())??;
    let mut statuses =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok());
    let status = statuses.find(|status| status.lines().next().is_some_and(|line| line.ends_with(name)))?;
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

/// In other timers every tick woke the thread with nothing due, or the thread spun. Here the thread
/// sleeps, with the next timer an hour away and with no timer, although a tick is a millisecond.
/// Promise 9.
#[test]
fn an_idle_thread_sleeps() {
    let timer = Timer::builder().shards(1).thread_name("idle").built();
    for pending in [false, true] {
        if pending {
            after(&timer, HOUR, || ());
            fires(&timer, ms(1));
            thread::sleep(ms(100));
        }
        let Some(before) = sleeps_of("idle-0") else { return };
        thread::sleep(ms(300));
        let woken = sleeps_of("idle-0").expect("the thread exists") - before;
        assert!(woken <= 3, "woken {woken} times in 300 ticks");
    }
}

/// Memory that cannot be freed does not keep the thread awake: a timer is left in each segment of a
/// burst. Promise 9.
#[test]
fn memory_that_cannot_go_back_does_not_keep_a_thread_awake() {
    let timer = Timer::builder().shards(1).thread_name("kept").built();
    let keys: Vec<_> = (0..300_000).map(|_| after(&timer, HOUR, || ())).collect();
    let cancelled = keys.iter().enumerate().filter(|(nth, _)| nth % 10_000 != 0);
    assert!(cancelled.into_iter().all(|(_, &key)| timer.cancel(key)));
    if sleeps_of("kept-0").is_some() {
        until("the thread sleeps", || {
            let before = sleeps_of("kept-0").expect("the thread exists");
            thread::sleep(ms(300));
            sleeps_of("kept-0").expect("the thread exists") - before <= 1
        });
    }
}

/// A far timer wakes the thread at most for each move to a lower wheel. Promise 9.
#[test]
fn a_far_timer_wakes_the_thread_once_per_level() {
    let timer =
        Timer::builder().shards(1).thread_name("far").tick(Duration::from_micros(50)).wheel_size(16).built();
    let Some(before) = sleeps_of("far-0") else { return };
    fires(&timer, ms(200));
    let woken = sleeps_of("far-0").expect("the thread exists") - before;
    assert!(woken <= 20, "woken {woken} times in 4000 ticks, over four wheels");
}
