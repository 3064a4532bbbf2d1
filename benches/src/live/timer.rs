//! The traits through which every timer that runs in real time is measured.
//!
//! Every engine is a [`Live`]. Sleeps, closures and cancelling are traits of their own, and an
//! engine takes part in the sections that it can do.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use super::ledger::Note;

pub(super) const MILLISECOND: Duration = Duration::from_millis(1);

/// A timer with threads that goes by real time.
pub(super) trait Live: Sync {
    /// Its name in the tables.
    const NAME: &'static str;

    /// What the owner of a timer keeps until it has fired.
    type Kept: Send;

    /// Starts it with ticks of this length, if it has a choice.
    fn start(tick: Duration) -> Self;

    /// Returns what a thread holds while it uses the timer.
    fn enter(&self) -> impl Sized {}

    /// Lets the engine's own thread write `note` at `due`.
    fn place(&self, due: Instant, note: Note) -> Self::Kept;
}

/// Makes futures that wait.
pub(super) trait Sleeps: Live {
    fn sleep(&self, duration: Duration) -> impl Future;
}

/// Calls closures.
pub(super) trait Schedules: Live {
    type Key: Copy;

    fn schedule_after<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) -> Self::Key;
}

/// Cancels closures.
pub(super) trait Cancels: Schedules {
    /// Returns whether the timer was pending.
    fn cancel(&self, key: Self::Key) -> bool;
}

/// A sleep that was polled, and the waker it was polled with. Both are kept until it has fired, so
/// that firing frees neither.
pub(super) type Polled<S> = (Pin<Box<S>>, Waker);

/// Polls `sleep` once, with a waker that writes the note.
pub(super) fn poll_once<S: Future>(sleep: S, note: Note) -> Polled<S> {
    let waker = Waker::from(Arc::new(note));
    let mut sleep = Box::pin(sleep);
    if sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
        note.write();
    }
    (sleep, waker)
}
