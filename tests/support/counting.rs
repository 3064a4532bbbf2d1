//! Counts and logs that callbacks write.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What callbacks logged, in order.
pub(crate) struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Log<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn add(&self, entry: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    /// Takes the entries that were logged since the last call.
    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// A count that several threads change.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    /// Adds one.
    pub(crate) fn one(&self) {
        self.one_more();
    }

    /// Adds one, and returns the new count.
    pub(crate) fn one_more(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// A callback that adds one.
    pub(crate) fn adds(&self) -> impl Fn() + Send + Sync + 'static {
        let count = self.clone();
        move || count.one()
    }

    pub(crate) fn less_one(&self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Adds one to its count when it is dropped.
pub(crate) struct Dropped(pub(crate) Count);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.one();
    }
}
