//! How a shutdown waits for a worker or a driver to go on.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::clock::unpoisoned;

/// Counts changes, and wakes the shutdown that waits for the next one. Any thread counts.
pub(crate) struct Changes {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Changes {
    pub(crate) fn new() -> Self {
        Self { count: Mutex::new(0), changed: Condvar::new() }
    }

    /// Returns the count, for [`wait`](Self::wait). The caller looks at what changes after this.
    pub(crate) fn look(&self) -> u64 {
        *self.count()
    }

    /// Waits until there has been a change since `seen`, or until `limit` has passed.
    pub(crate) fn wait(&self, seen: u64, limit: Option<Duration>) {
        let is_old = |count: &mut u64| *count == seen;
        let count = self.count();
        match limit {
            None => drop(unpoisoned(self.changed.wait_while(count, is_old))),
            Some(limit) => drop(unpoisoned(self.changed.wait_timeout_while(count, limit, is_old))),
        }
    }

    /// Makes a waiting shutdown look again.
    pub(crate) fn note(&self) {
        *self.count() += 1;
        self.changed.notify_all();
    }

    fn count(&self) -> MutexGuard<'_, u64> {
        unpoisoned(self.count.lock())
    }
}
