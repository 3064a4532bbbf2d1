//! What the suites of the upper floor share: timers to test with, and patience.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{ManualClock, Timer, TimerBuilder};

/// For how long a test waits for something that is to happen, however busy the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A timer that a clock drives by hand, and the clock.
pub(crate) fn manual() -> (Timer, ManualClock) {
    by_hand(Timer::builder())
}

/// The same, with other settings too.
pub(crate) fn by_hand(builder: TimerBuilder) -> (Timer, ManualClock) {
    let clock = ManualClock::new();
    (builder.clock(clock.clone()).build().expect("settings within their limits"), clock)
}

/// A timer in real time with that many shards.
pub(crate) fn threads(shards: usize) -> Timer {
    Timer::builder().shards(shards).build().expect("settings within their limits")
}

/// Waits until something holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "in vain: {what}");
        thread::sleep(Duration::from_micros(200));
    }
}

/// Runs `work` on a thread of its own, and panics if that does not come to an end: what would hang fails.
pub(crate) fn in_time<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, heard) = mpsc::channel::<()>();
    let worker = thread::spawn(move || {
        let _done = done;
        work()
    });
    assert_eq!(heard.recv_timeout(2 * PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected), "it hangs");
    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
