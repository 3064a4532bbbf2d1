//! The counters of one shard of a timer.
//!
//! The shard's worker writes them, so they are not contended. Two exceptions: an executor's threads
//! also raise `longest`, and any thread that runs or drops user code also counts `panics`.

use super::lateness;
use super::time::Nanos;
use crate::sync::Ordering;
use crate::sync::plain::AtomicU64;
use crate::tick::Tick;

/// The counters of one shard. Times are in nanoseconds.
pub(crate) struct Counts {
    pub(super) panics: AtomicU64,
    pub(super) longest: AtomicU64,
    pub(super) latest: AtomicU64,
    /// The lateness of all timers that fired, together.
    pub(super) late: AtomicU64,
    /// How many timers there were in each bucket of [`lateness`].
    pub(super) lateness: Box<[AtomicU64]>,
    /// The tick of the timer that the worker fired last, or until which it sleeps.
    pub(super) at_work_for: AtomicU64,
}

impl Counts {
    pub(crate) fn new() -> Self {
        let [panics, longest, latest, late] = std::array::from_fn(|_| AtomicU64::new(0));
        let at_work_for = AtomicU64::new(Tick::MAX);
        let lateness = (0..lateness::BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Self { panics, longest, latest, late, lateness, at_work_for }
    }

    pub(crate) fn count_panic(&self) {
        // Ordering: Relaxed, a count.
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a timer due at tick `deadline` fires now; for the worker.
    #[inline]
    pub(crate) fn note_fired(&self, deadline: Tick, late: Nanos) {
        // Ordering: Relaxed, a figure that one thread writes and others read.
        self.at_work_for.store(deadline, Ordering::Relaxed);
        // Ordering: Relaxed, as above.
        let sum = self.late.load(Ordering::Relaxed).saturating_add(late);
        // Ordering: Relaxed, as above.
        self.late.store(sum, Ordering::Relaxed);
        // Ordering: Relaxed, as above.
        if late > self.latest.load(Ordering::Relaxed) {
            // Ordering: Relaxed, as above.
            self.latest.store(late, Ordering::Relaxed);
        }
        let bucket = &self.lateness[lateness::bucket_of(late)];
        // Ordering: Relaxed, as above.
        let count = bucket.load(Ordering::Relaxed);
        // Ordering: Relaxed, as above.
        bucket.store(count + 1, Ordering::Relaxed);
    }

    /// Notes how long a callback has run.
    #[inline]
    pub(crate) fn note_callback(&self, took: Nanos) {
        // Ordering: Relaxed, a figure; the load spares most callbacks the read-modify-write.
        if took > self.longest.load(Ordering::Relaxed) {
            // Ordering: Relaxed, as above.
            self.longest.fetch_max(took, Ordering::Relaxed);
        }
    }

    /// Notes the tick until which the worker sleeps.
    pub(crate) fn note_sleep(&self, until: Option<Tick>) {
        // Ordering: Relaxed, a figure.
        self.at_work_for.store(until.unwrap_or(Tick::MAX), Ordering::Relaxed);
    }
}
