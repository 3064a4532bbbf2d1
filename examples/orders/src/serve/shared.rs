//! What the writer and the request handlers share.
//!
//! A server is well if its store is open, its disk has room, and nothing waits for long: no request for its
//! answer, no group for its commit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::store::{Disk, History, StoreError};

use super::metrics::{Figure, Metrics};

/// A server is not well while something waits for longer than this.
const LATE: Duration = Duration::from_secs(10);

/// What waits: when each began, by a number that grows.
type Waits = BTreeMap<u64, Instant>;

/// Something that waits, until this is dropped.
pub(crate) struct Waiting<'a> {
    shared: &'a Shared,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.shared.waits().remove(&self.number);
    }
}

/// The store for readers, while it is open, and the counts.
#[derive(Default)]
pub(crate) struct Shared {
    /// Written by the writer alone.
    store: RwLock<Option<Arc<Disk>>>,
    /// The last commit found no room. Written by the writer alone.
    full: AtomicBool,
    /// A damaged page was met, and said so.
    damaged: AtomicBool,
    /// Requests without an answer, and the group that is being committed.
    waits: Mutex<Waits>,
    pub(crate) metrics: Metrics,
}

impl Shared {
    /// The store, if it is recovered. A reader holds it for one look-up.
    pub(crate) fn store(&self) -> Option<Arc<dyn History>> {
        let store = self.store.read().unwrap_or_else(PoisonError::into_inner);
        store.clone().map(|store| store as Arc<dyn History>)
    }

    /// Says once that a reader has met a damaged page.
    pub(crate) fn failed(&self, error: StoreError) -> StoreError {
        let broken = matches!(error, StoreError::Broken { .. });
        // Ordering: Relaxed; the flag orders nothing.
        if broken && !self.damaged.swap(true, Ordering::Relaxed) {
            say!("error: {error}");
        }
        error
    }

    pub(crate) fn open(&self, store: Arc<Disk>, took: Duration, pending: usize) {
        self.metrics.of(Figure::Recoveries).add(1);
        self.metrics.of(Figure::RecoveryMicros).set(took.as_micros() as u64);
        self.metrics.of(Figure::Pending).set(pending as u64);
        self.set(Some(store));
    }

    pub(crate) fn close(&self) {
        self.set(None);
    }

    fn set(&self, store: Option<Arc<Disk>>) {
        *self.store.write().unwrap_or_else(PoisonError::into_inner) = store;
    }

    pub(crate) fn is_full(&self) -> bool {
        // Ordering: Relaxed; a request that comes at the same time may be early or late.
        self.full.load(Ordering::Relaxed)
    }

    pub(crate) fn set_full(&self, full: bool) {
        // Ordering: Relaxed; as above.
        self.full.store(full, Ordering::Relaxed);
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something waits from now on, until the result is dropped.
    pub(crate) fn wait(&self) -> Waiting<'_> {
        let mut waits = self.waits();
        let number = waits.last_key_value().map_or(0, |(number, _)| number + 1);
        waits.insert(number, Instant::now());
        Waiting { shared: self, number }
    }

    /// How long the oldest that waits has waited.
    fn oldest_wait(&self) -> Duration {
        self.waits().first_key_value().map(|(_, begin)| begin.elapsed()).unwrap_or_default()
    }

    /// How long something has waited, if that is too long.
    pub(crate) fn late(&self) -> Option<Duration> {
        Some(self.oldest_wait()).filter(|wait| *wait >= LATE)
    }

    /// The text of `GET /metrics`.
    pub(crate) fn metrics_text(&self) -> String {
        let is_well = self.store().is_some() && !self.is_full() && self.late().is_none();
        self.metrics.of(Figure::Ready).set(u64::from(is_well));
        self.metrics.of(Figure::UnansweredMillis).set(self.oldest_wait().as_millis() as u64);
        self.metrics.text()
    }
}
