//! What the writer and the request handlers share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::store::{Disk, History, StoreError};

use super::metrics::Metrics;

/// The store for readers, while it is open, and the counts.
#[derive(Default)]
pub(crate) struct Shared {
    /// Written by the writer alone.
    store: RwLock<Option<Arc<Disk>>>,
    /// The last commit found no room. Written by the writer alone.
    full: AtomicBool,
    /// A damaged page was met, and said so.
    damaged: AtomicBool,
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

    /// Whether the store was open, and will be again.
    pub(crate) fn was_open(&self) -> bool {
        self.metrics.recoveries.get() > 0
    }

    pub(crate) fn open(&self, store: Arc<Disk>, took: Duration, pending: usize) {
        self.metrics.recoveries.add(1);
        self.metrics.recovery_micros.set(took.as_micros() as u64);
        self.metrics.pending.set(pending as u64);
        self.set(Some(store));
    }

    pub(crate) fn close(&self) {
        self.set(None);
    }

    fn set(&self, store: Option<Arc<Disk>>) {
        let mut place = self.store.write().unwrap_or_else(PoisonError::into_inner);
        *place = store;
        self.metrics.ready.set(u64::from(place.is_some() && !self.is_full()));
    }

    pub(crate) fn is_full(&self) -> bool {
        // Ordering: Relaxed; a request that comes at the same time may be early or late.
        self.full.load(Ordering::Relaxed)
    }

    pub(crate) fn set_full(&self, full: bool) {
        // Ordering: Relaxed; as above.
        self.full.store(full, Ordering::Relaxed);
        self.metrics.ready.set(u64::from(!full && self.store().is_some()));
    }
}
