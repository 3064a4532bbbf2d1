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

/// A sleep that was polled, and the waker that it was polled with. Both are kept until it has fired, so that firing
/// frees neither.
pub(crate) type Polled<S> = (Pin<Box<S>>, Waker);

/// Polls `sleep` once, with a waker that does nothing but write the note.
pub(crate) fn poll_once<S: Future>(sleep: S, note: Note) -> Polled<S> {
    let waker = Waker::from(Arc::new(note));
    let mut sleep = Box::pin(sleep);
    if sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
        note.write();
    }
    (sleep, waker)
}

/// How far ahead `due` is, for engines that take durations alone. They read the clock again, so their deadline comes
/// later than `due` by what passes until then.
pub(crate) fn ahead(due: Instant) -> Duration {
    due.saturating_duration_since(Instant::now())
}

/// Makes futures that wait.
pub(crate) trait Sleeps: Live + Send + 'static {
    /// Waits, from now on; dropping it says that nobody waits any more.
    fn sleep(&self, duration: Duration) -> impl Future;

    /// Does some work with it over and over: on the thread that calls, unless sleeps are to be made elsewhere.
    #[inline]
    fn repeat(self: &Arc<Self>, times: usize, work: impl Fn(&Self) + Send + 'static) {
        (0..times).for_each(|_| work(self));
    }
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
