//! The timer of a `tokio` runtime of its own, bare: its sleeps are polled once by the threads that place them,
//! with a waker that only writes the note. There are no tasks, so nothing is spawned, queued or stolen: what
//! remains is the timer.
//!
//! Its ticks are a millisecond, whatever is asked for. A sleep and its waker stay with the thread that placed
//! them, so that firing frees nothing.
//!
//! There are two of it. The alternative timer has a wheel for each worker, and is only there where the whole program
//! was built with `--cfg tokio_unstable`. A thread that is no worker, as those that place here, hands each sleep over
//! through a list behind the scheduler's mutex, and wakes a worker to take it in.

use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::time::{Sleep, sleep, sleep_until};

use crate::engine::{Live, Polled, Sleeps, poll_once};
use crate::ledger::Note;

const WORKERS: usize = 2;

/// A runtime that has nothing to do but its timers; with the alternative one where `ALTERNATIVE`.
pub(crate) struct Bare<const ALTERNATIVE: bool> {
    pub(crate) runtime: Runtime,
}

/// The timer that every runtime has.
pub(crate) type TokioTime = Bare<false>;

/// The alternative one.
#[cfg(tokio_unstable)]
pub(crate) type TokioAlternative = Bare<true>;

impl<const ALTERNATIVE: bool> Live for Bare<ALTERNATIVE> {
    const NAME: &'static str = if ALTERNATIVE { "tokio alternative" } else { "tokio" };

    type Kept = Polled<Sleep>;

    fn start(_: Duration) -> Self {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(WORKERS).enable_time();
        #[cfg(tokio_unstable)]
        if ALTERNATIVE {
            builder.enable_alt_timer();
        }
        Self { runtime: builder.build().expect("a runtime can be started") }
    }

    fn enter(&self) -> impl Sized {
        self.runtime.enter()
    }

    fn place(&self, due: Instant, note: Note) -> Self::Kept {
        poll_once(sleep_until(due.into()), note)
    }
}

impl<const ALTERNATIVE: bool> Sleeps for Bare<ALTERNATIVE> {
    #[inline]
    fn sleep(&self, duration: Duration) -> impl Future {
        sleep(duration)
    }
}
