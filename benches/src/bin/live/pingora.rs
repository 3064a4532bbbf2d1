//! The fast timer of `pingora-timeout`: a `BTreeMap` for each thread that makes timers, in which all that are due in
//! the same ten milliseconds share one entry, and a thread that looks into every map each ten milliseconds, whether
//! anything is due or not.
//!
//! There is one for the whole process. It takes durations alone. It cuts the fraction of a millisecond off a deadline
//! before it rounds up to ten, so a timer that is due within the first millisecond after a multiple of ten may fire
//! early. It looks at whether an entry has fired before it joins those who wait for it: one that fires between the two
//! is lost. It cannot cancel: an entry stays until its deadline, though all who waited for it have gone.

use std::time::{Duration, Instant};

use pingora_timeout::fast_timeout::fast_sleep;

use crate::engine::{Live, Polled, Sleeps, ahead, poll_once};
use crate::ledger::{Ledger, Note};

/// Its clock begins with the first timer, whose deadline may not lie in that clock's first millisecond.
const FIRST: Duration = Duration::from_millis(1);

/// The process's one.
pub(crate) struct Pingora;

impl Live for Pingora {
    const NAME: &'static str = "pingora-timeout";

    type Kept = Polled<dyn Future<Output = ()> + Send>;

    fn start(_: Duration) -> Self {
        drop(poll_once(fast_sleep(FIRST), Ledger::leak(1).note(0)));
        Self
    }

    fn place(&self, due: Instant, note: Note) -> Self::Kept {
        let (sleep, waker) = poll_once(fast_sleep(ahead(due)), note);
        (sleep, waker)
    }
}

impl Sleeps for Pingora {
    #[inline]
    fn sleep(&self, duration: Duration) -> impl Future {
        fast_sleep(duration)
    }
}
