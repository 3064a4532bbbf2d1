//! `Delay` of `futures-timer`: a heap that a thread of its own keeps, and a list without a lock through which it hears
//! of new timers and of dropped ones.
//!
//! There is one for the whole process. It takes durations alone, goes by the deadlines themselves, and every timer
//! that is made or dropped wakes its thread.

use std::time::{Duration, Instant};

use futures_timer::Delay;

use crate::engine::{Live, Polled, Sleeps, ahead, poll_once};
use crate::ledger::Note;

/// The process's one.
pub(crate) struct FuturesTimer;

impl Live for FuturesTimer {
    const NAME: &'static str = "futures-timer";

    type Kept = Polled<Delay>;

    fn start(_: Duration) -> Self {
        Self
    }

    fn place(&self, due: Instant, note: Note) -> Self::Kept {
        poll_once(Delay::new(ahead(due)), note)
    }
}

impl Sleeps for FuturesTimer {
    #[inline]
    fn sleep(&self, duration: Duration) -> impl Future {
        Delay::new(duration)
    }
}
