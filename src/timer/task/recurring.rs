//! The task of a recurring timer: a callback, and the schedule that says when it is due next.

use std::ops::ControlFlow;

use super::body::{RunContext, TaskBody, TaskKind};
use crate::tick::Tick;
use crate::time::{Duration, Instant};
use crate::timer::key::TimerKey;
use crate::timer::time::{Nanos, Schedule, Time};
use crate::unwind::DropQuietly;

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
pub(in crate::timer) struct Recurring<S, F> {
    /// Quiet, so that its drop never panics beside the callback's.
    pub(in crate::timer) schedule: DropQuietly<S>,
    /// When the callback was due last; before the first run, when it is due first.
    pub(in crate::timer) previous: Instant,
    /// The tick for `previous`.
    pub(in crate::timer) armed_for: Tick,
    /// The user's, and how it is called for the occurrence that was due then. `Break` ends the
    /// timer.
    pub(in crate::timer) callback: F,
    pub(in crate::timer) call: fn(&mut F, RunContext<'_>, Instant) -> ControlFlow<()>,
    /// Whether the callback has asked for no further occurrence, or the schedule has panicked.
    pub(in crate::timer) has_ended: bool,
}

impl<S, F> Recurring<S, F> {
    /// When the occurrence of tick `due` was due. A timer that was rescheduled continues from its
    /// new deadline; `None` if an `Instant` cannot represent that.
    fn due(&self, due: Tick, time: &Time) -> Option<Instant> {
        if due == self.armed_for { Some(self.previous) } else { time.instant(time.start_of(due)) }
    }
}

impl<S: Schedule, F: Send + 'static> TaskBody for Box<Recurring<S, F>> {
    fn kind(&self) -> TaskKind {
        TaskKind::Recurring
    }

    fn run(&mut self, context: RunContext<'_>) {
        // A panic of the schedule ends the timer, one of the callback does not.
        self.has_ended = true;
        let is_due = self.schedule.is_due();
        self.has_ended = false;
        if is_due {
            let due = self.due(context.deadline, context.time).unwrap_or(self.previous);
            self.has_ended = (self.call)(&mut self.callback, context, due).is_break();
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
