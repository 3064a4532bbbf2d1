//! The keys that the producers share.

use std::sync::OnceLock;

use shardwheel::Key;

use super::PRODUCERS;

/// The greatest number of timers of a producer, and of its published keys; further ones are skipped.
pub(crate) const MOST: usize = 64;

/// A key, and the number of its timer.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    pub(crate) key: Key,
    pub(crate) number: usize,
}

/// The keys that each producer has published, in order.
pub(crate) struct Keys([Box<[OnceLock<Named>]>; PRODUCERS]);

impl Keys {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| (0..MOST).map(|_| OnceLock::new()).collect()))
    }

    /// Publishes a producer's key, if there is room.
    pub(crate) fn publish(&self, producer: usize, at: usize, named: Named) {
        if let Some(place) = self.0[producer].get(at) {
            assert!(place.set(named).is_ok(), "a producer's keys are its own to publish");
        }
    }

    pub(crate) fn get(&self, producer: usize, at: usize) -> Option<Named> {
        self.0[producer].get(at)?.get().copied()
    }
}
