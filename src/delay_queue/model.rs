//! The way from a shard's thread to the consumer, for the models.

use std::task::{Poll, Waker};

use super::consumer::Consumer;
use super::entry::{Entry, Shared};
use crate::fallible::{self, Stacked};

/// A queue of numbers without a timer.
pub struct Queue {
    shared: Shared<u64>,
    consumer: Consumer<u64>,
}

impl Queue {
    /// Makes an empty queue.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "a model makes it where it says so")]
    pub fn new() -> Self {
        Self { shared: Shared::new(), consumer: Consumer::new() }
    }

    /// Passes an expired value to the consumer, as a shard's thread does.
    pub fn expire(&self, value: u64) {
        let place = fallible::reserve().expect("a model has memory");
        self.shared.pass_on(self.shared.due(), Stacked::new(place, Entry::of(value)));
    }

    /// Ends the queue, as a shutdown does.
    pub fn end(&self) {
        self.shared.note_end();
    }

    /// The next value; `None` at the end.
    pub fn poll(&self, waker: &Waker) -> Poll<Option<u64>> {
        self.consumer.poll(&self.shared, waker).map(|entry| entry.map(|entry| entry.value))
    }
}
