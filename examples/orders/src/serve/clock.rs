//! The shop's time: milliseconds since 1970 that never go back.
//!
//! Within a run it follows the monotonic clock. At a start it begins at the wall clock's time, or at
//! the time of the last commit if that is later. So a wall clock that is set back over a restart
//! makes no order's wait shorter than it was promised, and `decided_at_ms` never decreases. Such a
//! restart makes checks late by the time during which the program was not there, and by up to
//! [`HEARTBEAT`](super::writer::HEARTBEAT), after which a program with pending orders commits its
//! time if it has nothing else to commit. A wall clock that is set forward over a restart makes
//! checks early, which no program can tell from a long absence.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShopClock {
    began: u64,
    start: Instant,
}

impl ShopClock {
    /// A clock that showed `began` at `start`.
    pub(crate) fn new(began: u64, start: Instant) -> Self {
        Self { began, start }
    }

    /// The time of what comes in: rounded up, so that a wait that begins is not shorter than promised.
    pub(crate) fn now(&self) -> u64 {
        self.began + self.start.elapsed().as_nanos().div_ceil(1_000_000) as u64
    }

    /// How long it is until `at`; zero if `at` has passed.
    pub(crate) fn until(&self, at: u64) -> Duration {
        Duration::from_millis(at.saturating_sub(self.began)).saturating_sub(self.start.elapsed())
    }
}

/// The wall clock's time, in ms since 1970. A restart begins with the present ms, not the next one.
pub(crate) fn wall() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
