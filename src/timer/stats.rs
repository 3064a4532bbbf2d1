//! What a timer has done, and how late.
//!
//! Nothing here is contended: a shard's counters are written by its worker alone, but for panics and the longest
//! callback where an executor's threads run them.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use histogram::{AtomicHistogram, Histogram};

use super::shard_handle::ShardHandle;
use super::time::Nanos;
use crate::sync::Ordering;
use crate::sync::plain::AtomicU64;
use crate::tick::Tick;

/// Buckets of the histogram are at most a sixteenth of their value wide.
const GROUPING: u8 = 4;
/// Values of 64 bits.
const LARGEST: u8 = 64;

/// A worker's counters.
pub(crate) struct Counts {
    panics: AtomicU64,
    longest: AtomicU64,
    latest: AtomicU64,
    lateness: AtomicHistogram,
    /// The tick that the worker is at work for, or sleeps until.
    at_work_for: AtomicU64,
}

impl Counts {
    pub(crate) fn new() -> Self {
        let [panics, longest, latest] = std::array::from_fn(|_| AtomicU64::new(0));
        let at_work_for = AtomicU64::new(Tick::MAX);
        let lateness = AtomicHistogram::new(GROUPING, LARGEST).expect("the shape is a valid one");
        Self { panics, longest, latest, lateness, at_work_for }
    }

    pub(crate) fn count_panic(&self) {
        // Ordering: Relaxed, a count.
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a timer due at that tick fires now; for the worker.
    #[inline]
    pub(crate) fn note_fired(&self, deadline: Tick, late: Nanos) {
        // Ordering: Relaxed, a figure that one thread writes and others look at.
        self.at_work_for.store(deadline, Ordering::Relaxed);
        // Ordering: Relaxed, as above.
        if late > self.latest.load(Ordering::Relaxed) {
            // Ordering: Relaxed, as above.
            self.latest.store(late, Ordering::Relaxed);
        }
        // It takes any value of 64 bits.
        let _ = self.lateness.increment(late);
    }

    /// Notes for how long a callback has run.
    #[inline]
    pub(crate) fn note_callback(&self, took: Nanos) {
        // Ordering: Relaxed, a figure; the load spares most callbacks the write.
        if took > self.longest.load(Ordering::Relaxed) {
            // Ordering: Relaxed, as above.
            self.longest.fetch_max(took, Ordering::Relaxed);
        }
    }

    /// Notes until when the worker sleeps.
    pub(crate) fn note_sleep(&self, until: Option<Tick>) {
        // Ordering: Relaxed, a figure.
        self.at_work_for.store(until.unwrap_or(Tick::MAX), Ordering::Relaxed);
    }
}

/// What a [`Timer`](crate::Timer) has done since it was built, and what it holds; the figures of all shards together,
/// which it dereferences to, and those of each.
///
/// Taken while the timer is at work, the numbers may be a few operations apart from one another. When it is
/// quiet, `scheduled + recurred = fired + cancelled + handed_back + pending`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// All shards together: sums, and of what cannot be summed the greatest.
    pub total: Figures,
    /// Each shard's own.
    pub shards: Vec<Figures>,
}

impl Stats {
    pub(crate) fn of<'a>(handles: impl Iterator<Item = &'a ShardHandle>) -> Self {
        let shards: Vec<_> = handles.map(Figures::of).collect();
        let mut total = Figures::default();
        shards.iter().for_each(|shard| total.add(shard));
        Self { total, shards }
    }
}

impl Deref for Stats {
    type Target = Figures;

    fn deref(&self) -> &Figures {
        &self.total
    }
}

