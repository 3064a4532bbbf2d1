//! What a recurring timer's callback gets, and how it ends its timer.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::key::TimerKey;
use super::shard_handle::ShardHandle;
use crate::tick::Tick;

/// One occurrence of a recurring timer, for the callback of
/// [`Timer::schedule_repeating`](crate::Timer::schedule_repeating).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Occurrence {
    /// The timer's key.
    pub key: TimerKey,
    /// When this occurrence was due, by the timer's schedule. After a reschedule to another tick it is
    /// the time of that tick.
    pub due: Instant,
    /// How long after that the callback was called.
    pub late: Duration,
}

/// The circumstances in which a task runs.
#[derive(Clone, Copy)]
pub(crate) struct Occasion<'h> {
    pub(crate) key: TimerKey,
    /// The tick at which the task was due.
    pub(crate) deadline: Tick,
    pub(crate) handle: &'h ShardHandle,
}

/// The callback of a recurring timer.
pub(super) trait Callback: Send + 'static {
    /// Calls it for the occurrence that was due at `due`. `Break` ends the timer.
    fn call(&mut self, occasion: Occasion<'_>, due: Instant) -> ControlFlow<()>;
}

/// A callback without arguments, which recurs by its schedule alone.
pub(super) struct Untold<F>(pub(super) F);

impl<F: FnMut() + Send + 'static> Callback for Untold<F> {
    fn call(&mut self, _occasion: Occasion<'_>, _due: Instant) -> ControlFlow<()> {
        (self.0)();
        ControlFlow::Continue(())
    }
}

/// A callback that gets its occurrence, and may end its timer.
pub(super) struct Told<F>(pub(super) F);

impl<F: FnMut(Occurrence) -> ControlFlow<()> + Send + 'static> Callback for Told<F> {
    fn call(&mut self, occasion: Occasion<'_>, due: Instant) -> ControlFlow<()> {
        let late = occasion.handle.present_instant().saturating_duration_since(due);
        (self.0)(Occurrence { key: occasion.key, due, late })
    }
}
