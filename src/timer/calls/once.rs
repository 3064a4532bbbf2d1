//! Timers that fire once: after a delay, at a deadline, or at any time within a window.

use std::ops::RangeInclusive;

use crate::error::ScheduleError;
use crate::tick::Tick;
use crate::time::{Duration, Instant};
use crate::timer::handle::Timer;
use crate::timer::key::TimerKey;
use crate::timer::shard::{ShardHandle, WindowEnd};
use crate::timer::task::fits;

impl Timer {
    /// Calls `callback` once, when `delay` has passed from now.
    ///
    /// The callback never runs early. It runs at most one tick late, plus the `Timer`'s
    /// [slack](crate::TimerBuilder::slack), if it has one, plus the time for which other callbacks
    /// hold up its shard. A delay of zero is due at the next tick. A delay of more than 584 years
    /// never ends.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`], with the callback, if the `Timer` has been shut down, if as many timers
    /// are pending as the `Timer` may hold, or if the system gives no memory for another segment of
    /// timers. The page [`promises`](crate::guide::promises) says what it does without other memory.
    ///
    /// # Performance
    ///
    /// O(1), lock-free. A callback of up to three words is stored in the timer's node, without an
    /// allocation; so is one of four words if one of them is never zero, as a reference is. A
    /// larger callback is boxed. The shard allocates when it grows, and usually when a thread uses
    /// it for the first time.
    #[inline]
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn schedule_after<F>(&self, delay: Duration, callback: F) -> Result<TimerKey, ScheduleError<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        self.schedule_once(callback, |handle| handle.tick_after(delay))
    }

    /// Calls `callback` once, at `deadline`.
    ///
    /// As [`schedule_after`](Self::schedule_after). The deadline is by the `Timer`'s clock, as
    /// [`now`](Self::now) is. One that has passed is due as soon as possible, at the next tick at
    /// the latest.
    ///
    /// # Errors
    ///
    /// As [`schedule_after`](Self::schedule_after).
    #[inline]
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn schedule_at<F>(&self, deadline: Instant, callback: F) -> Result<TimerKey, ScheduleError<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        self.schedule_once(callback, |handle| handle.tick_for(deadline))
    }

    /// Calls `callback` once, at a time within `window`, both ends included: two [`Instant`]s, or two
    /// [`Duration`]s from now, by the `Timer`'s clock ([`now`](Self::now)). The `Timer` chooses the
    /// time so that timers with overlapping windows fire together, which wakes the shard's thread
    /// less often.
    ///
    /// Of the ticks within the window it is the one that is a multiple of the greatest power of
    /// two. So the choice does not depend on when the call is made, windows that contain the chosen
    /// tick of a longer window share it, and the wheel moves the timer less often, because its
    /// buckets begin at such ticks.
    ///
    /// The callback never runs before the window. If no tick begins within the window, it runs at
    /// the first tick after its start. A window that has passed is due at the next tick. A window
    /// of one moment, `at..=at`, is exact to a tick, also if the `Timer` has a
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
        let (callback, window) = handle.read_clock_beside(callback, || handle.window(window));
        match window {
            Ok((start, slack)) => self.schedule_once(callback, |handle| handle.tick_within(start, slack)),
            Err(kind) => Err(ScheduleError::new(kind, callback)),
        }
    }

    /// Schedules a callback that runs once, at the tick that `tick` chooses by the clock.
    #[inline]
    #[cfg_attr(feature = "introspect", track_caller)]
    fn schedule_once<F>(
        &self,
        callback: F,
        tick: impl FnOnce(&ShardHandle) -> Tick,
    ) -> Result<TimerKey, ScheduleError<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        let handle = self.handle();
        let (callback, tick) = handle.read_clock_beside(callback, || tick(handle));
        let has_not_run = "a callback that was refused has not run";
        let key = if const { fits::<Option<F>>() } {
            let scheduled = handle.schedule(self.members.as_ref(), tick, Some(callback));
            scheduled.map_err(|refused| refused.map(|callback| callback.expect(has_not_run)))
        } else {
            let scheduled = handle.schedule(self.members.as_ref(), tick, Some(Box::new(callback)));
            scheduled.map_err(|refused| refused.map(|callback| *callback.expect(has_not_run)))
        };
        Ok(TimerKey::once(key?))
    }
}