/// What one shard of a timer has done, or all of them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Figures {
    /// Timers taken: callbacks, and sleeps that have been polled.
    pub scheduled: u64,
    /// Timers fired, each occurrence of a recurring one included, but for one that was cancelled while its callback ran.
    pub fired: u64,
    /// Occurrences of recurring timers after which the timer was armed anew.
    pub recurred: u64,
    /// Timers cancelled, dropped sleeps included.
    pub cancelled: u64,
    /// Timers that had not fired at shutdown.
    pub handed_back: u64,
    /// Timers put off where they stood.
    pub extended: u64,
    /// Timers moved to a finer wheel, or put back because they had been put off.
    pub cascaded: u64,
    /// Nodes of cancelled timers that a sweep gave back.
    pub swept: u64,
    /// Timers pending now; a recurring one that runs at the moment is.
    pub pending: usize,
    /// Callbacks that panicked, and wakers and drops of callbacks that did.
    pub panics: u64,
    /// The longest that a callback or a waker ran.
    pub longest_callback: Duration,
    /// For how long the timer that is next to fire has been due: what its shard is behind by. Zero where
    /// nothing is due.
    pub backlog: Duration,
    /// How late timers fired, after the tick that they were due at.
    pub lateness: Lateness,
    /// Nodes that there is memory for, free ones included, at 64 bytes each.
    pub node_capacity: usize,
    /// The core that the shard's thread is pinned to; `None` if it is not, because that was not asked for or
    /// the system refused it, and for the total.
    pub core: Option<usize>,
}

impl Figures {
    fn of(handle: &ShardHandle) -> Self {
        let (shard, counts) = (handle.scheduler.stats(), &handle.counts);
        // Ordering: Relaxed, figures.
        let duration = |nanos: &AtomicU64| Duration::from_nanos(nanos.load(Ordering::Relaxed));
        // Ordering: Relaxed, a figure.
        let next = handle.time.start_of(counts.at_work_for.load(Ordering::Relaxed));
        Self {
            scheduled: shard.scheduled,
            fired: shard.fired + shard.recurred,
            recurred: shard.recurred,
            cancelled: shard.cancelled,
            handed_back: shard.handed_back,
            extended: shard.extended,
            cascaded: shard.cascaded,
            swept: shard.swept,
            pending: shard.pending,
            // Ordering: Relaxed, a count.
            panics: counts.panics.load(Ordering::Relaxed),
            longest_callback: duration(&counts.longest),
            backlog: Duration::from_nanos(handle.time.now().saturating_sub(next)),
            lateness: Lateness { histogram: Some(counts.lateness.load()), max: duration(&counts.latest) },
            node_capacity: shard.node_capacity,
            core: handle.core.get().copied(),
        }
    }

    fn add(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.fired += other.fired;
        self.recurred += other.recurred;
        self.cancelled += other.cancelled;
        self.handed_back += other.handed_back;
        self.extended += other.extended;
        self.cascaded += other.cascaded;
        self.swept += other.swept;
        self.pending += other.pending;
        self.panics += other.panics;
        self.node_capacity += other.node_capacity;
        self.longest_callback = self.longest_callback.max(other.longest_callback);
        self.backlog = self.backlog.max(other.backlog);
        self.lateness.add(&other.lateness);
    }
}

/// How late timers fired: a histogram whose buckets are at most a sixteenth of their value wide.
#[derive(Clone, Default)]
pub struct Lateness {
    /// None before the first.
    histogram: Option<Histogram>,
    max: Duration,
}

impl Lateness {
    /// The lateness that a share of `quantile` (0 to 1) of all timers did not exceed, rounded up to the end of
    /// its bucket. Zero if none has fired, or if there is no such quantile.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Duration {
        let found = self.histogram.as_ref().and_then(|histogram| histogram.quantile(quantile).ok().flatten());
        let bucket = found.and_then(|found| found.entries().values().next().cloned());
        bucket.map_or(Duration::ZERO, |bucket| Duration::from_nanos(bucket.end()).min(self.max))
    }

    /// Half of all timers were no later.
    #[must_use]
    pub fn p50(&self) -> Duration {
        self.quantile(0.5)
    }

    /// 99 in a hundred were no later.
    #[must_use]
    pub fn p99(&self) -> Duration {
        self.quantile(0.99)
    }

    /// 999 in a thousand were no later.
    #[must_use]
    pub fn p999(&self) -> Duration {
        self.quantile(0.999)
    }

    /// The latest of all; exact.
    #[must_use]
    pub fn max(&self) -> Duration {
        self.max
    }

    fn add(&mut self, other: &Self) {
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
