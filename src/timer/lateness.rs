//! How late timers fired.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::stats::Counts;
use super::time::Nanos;
use crate::sync::Ordering;
use crate::sync::plain::AtomicU64;

/// A power of two has so many buckets. Each is at most this part of its values wide.
const PARTS: usize = 16;

/// The buckets of the nanoseconds of 64 bits: one for each value below two times [`PARTS`], then
/// [`PARTS`] for each power of two.
pub(super) const BUCKETS: usize = (u64::BITS as usize - PARTS.ilog2() as usize + 1) * PARTS;

/// The bucket of a value: the five highest of its bits, after how many follow them.
#[inline]
pub(super) fn bucket_of(value: Nanos) -> usize {
    let shift = (value | 1).ilog2().saturating_sub(PARTS.ilog2());
    shift as usize * PARTS + (value >> shift) as usize
}

/// The values of a bucket.
fn values_of(bucket: usize) -> RangeInclusive<Nanos> {
    let shift = (bucket / PARTS).saturating_sub(1);
    let first = ((bucket - shift * PARTS) as Nanos) << shift;
    first..=first + ((1 << shift) - 1)
}

/// How late timers fired: a histogram whose buckets are at most a sixteenth of their value wide.
#[derive(Clone, Default)]
pub struct Lateness {
    /// The timers in each bucket. Empty in the default value, before the first shard is added.
    counts: Vec<u64>,
    sum: Duration,
    max: Duration,
}

/// A part of the histogram of [`Lateness`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LatenessBucket {
    /// How late its timers were, both ends included.
    pub range: RangeInclusive<Duration>,
    /// How many timers there were.
    pub count: u64,
}

impl Lateness {
    pub(super) fn of(counts: &Counts) -> Self {
        // Ordering: Relaxed, figures.
        let duration = |nanos: &AtomicU64| Duration::from_nanos(nanos.load(Ordering::Relaxed));
        let (sum, max) = (duration(&counts.late), duration(&counts.latest));
        // Ordering: Relaxed, figures.
        let counts = counts.lateness.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        Self { counts, sum, max }
    }

    /// Yields the buckets that hold timers, the least lateness first. Buckets do not overlap, and
    /// are the same in all shards and at all times, so counts can be added or subtracted bucket by
    /// bucket.
    ///
    /// # Examples
    ///
    /// The cumulative counts that some monitoring systems expect:
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{ManualClock, Timer};
    ///
    /// let clock = ManualClock::new();
    /// let timer = Timer::builder().clock(clock.clone()).build()?;
    /// for delay in [1, 2, 3] {
    ///     timer.schedule_after(Duration::from_millis(delay), || ())?;
    /// }
    /// clock.jump(Duration::from_millis(3)); // two are late
    ///
    /// let lateness = timer.stats().total.lateness;
    /// let mut up_to = 0;
    /// for bucket in lateness.buckets() {
    ///     up_to += bucket.count;
    ///     println!("at most {:?} late: {up_to}", bucket.range.end());
    /// }
    /// assert_eq!((up_to, lateness.count()), (3, 3));
    /// assert_eq!(lateness.sum(), Duration::from_millis(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn buckets(&self) -> impl Iterator<Item = LatenessBucket> + '_ {
        let filled = self.counts.iter().enumerate().filter(|&(_, &count)| count > 0);
        filled.map(|(bucket, &count)| {
            let (first, last) = values_of(bucket).into_inner();
            LatenessBucket { range: Duration::from_nanos(first)..=Duration::from_nanos(last), count }
        })
    }

    /// Returns how many timers fired.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets().map(|bucket| bucket.count).sum()
    }

    /// Returns the lateness of all timers together; exact.
    #[must_use]
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// Returns the lateness that a share of `quantile` (0 to 1) of all timers did not exceed.
    ///
    /// The value is rounded up to the end of its bucket, but does not exceed [`max`](Self::max). It
    /// is zero if no timer has fired, or if `quantile` is out of range.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Duration {
        if !(0.0..=1.0).contains(&quantile) {
            return Duration::ZERO;
        }
        let rank = (quantile * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let found = self.buckets().find(|bucket| {
            seen += bucket.count;
            seen >= rank
        });
        found.map_or(Duration::ZERO, |bucket| (*bucket.range.end()).min(self.max))
    }

    /// Returns the median: half of all timers were at most this late.
    #[must_use]
    pub fn p50(&self) -> Duration {
        self.quantile(0.5)
    }

    /// Returns the 99th percentile: 99 % of all timers were at most this late.
    #[must_use]
    pub fn p99(&self) -> Duration {
        self.quantile(0.99)
    }

    /// Returns the 99.9th percentile: 99.9 % of all timers were at most this late.
    #[must_use]
    pub fn p999(&self) -> Duration {
        self.quantile(0.999)
    }

    /// Returns the greatest lateness of all timers; exact.
    #[must_use]
    pub fn max(&self) -> Duration {
        self.max
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
        self.counts.resize(BUCKETS, 0);
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
    }
}

impl fmt::Debug for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lateness")
            .field("p50", &self.p50())
            .field("p99", &self.p99())
            .field("p999", &self.p999())
            .field("max", &self.max)
            .finish()
    }
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
