//! The timer of a `tokio` runtime with two workers and no tasks.
//!
//! The threads that place its sleeps poll them once, with a waker that writes the note, and keep
//! them, so that firing frees nothing. Its ticks are 1 ms.

use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::time::{Sleep, sleep, sleep_until};

use super::ledger::Note;
use super::timer::{Live, Polled, Sleeps, poll_once};

const WORKERS: usize = 2;

pub(super) struct Tokio(Runtime);

impl Live for Tokio {
    const NAME: &'static str = "tokio";

    type Kept = Polled<Sleep>;

    fn start(_: Duration) -> Self {
        let built = Builder::new_multi_thread().worker_threads(WORKERS).enable_time().build();
        Self(built.expect("a runtime can start"))
    }

    fn enter(&self) -> impl Sized {
        self.0.enter()
    }

    fn place(&self, due: Instant, note: Note) -> Self::Kept {
        poll_once(sleep_until(due.into()), note)
    }
}

impl Sleeps for Tokio {
    #[inline]
    fn sleep(&self, duration: Duration) -> impl Future {
        sleep(duration)
    }
}
