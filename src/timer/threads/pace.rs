//! How long a shard rests if the clock is the user's.
//!
//! The thread sleeps by the system's time, but its deadline is by the user's clock, which may run
//! at another speed. So the thread sleeps for half of the time left, at the speed that it measured
//! over its last sleep, and looks again, a second later at the latest. Before the first measurement
//! a sleep lasts at most one tick.
//!
//! If the clock is slower than the system's, or stands still, the speed counts as 1: the clock may
//! speed up again.
//!
//! The worker alone uses this.

use crate::time::{Duration, Instant};
use crate::timer::time::Nanos;

/// A sleep lasts at least a tick divided by this, by the user's clock.
const LEAST_PART: Nanos = 8;

/// Shorter sleeps do not measure the speed: the clock may advance in steps.
const LEAST_MEASURED: Duration = Duration::from_micros(50);

/// No sleep is longer, by the system's time: the clock may jump, as a boot clock does when the
/// machine wakes.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(in crate::timer) struct Pace {
    /// The speed of the clock over the last sleep, as a multiple of the system's and at least 1.
    /// `None` before the first measurement.
    speed: Option<f64>,
    /// When the thread went to sleep, by the system's time and by the clock.
    asleep: Option<(Instant, Nanos)>,
}

impl Pace {
    /// Returns how long to sleep before `due`. `now` is the time by the clock.
    pub(in crate::timer) fn begin_sleep(&mut self, now: Nanos, due: Nanos, tick: Nanos) -> Duration {
        self.asleep = Some((crate::sync::now(), now));
        let left = due.saturating_sub(now);
        let half = (left / 2).max(tick / LEAST_PART).max(1);
        let sleep = self.speed.map_or(half.min(tick), |speed| (half as f64 / speed) as Nanos);
        Duration::from_nanos(sleep).min(LONGEST_SLEEP)
    }

    /// Measures the sleep that has ended. `now` is the time by the clock.
    pub(in crate::timer) fn end_sleep(&mut self, now: Nanos) {
        let Some((begin, before)) = self.asleep.take() else { return };
        let took = crate::sync::now().saturating_duration_since(begin);
        if took >= LEAST_MEASURED {
            let speed = now.saturating_sub(before) as f64 / took.as_nanos() as f64;
            self.speed = Some(speed.max(1.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Nanos = 1_000_000;

    #[test]
    fn it_sleeps_for_half_of_what_is_left_by_the_speed() {
        let mut pace = Pace::default();
        let millis = Duration::from_millis;
        assert_eq!(pace.begin_sleep(0, 100 * TICK, TICK), millis(1), "nothing is known");
        pace.speed = Some(1.0);
        assert_eq!(pace.begin_sleep(0, 100 * TICK, TICK), millis(50));
        assert_eq!(pace.begin_sleep(100 * TICK, 100 * TICK, TICK), Duration::from_micros(125));
        pace.speed = Some(10.0);
        assert_eq!(pace.begin_sleep(0, 100 * TICK, TICK), millis(5));
        assert_eq!(pace.begin_sleep(0, 1 << 60, TICK), millis(1_000));
    }

    #[test]
    fn a_sleep_is_measured() {
        let mut pace = Pace::default();
        let begin = Instant::now().checked_sub(Duration::from_millis(100)).expect("the system is up");
        pace.asleep = Some((begin, 5));
        pace.end_sleep(300_000_005);
        assert!(pace.speed.is_some_and(|speed| speed > 0.0 && speed <= 3.0), "{:?}", pace.speed);
        pace.asleep = Some((begin, 5));
        pace.end_sleep(5);
        assert_eq!(pace.speed, Some(1.0));
    }
}
