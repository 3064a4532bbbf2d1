//! What the writer and the request handlers share.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::store::{Disk, History};

use super::metrics::Metrics;

/// The store for readers, while it is open, and the counts.
#[derive(Default)]
pub(crate) struct Shared {
    /// Written by the writer alone.
    store: RwLock<Option<Arc<Disk>>>,
    pub(crate) metrics: Metrics,
}

impl Shared {
    /// The store, if it is recovered. A reader holds it for one look-up.
    pub(crate) fn store(&self) -> Option<Arc<dyn History>> {
        let store = self.store.read().unwrap_or_else(PoisonError::into_inner);
        store.clone().map(|store| store as Arc<dyn History>)
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
        self.metrics.ready.set(u64::from(store.is_some()));
        *self.store.write().unwrap_or_else(PoisonError::into_inner) = store;
    }
}
