//! Recurring timers: the calls that schedule one, at a fixed rate or by any schedule, and its task.

use std::ops::ControlFlow;

use crate::error::{ScheduleError, ScheduleErrorKind};
use crate::time::{Duration, Instant};
use crate::timer::handle::Timer;
use crate::timer::key::TimerKey;
use crate::timer::task::{Occurrence, Recurring, RunContext};
use crate::timer::time::{Every, Schedule};
use crate::unwind::DropQuietly;

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
    #[cfg_attr(feature = "introspect", track_caller)]
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
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn schedule_with<S, F>(&self, schedule: S, callback: F) -> Result<TimerKey, ScheduleError<F>>
    where
        S: Schedule,
        F: FnMut() + Send + 'static,
    {
        self.schedule_recurring(schedule, callback, |callback, _, _| {
            callback();
            ControlFlow::Continue(())
        })
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
    #[cfg_attr(feature = "introspect", track_caller)]
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
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn schedule_repeating_with<S, F>(
        &self,
        schedule: S,
        callback: F,
    ) -> Result<TimerKey, ScheduleError<F>>
    where
        S: Schedule,
        F: FnMut(Occurrence) -> ControlFlow<()> + Send + 'static,
    {
        self.schedule_recurring(schedule, callback, |callback, context, due| {
            let late = context.now().saturating_duration_since(due);
            callback(Occurrence { key: context.key, due, late })
        })
    }

    #[cfg_attr(feature = "introspect", track_caller)]
    fn schedule_recurring<S, F>(
        &self,
        schedule: S,
        callback: F,
        call: fn(&mut F, RunContext<'_>, Instant) -> ControlFlow<()>,
    ) -> Result<TimerKey, ScheduleError<F>>
    where
        S: Schedule,
        F: Send + 'static,
    {
        let handle = self.handle();
        // The clock and the schedule may panic, and so may the drops of the schedule and the
        // callback.
        let first = |schedule: &mut S| {
            let first = schedule.next(handle.now_instant())?;
            Some((first, handle.tick_for(first)))
        };
        let (callback, (schedule, first)) =
            handle.guard.run_beside(callback, |_| handle.guard.run_beside(schedule, first));
        let Some((first, tick)) = first else {
            handle.guard.discard(schedule);
            return Err(ScheduleError::new(ScheduleErrorKind::NoOccurrence, callback));
        };
        let (schedule, has_ended) = (DropQuietly::new(schedule), false);
        let recurring = Recurring { schedule, previous: first, armed_for: tick, callback, call, has_ended };
        let key = handle.schedule(self.members.as_ref(), tick, Box::new(recurring)).map_err(|refused| {
            refused.map(|recurring| {
                let Recurring { schedule, callback, .. } = *recurring;
                handle.guard.discard(schedule.into_inner());
                callback
            })
        })?;
        Ok(TimerKey::recurring(key))
    }
}
