//! Timers that may fire at any time within a window.

use std::ops::{RangeInclusive, Sub};
use std::time::{Duration, Instant};

use super::{Nanos, ShardHandle, Timer, TimerKey, nanos};
use crate::error::{ScheduleError, ScheduleErrorKind};
use crate::tick::Tick;

impl Timer {
    /// Calls `callback` once, at a time within `window`, both ends included: two [`Instant`]s, or two
    /// [`Duration`]s from now. The timer chooses the time so that timers with overlapping windows fire
    /// together, which wakes the shard's thread less often.
    ///
    /// Of the ticks within the window it is the one that is a multiple of the greatest power of
    /// two. So the choice does not depend on when the call is made, windows that contain the chosen
    /// tick of a longer window share it, and the wheel moves the timer less often, because its
    /// buckets begin at such ticks.
    ///
    /// The callback never runs before the window. If no tick begins within the window, it runs at
    /// the first tick after its start. A window that has passed is due at the next tick. A window
    /// of one moment, `at..=at`, is exact to a tick, also if the timer has a
    /// [slack](crate::TimerBuilder::slack). A reschedule replaces the window by one deadline.
    ///
    /// [`sleep_within`](Self::sleep_within) and [`timeout_within`](Self::timeout_within) are the
    /// same for futures.
    ///
    /// # Examples
    ///
    /// A thousand sessions, each to be checked in 50 to 60 seconds, need few wake-ups:
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{ManualClock, Timer};
    ///
    /// let clock = ManualClock::new();
    /// let timer = Timer::builder().clock(clock.clone()).build()?;
    /// let mut times = std::collections::BTreeSet::new();
    /// for _ in 0..1_000 {
    ///     let window = Duration::from_secs(50)..=Duration::from_secs(60);
    ///     let key = timer.schedule_within(window, || println!("check the session"))?;
    ///     times.insert(timer.deadline(key));
    ///     clock.advance(Duration::from_millis(7));
    /// }
    /// assert!(times.len() <= 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`schedule_after`](Self::schedule_after), and if the window ends before it starts.
    ///
    /// # Performance
    ///
    /// As [`schedule_at`](Self::schedule_at).
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn schedule_within<F>(
        &self,
        window: RangeInclusive<impl WindowEnd>,
        callback: F,
    ) -> Result<TimerKey, ScheduleError<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        let handle = self.first_shard();
        let (callback, window) = handle.beside(callback, || handle.window(window));
        match window {
            Ok((start, slack)) => self.schedule_once(callback, |handle| handle.tick_within(start, slack)),
            Err(kind) => Err(ScheduleError::new(kind, callback)),
        }
    }
}

impl ShardHandle {
    /// The start of a window, and its length.
    pub(crate) fn window(
        &self,
        window: RangeInclusive<impl WindowEnd>,
    ) -> Result<(Nanos, Nanos), ScheduleErrorKind> {
        let (start, end) = window.into_inner();
        if end < start {
            return Err(ScheduleErrorKind::WindowEndsBeforeStart { by: start - end });
        }
        let [start, end] = sealed::End::times([start, end], self);
        Ok((start, end - start))
    }
}

/// An end of a window, as of [`Timer::schedule_within`]: an [`Instant`], or a [`Duration`] from the
/// call on. No other type can be one.
pub trait WindowEnd: sealed::End {}

impl WindowEnd for Instant {}
impl WindowEnd for Duration {}

mod sealed {
    use super::{Duration, Instant, Nanos, ShardHandle, Sub, nanos};

    pub trait End: Copy + Ord + Sub<Output = Duration> {
        /// The ends by the shard's time, all from one reading of its clock.
        fn times(ends: [Self; 2], handle: &ShardHandle) -> [Nanos; 2];
    }

    impl End for Instant {
        fn times(ends: [Self; 2], handle: &ShardHandle) -> [Nanos; 2] {
            ends.map(|at| handle.time.since_start(at))
        }
    }

    impl End for Duration {
        fn times(ends: [Self; 2], handle: &ShardHandle) -> [Nanos; 2] {
            let now = handle.now_or_later();
            ends.map(|after| now.saturating_add(nanos(after)))
        }
    }
}

/// The number within `first..=last` that is a multiple of the greatest power of two.
///
/// Let `k` be the highest bit in which `first - 1` and `last` differ. Then `last` with all bits
/// below `k` cleared is within the range, and no multiple of a higher power of two is.
pub(super) fn roundest(first: Tick, last: Tick) -> Tick {
    let Some(before) = first.checked_sub(1) else { return 0 };
    let highest = (before ^ last).checked_ilog2().unwrap_or(0);
    last >> highest << highest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roundest_number_is_found() {
        let power = |n: Tick| if n == 0 { Tick::BITS } else { n.trailing_zeros() };
        for first in 0..130 {
            for last in first..140 {
                let found = roundest(first, last);
                let best = (first..=last).map(power).max();
                assert!((first..=last).contains(&found), "{first}..={last}: {found}");
                assert_eq!(Some(power(found)), best, "{first}..={last}: {found}");
            }
        }
        assert_eq!(roundest(Tick::MAX, Tick::MAX), Tick::MAX);
        assert_eq!(roundest(1, Tick::MAX), 1 << 63);
    }

    #[cfg(not(any(shardwheel_loom, fuzzing)))]
    #[test]
    fn vectors_of_windows() {
        use crate::vectors::{numbers, show};
        for (a, b) in numbers(1, 100).into_iter().zip(numbers(2, 100)) {
            let (first, last) = (a.min(b), a.max(b));
            show("roundest", &[first, last], &[roundest(first, last)]);
        }
    }
}
