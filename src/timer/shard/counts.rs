//! The counters of a shard with time, and the histogram of its lateness.

use std::ops::RangeInclusive;

use crate::shard::shared::stats::Counter;
use crate::sync::Ordering;
use crate::sync::plain::AtomicU64;
use crate::tick::Tick;
use crate::timer::time::Nanos;

/// The counters of one shard. Times are in nanoseconds.
///
/// The shard's worker writes them, so they are not contended; an executor's threads also raise
/// `longest` and `recent`. A report sets `recent` to 0.
pub(crate) struct Counts {
    pub(in crate::timer) longest: AtomicU64,
    pub(in crate::timer) recent: AtomicU64,
    pub(in crate::timer) latest: AtomicU64,
    /// The lateness of all timers that fired, together.
    pub(in crate::timer) late: AtomicU64,
    /// How many timers there were in each bucket of [`Lateness`](crate::Lateness).
    pub(in crate::timer) lateness: Box<[Counter]>,
    /// The tick of the timer that the worker fired last, or until which it sleeps.
    pub(in crate::timer) at_work_for: AtomicU64,
}

impl Counts {
    pub(crate) fn new() -> Self {
        let [longest, recent, latest, late] = std::array::from_fn(|_| AtomicU64::new(0));
        let at_work_for = AtomicU64::new(Tick::MAX);
        let lateness = (0..BUCKETS).map(|_| Counter::default()).collect();
        Self { longest, recent, latest, late, lateness, at_work_for }
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
        self.lateness[bucket_of(late)].add(1);
    }

    /// Notes how long a callback has run.
    #[inline]
    pub(crate) fn note_callback(&self, took: Nanos) {
        for longest in [&self.longest, &self.recent] {
            // Ordering: Relaxed, a figure; the load spares most callbacks the read-modify-write.
            if took > longest.load(Ordering::Relaxed) {
                // Ordering: Relaxed, as above.
                longest.fetch_max(took, Ordering::Relaxed);
            }
        }
    }

    /// Notes the tick until which the worker sleeps.
    pub(crate) fn note_sleep(&self, until: Option<Tick>) {
        // Ordering: Relaxed, a figure.
        self.at_work_for.store(until.unwrap_or(Tick::MAX), Ordering::Relaxed);
    }
}

/// A power of two has so many buckets. Each is at most this part of its values wide.
const PARTS: usize = 16;

/// The buckets of the nanoseconds of 64 bits: one for each value below two times [`PARTS`], then
/// [`PARTS`] for each power of two.
pub(in crate::timer) const BUCKETS: usize = (u64::BITS as usize - PARTS.ilog2() as usize + 1) * PARTS;

/// The bucket of a value: the five highest of its bits, after how many follow them.
#[inline]
fn bucket_of(value: Nanos) -> usize {
    let shift = (value | 1).ilog2().saturating_sub(PARTS.ilog2());
    shift as usize * PARTS + (value >> shift) as usize
}

/// The values of a bucket.
pub(in crate::timer) fn values_of(bucket: usize) -> RangeInclusive<Nanos> {
    let shift = (bucket / PARTS).saturating_sub(1);
    let first = ((bucket - shift * PARTS) as Nanos) << shift;
    first..=first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The buckets cover all values, without a gap, and are at most a sixteenth of their values
    /// wide.
    #[test]
    fn buckets_cover_all_values() {
        let mut next = Some(0);
        for bucket in 0..BUCKETS {
            let (first, last) = values_of(bucket).into_inner();
            assert_eq!((Some(first), bucket_of(first), bucket_of(last)), (next, bucket, bucket));
            assert!((last - first) * PARTS as u64 <= first);
            next = last.checked_add(1);
        }
        assert_eq!(next, None);
    }
}
