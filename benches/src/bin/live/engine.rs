//! The traits that every live timer is measured through.
//!
//! Every engine is a [`Live`]; what only some can do (sleeps, closures, cancelling) is a trait of its own, and
//! an engine takes part in what it can do.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use crate::ledger::Note;

/// A timer that runs: it has threads, and goes by the real time.
pub(crate) trait Live: Sync {
    /// What the tables call it.
    const NAME: &'static str;

    /// What a timer's owner has to keep until it has fired.
    type Kept: Send;

    /// Starts it with ticks of this length, where it has a choice.
    fn start(tick: Duration) -> Self;

    /// What a thread holds while it uses the timer.
    fn enter(&self) -> impl Sized {}

    /// Has `note` written when `due` has come, from the engine's own thread.
    fn place(&self, due: Instant, note: Note) -> Self::Kept;
}

/// Polls `sleep` once, with a waker that does nothing but write the note. Both are to be kept until it has fired, so
/// that firing frees nothing.
pub(crate) fn poll_once<S: Future>(sleep: S, note: Note) -> (Pin<Box<S>>, Waker) {
    let waker = Waker::from(Arc::new(note));
    let mut sleep = Box::pin(sleep);
    if sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
        note.write();
    }
    (sleep, waker)
}

/// Makes futures that wait.
pub(crate) trait Sleeps: Live {
    /// Waits; dropping it cancels.
    type Sleep: Future;

    /// A sleep whose deadline counts from now.
    fn sleep(&self, duration: Duration) -> Self::Sleep;
}

/// Calls closures.
pub(crate) trait Schedules: Live {
    /// Names a timer.
    type Key: Copy;

    /// Has `task` called after `delay`, counted from now.
    fn schedule_after<F: FnOnce() + Send + 'static>(&self, delay: Duration, task: F) -> Self::Key;
}

/// Takes closures back.
pub(crate) trait Cancels: Schedules {
    /// Whether the timer was pending; if so, it is cancelled.
    fn cancel(&self, key: Self::Key) -> bool;
}
