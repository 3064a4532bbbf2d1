//! Tests that take hours of virtual time and no real time: a `ManualClock` moves a whole `Timer`.
//!
//! `cargo run --example testing`

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use shardwheel::{ManualClock, ScheduleError, Timer, TimerKey};

const HOUR: Duration = Duration::from_secs(3_600);

/// What is tested: a shop that asks for the payment of an order every eight hours, and releases the
/// order after a day. It takes the `Timer` as an argument, so a test may pass one of its own.
struct Order {
    reminder: TimerKey,
    release: TimerKey,
}

impl Order {
    fn place<F>(timer: &Timer, remind: F, release: F) -> Result<Self, ScheduleError<F>>
    where
        F: FnMut() + Send + 'static,
    {
        let reminder = timer.schedule_every(8 * HOUR, remind)?;
        let release = timer.schedule_after(24 * HOUR, release)?;
        Ok(Self { reminder, release })
    }

    fn pay(self, timer: &Timer) -> bool {
        timer.cancel(self.reminder) & timer.cancel(self.release)
    }
}

/// A counter, and a callback that adds one to it.
fn counter() -> (Arc<AtomicU32>, impl FnMut() + Send + 'static) {
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    // Ordering: Relaxed, a number that one thread writes and reads.
    (count, move || _ = counted.fetch_add(1, Ordering::Relaxed))
}

fn main() -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    // The clock stands still until the test moves it. The timer has no threads: callbacks run
    // inside `advance`, on this thread, in the order of their deadlines.
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).build()?;
    let ((reminded, remind), (released, release)) = (counter(), counter());
    // Ordering: Relaxed, see `counter`.
    let counts = || [&reminded, &released].map(|count| count.load(Ordering::Relaxed));

    let order = Order::place(&timer, remind, release)?;
    for hours in [7, 1, 8] {
        clock.advance(hours * HOUR);
        let ([reminders, releases], now) = (counts(), clock.elapsed().as_secs() / 3_600);
        println!("after {now:>2} h: {reminders} reminders, {releases} releases");
    }
    // A nanosecond before the deadline nothing has fired: no timer is early.
    clock.advance(8 * HOUR - Duration::from_nanos(1));
    assert!(order.pay(&timer), "paid in time");
    clock.advance(1_000 * HOUR);
    assert_eq!((counts(), timer.stats().pending), ([2, 0], 0));
    println!("paid a nanosecond before the release: nothing fires in the next 1000 h");
    println!("these 1023 h took {} ms", begin.elapsed().as_millis());
    Ok(())
}
