//! `Timer` of `async-io`, which `smol` runs on: an ordered map of deadlines behind a mutex, and a bounded queue before
//! it that whoever finds it full has to empty.
//!
//! There is one for the whole process, with a thread of its own that waits in the poller. It goes by the deadlines
//! themselves, and a new timer wakes it, the first or not.

use std::time::{Duration, Instant};

use async_io::Timer;

use crate::engine::{Live, Polled, Sleeps, poll_once};
use crate::ledger::Note;

/// The process's one.
pub(crate) struct AsyncIo;

impl Live for AsyncIo {
    const NAME: &'static str = "async-io";

    type Kept = Polled<Timer>;

    fn start(_: Duration) -> Self {
        Self
    }

    fn place(&self, due: Instant, note: Note) -> Self::Kept {
        poll_once(Timer::at(due), note)
    }
}

impl Sleeps for AsyncIo {
    #[inline]
    fn sleep(&self, duration: Duration) -> impl Future {
        Timer::after(duration)
    }
}
