//! The calls that schedule a recurring timer: at a fixed rate, or by any schedule.

use std::time::Duration;

use super::schedule::{Every, Schedule};
use super::task::{self, Recurring};
use super::{Timer, TimerKey};
use crate::error::{ScheduleError, ScheduleErrorKind};
use crate::unwind::{self, DropQuietly};

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
    /// As [`schedule_after`](Self::schedule_after), and if the period is zero.
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
        let handle = self.handle();
        // The clock and the schedule may panic, and so may the drops of the schedule and the
        // callback.
        let mut schedule = DropQuietly::new(schedule);
        let (callback, first) = unwind::beside(callback, || {
            let first = schedule.next(handle.now_instant())?;
            Some((first, handle.tick_for(first)))
        });
        let Some((first, tick)) = first else {
            handle.discard(schedule.into_inner());
            return Err(ScheduleError::new(ScheduleErrorKind::NoOccurrence, callback));
        };
        let schedule = schedule.into_inner();
        let scheduled =
            task::schedule_in_place(&handle.scheduler, tick, Recurring::new(schedule, first, tick, callback));
        let key = scheduled.map_err(|refused| {
            refused.map(|mut recurring| {
                let callback = recurring.take_callback();
                handle.discard(recurring);
                callback
            })
        })?;
        Ok(TimerKey::recurring(key))
    }
}
