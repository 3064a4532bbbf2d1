//! Recurring timers: the calls that schedule one, at a fixed rate or by any schedule, and its task.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::inline::{Kind, Occasion, Run};
use super::schedule::{Every, Schedule};
use super::time::{Nanos, Time};
use super::{Timer, TimerKey};
use crate::error::{ScheduleError, ScheduleErrorKind};
use crate::tick::Tick;
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
        self.schedule_recurring(schedule, callback, |callback, occasion, due| {
            let late = occasion.now().saturating_duration_since(due);
            callback(Occurrence { key: occasion.key, due, late })
        })
    }

    #[cfg_attr(feature = "introspect", track_caller)]
    fn schedule_recurring<S, F>(
        &self,
        schedule: S,
        callback: F,
        call: fn(&mut F, Occasion<'_>, Instant) -> ControlFlow<()>,
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

/// One occurrence of a recurring timer, for the callback of
/// [`Timer::schedule_repeating`](crate::Timer::schedule_repeating).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Occurrence {
    /// The timer's key.
    pub key: TimerKey,
    /// When this occurrence was due, by the timer's schedule. After a reschedule it is the time of
    /// the tick, unless that is the tick of the schedule's own time.
    pub due: Instant,
    /// How long after that the callback was called.
    pub late: Duration,
}

/// A callback that recurs by `schedule`.
struct Recurring<S, F> {
    /// Quiet, so that its drop never panics beside the callback's.
    schedule: DropQuietly<S>,
    /// When the callback was due last; before the first run, when it is due first.
    previous: Instant,
    /// The tick for `previous`.
    armed_for: Tick,
    /// The user's, and how it is called for the occurrence that was due then. `Break` ends the
    /// timer.
    callback: F,
    call: fn(&mut F, Occasion<'_>, Instant) -> ControlFlow<()>,
    /// Whether the callback has asked for no further occurrence, or the schedule has panicked.
    has_ended: bool,
}

impl<S, F> Recurring<S, F> {
    /// When the occurrence of tick `due` was due. A timer that was rescheduled continues from its
    /// new deadline; `None` if an `Instant` cannot represent that.
    fn due(&self, due: Tick, time: &Time) -> Option<Instant> {
        if due == self.armed_for { Some(self.previous) } else { time.instant(time.start_of(due)) }
    }
}

impl<S: Schedule, F: Send + 'static> Run for Box<Recurring<S, F>> {
    fn kind(&self) -> Kind {
        Kind::Recurring
    }

    fn run(&mut self, occasion: Occasion<'_>) {
        // A panic of the schedule ends the timer, one of the callback does not.
        self.has_ended = true;
        let is_due = self.schedule.is_due();
        self.has_ended = false;
        if is_due {
            let due = self.due(occasion.deadline, occasion.time).unwrap_or(self.previous);
            self.has_ended = (self.call)(&mut self.callback, occasion, due).is_break();
        }
    }

    fn next(&mut self, due: Tick, time: &Time, now: Instant) -> Option<Nanos> {
        if self.has_ended {
            return None;
        }
        self.previous = self.due(due, time)?;
        let next = self.schedule.next_after(self.previous, now)?;
        let mut at = time.since_start(next);
        if next <= self.previous {
            // With a schedule that does not advance no time would pass: due after now instead.
            at = at.max(time.since_start(now).saturating_add(1));
        }
        (self.previous, self.armed_for) = (next, time.tick_for(at));
        Some(at)
    }

    fn drop_schedule(&mut self) {
        self.schedule.drop_now();
    }
}
