//! The timer of a `tokio` runtime of its own, bare: its sleeps are polled once by the threads that place them,
//! with a waker that only writes the note. There are no tasks, so nothing is spawned, queued or stolen: what
//! remains is the timer.
//!
//! Its ticks are a millisecond, whatever is asked for. A sleep and its waker stay with the thread that placed
//! them, so that firing frees nothing.

use std::pin::Pin;
use std::task::Waker;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::time::{Sleep, sleep, sleep_until};

use crate::engine::{Live, Sleeps, poll_once};
use crate::ledger::Note;

const WORKERS: usize = 2;

/// A runtime that has nothing to do but its timers.
pub(crate) struct TokioTime {
    runtime: Runtime,
}

impl Live for TokioTime {
    const NAME: &'static str = "tokio";

    type Kept = (Pin<Box<Sleep>>, Waker);

    fn start(_: Duration) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(WORKERS).enable_time().build();
        Self { runtime: runtime.expect("a runtime can be started") }
    }

    fn enter(&self) -> impl Sized {
        self.runtime.enter()
    }

    fn place(&self, due: Instant, note: Note) -> Self::Kept {
        poll_once(sleep_until(due.into()), note)
    }
}

impl Sleeps for TokioTime {
    type Sleep = Sleep;

    #[inline]
    fn sleep(&self, duration: Duration) -> Sleep {
        sleep(duration)
    }
}
