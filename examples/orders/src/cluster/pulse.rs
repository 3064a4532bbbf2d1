//! When an owner has made progress: the owner reports it, and the worker looks.
//!
//! Progress is a message that is decided and whose result stands, the first time that an owner under this
//! lease has come so far. It is also the answer of the log's leader that there are no more messages, while
//! no tick is on its way. An owner that only begins again and reads the same messages, or waits for a
//! message that does not come, makes none. The worker renews a lease only while its owner
//! makes progress ([`patience`]); another worker may have more luck.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::reader::QUIET;

/// Leases without progress, after which an owner gives its partition up.
const LEASES: u32 = 10;

#[derive(Clone, Debug)]
pub(crate) struct Pulse(Arc<Mutex<Progress>>);

#[derive(Debug)]
struct Progress {
    last: Instant,
    /// The number of the last message that owners under this lease have applied.
    input: u64,
}

impl Pulse {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Progress { last: Instant::now(), input: 0 })))
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner makes progress.
    pub(crate) fn beat(&self) {
        self.progress().last = Instant::now();
    }

    /// The owner has come as far as a message. That is progress if no owner before it has.
    pub(crate) fn reached(&self, input: u64) {
        let mut progress = self.progress();
        if input > progress.input {
            *progress = Progress { last: Instant::now(), input };
        }
    }

    /// When the owner made progress last.
    pub(crate) fn last(&self) -> Instant {
        self.progress().last
    }
}

/// How long an owner may make no progress. An idle owner makes some each [`QUIET`], and a stream whose
/// server died has no leader for a while.
pub(crate) fn patience(lease: Duration) -> Duration {
    (lease * LEASES).max(QUIET * 3)
}
