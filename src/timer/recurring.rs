//! The calls that schedule a recurring timer: at a fixed rate, or by any schedule.

use std::ops::ControlFlow;
use std::time::Duration;

use super::occurrence::{Callback, Occurrence, Told, Untold};
use super::schedule::{Every, Schedule};
use super::task::{self, Recurring};
use super::{Timer, TimerKey};
use crate::error::{ScheduleError, ScheduleErrorKind};

impl Timer {
    /// Calls `callback` every `period`, starting one period from now.
    ///
    /// The rate is fixed: missed occurrences are made up for. [`Every`] with
    /// [`schedule_with`](Self::schedule_with) offers other choices.
    ///
    /// The key names the timer for all its occurrences. A cancel while the callback runs prevents
    /// all later occurrences.
    ///
    /// # Errors
    ///
    /// As [`schedule_after`](Self::schedule_after), and if the period is zero, or so long that the
    /// system's `Instant` cannot represent its end.
    ///
    /// # Performance
    ///
    /// As [`schedule_after`](Self::schedule_after). The callback is boxed once. An occurrence
    /// allocates nothing: the same node is armed anew.
    pub fn schedule_every<F>(&self, period: Duration, callback: F) -> Result<TimerKey, ScheduleError<F>>
    where
        F: FnMut() + Send + 'static,
    {
        if period.is_zero() {
            return Err(ScheduleError::new(ScheduleErrorKind::ZeroPeriod, callback));
        }
        self.schedule_with(Every::new(period), callback)
    }

    /// Calls `callback` at each time that `schedule` returns, until it returns `None`.
    ///
    /// # Errors
    ///
    /// As [`schedule_after`](Self::schedule_after), and if the schedule has no first occurrence. An
    /// [`Every`] has none if the system's `Instant` cannot represent the end of its first period.
    ///
    /// # Performance
    ///
    /// As [`schedule_every`](Self::schedule_every).
    pub fn schedule_with<S, F>(&self, schedule: S, callback: F) -> Result<TimerKey, ScheduleError<F>>
    where
        S: Schedule,
        F: FnMut() + Send + 'static,
    {
        self.schedule_recurring(schedule, callback, Untold, |Untold(callback)| callback)
    }

    /// Calls `callback` every `period`, starting one period from now, until it returns `Break`.
    ///
    /// As [`schedule_every`](Self::schedule_every), but the callback gets an [`Occurrence`]: its
    /// timer's key, when the occurrence was due, and how late it is.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Duration;
    /// use shardwheel::{ManualClock, Timer};
    ///
    /// let clock = ManualClock::new();
    /// let timer = Timer::builder().clock(clock.clone()).build()?;
    /// let mut attempts = 0;
    /// let key = timer.schedule_repeating(Duration::from_secs(5), move |occurrence| {
    ///     println!("{:?}, {:?} late", occurrence.key, occurrence.late);
    ///     attempts += 1;
    ///     if attempts < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    /// })?;
    ///
    /// clock.advance(Duration::from_secs(60));
    /// assert_eq!(timer.stats().fired, 3);
    /// assert!(!timer.is_pending(key));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`schedule_every`](Self::schedule_every).
    ///
    /// # Performance
    ///
    /// As [`schedule_every`](Self::schedule_every), and one more reading of the clock for each
    /// occurrence.
    pub fn schedule_repeating<F>(&self, period: Duration, callback: F) -> Result<TimerKey, ScheduleError<F>>
    where
        F: FnMut(Occurrence) -> ControlFlow<()> + Send + 'static,
    {
        if period.is_zero() {
            return Err(ScheduleError::new(ScheduleErrorKind::ZeroPeriod, callback));
        }
        self.schedule_repeating_with(Every::new(period), callback)
    }

    /// Calls `callback` at each time that `schedule` returns, until either of them ends it; as
    /// [`schedule_repeating`](Self::schedule_repeating).
    ///
    /// # Errors
    ///
    /// As [`schedule_with`](Self::schedule_with).
    pub fn schedule_repeating_with<S, F>(
        &self,
        schedule: S,
        callback: F,
    ) -> Result<TimerKey, ScheduleError<F>>
    where
        S: Schedule,
        F: FnMut(Occurrence) -> ControlFlow<()> + Send + 'static,
    {
        self.schedule_recurring(schedule, callback, Told, |Told(callback)| callback)
    }

    /// Schedules the callback that `wrap` makes of the user's; `unwrap` turns it back.
    fn schedule_recurring<S, F, C>(
        &self,
        schedule: S,
        callback: F,
        wrap: impl FnOnce(F) -> C,
        unwrap: impl FnOnce(C) -> F,
    ) -> Result<TimerKey, ScheduleError<F>>
    where
        S: Schedule,
        C: Callback,
    {
        let handle = self.handle();
        // The clock and the schedule may panic, and so may the drops of the schedule and the
        // callback.
        let first = |schedule: &mut S| {
            let first = schedule.next(handle.now_instant())?;
            Some((first, handle.tick_for(first)))
        };
        let (callback, (schedule, first)) = handle.with(callback, |_| handle.with(schedule, first));
        let Some((first, tick)) = first else {
            handle.discard(schedule);
            return Err(ScheduleError::new(ScheduleErrorKind::NoOccurrence, callback));
        };
        let recurring = Recurring::new(schedule, first, tick, wrap(callback));
        let key = task::schedule(&handle.scheduler, tick, Box::new(recurring)).map_err(|refused| {
            refused.map(|recurring| {
                let (schedule, callback) = recurring.into_parts();
                handle.discard(schedule);
                unwrap(callback)
            })
        })?;
        Ok(TimerKey::recurring(key))
    }
}
