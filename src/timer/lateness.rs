//! How late timers fired.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use histogram::Histogram;

use super::counts::Counts;
use crate::sync::Ordering;
use crate::sync::plain::AtomicU64;

/// How late timers fired: a histogram whose buckets are at most a sixteenth of their value wide.
#[derive(Clone, Default)]
pub struct Lateness {
    /// `None` in the default value, before the first shard is added.
    histogram: Option<Histogram>,
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
        Self { histogram: Some(counts.lateness.load()), sum, max }
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
        let all = self.histogram.iter().flat_map(Histogram::iter).filter(|bucket| bucket.count() > 0);
        all.map(|bucket| {
            let range = Duration::from_nanos(bucket.start())..=Duration::from_nanos(bucket.end());
            LatenessBucket { range, count: bucket.count() }
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
        let found = self.histogram.as_ref().and_then(|histogram| histogram.quantile(quantile).ok().flatten());
        let bucket = found.and_then(|found| found.entries().values().next().cloned());
        bucket.map_or(Duration::ZERO, |bucket| Duration::from_nanos(bucket.end()).min(self.max))
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
        self.histogram = match (self.histogram.take(), &other.histogram) {
            (Some(mine), Some(theirs)) => mine.checked_add(theirs).ok(),
            (mine, theirs) => mine.or_else(|| theirs.clone()),
        };
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
