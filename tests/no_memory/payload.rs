//! Payloads that are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many payloads there are, not dropped yet.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

pub(crate) struct Payload {
    pub(crate) number: usize,
    count: Count,
}

impl Count {
    /// Makes no request for memory.
    pub(crate) fn payload(&self, number: usize) -> Payload {
        self.0.fetch_add(1, Ordering::Relaxed);
        Payload { number, count: self.clone() }
    }

    pub(crate) fn living(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.count.0.fetch_sub(1, Ordering::Relaxed);
    }
}
