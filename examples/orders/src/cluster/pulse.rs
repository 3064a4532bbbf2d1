//! When an owner has made progress: the owner reports it, and the worker looks.
//!
//! Progress is a message that is decided and whose result stands. It is also the answer of the log's
//! leader that there are no more messages, while no tick is on its way. An owner that only begins again,
//! or waits for a message that does not come, makes none. The worker renews a lease only while its owner
//! makes progress ([`patience`]); another worker may have more luck.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::reader::QUIET;

/// Leases without progress, after which an owner gives its partition up.
const LEASES: u32 = 10;

#[derive(Clone, Debug)]
pub(crate) struct Pulse(Arc<Mutex<Instant>>);

impl Pulse {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    /// The owner makes progress.
    pub(crate) fn beat(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// When the owner made progress last.
    pub(crate) fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long an owner may make no progress. An idle owner makes some each [`QUIET`], and a stream whose
/// server died has no leader for a while.
pub(crate) fn patience(lease: Duration) -> Duration {
    (lease * LEASES).max(QUIET * 3)
}
