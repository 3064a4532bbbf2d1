//! When an owner has made progress: the owner reports it, and the worker looks.
//!
//! Progress is a message that is decided and whose result stands, the first time that an owner of this
//! worker has come so far. It is also the answer of the log's leader that there are no more messages, while
//! no tick is on its way. An owner that only begins again and reads the same messages, or waits for a
//! message that does not come, makes none. The worker keeps a partition only while its
//! owner makes progress ([`patience`]); another worker may have more luck.
//!
//! A pulse also has what `/healthz` and `/metrics` tell of the partition. It lasts as long as the worker has
//! the partition, over all owners that work for it.

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
    /// The number of the last message that owners of this worker have applied.
    input: u64,
    /// There was progress.
    made: bool,
    vitals: Vitals,
}

/// How a partition is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vitals {
    /// The oldest message that has no answer yet, and since when it waits.
    pub(crate) unanswered: Option<(u64, Instant)>,
    /// Orders that wait for their check.
    pub(crate) pending: u64,
    /// Why the last owner ended, if none has made progress since.
    pub(crate) failure: Option<String>,
}

impl Pulse {
    pub(crate) fn new() -> Self {
        let vitals = Vitals::default();
        Self(Arc::new(Mutex::new(Progress { last: Instant::now(), input: 0, made: false, vitals })))
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner makes progress.
    pub(crate) fn beat(&self) {
        let mut progress = self.progress();
        (progress.last, progress.made) = (Instant::now(), true);
        progress.vitals.failure = None;
    }

    /// The owner has come as far as a message, and has answered all up to it. That is progress if no owner
    /// before it has.
    pub(crate) fn reached(&self, input: u64) {
        let mut progress = self.progress();
        progress.vitals.unanswered.take_if(|(first, _)| *first <= input);
        if input > progress.input {
            (progress.last, progress.made, progress.input) = (Instant::now(), true, input);
            progress.vitals.failure = None;
        }
    }

    /// A message needs an answer, and has waited for a while.
    pub(crate) fn waits(&self, input: u64, age: Duration) {
        let unanswered = &mut self.progress().vitals.unanswered;
        if unanswered.is_none_or(|(first, _)| input < first) {
            *unanswered = Some((input, Instant::now().checked_sub(age).unwrap_or_else(Instant::now)));
        }
    }

    pub(crate) fn pending(&self, orders: usize) {
        self.progress().vitals.pending = orders as u64;
    }

    /// The owner has ended.
    pub(crate) fn failed(&self, failure: String) {
        self.progress().vitals.failure = Some(failure);
    }

    pub(crate) fn vitals(&self) -> Vitals {
        self.progress().vitals.clone()
    }

    /// When an owner made progress, if one did.
    pub(crate) fn progressed(&self) -> Option<Instant> {
        let progress = self.progress();
        progress.made.then_some(progress.last)
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
