//! What a task does when it is due, and what it is told then.

use std::any::Any;
use std::sync::Arc;

use crate::tick::Tick;
use crate::time::Instant;
use crate::timer::guard::PanicGuard;
use crate::timer::key::TimerKey;
use crate::timer::time::{Nanos, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskKind {
    /// A callback that runs once.
    Once,
    /// A callback that recurs.
    Recurring,
    /// A waker: a future waits.
    Wake,
    /// A value of a delay queue.
    Entry,
}

impl TaskKind {
    /// Whether it is a user's callback: it may run on an executor, its panics have its key, and a
    /// shutdown returns it.
    pub(crate) fn is_callback(self) -> bool {
        matches!(self, Self::Once | Self::Recurring)
    }
}

/// The circumstances in which a task runs.
#[derive(Clone, Copy)]
pub(crate) struct RunContext<'s> {
    pub(crate) key: TimerKey,
    /// The tick at which the task was due.
    pub(crate) deadline: Tick,
    pub(crate) time: &'s Time,
    pub(crate) guard: &'s Arc<PanicGuard>,
    /// The tick that the shard's clock has reached.
    pub(crate) reached: Tick,
}

impl RunContext<'_> {
    /// The time now, at least the shard's own; that alone if the user's clock panics.
    pub(in crate::timer) fn now(&self) -> Instant {
        self.time.present_instant(self.guard, || self.reached)
    }
}

/// What a callback does. `run`, `next` and the drop are user code.
pub(crate) trait TaskBody: Any + Send {
    fn kind(&self) -> TaskKind;

    fn run(&mut self, context: RunContext<'_>);

    /// When the callback is due next. It ran for tick `due`, and the time is `now`.
    fn next(&mut self, _due: Tick, _time: &Time, _now: Instant) -> Option<Nanos> {
        None
    }

    /// Drops a recurring callback's schedule: the drops of both may panic, so each needs a guard of
    /// its own.
    fn drop_schedule(&mut self) {}
}
