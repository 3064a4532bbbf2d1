//! What a `Timer` has done, and how late.

use std::fmt;
use std::ops::{Deref, RangeInclusive};
use std::sync::Arc;
use std::time::Duration;

use super::counts::{BUCKETS, values_of};
use super::handle::ShardHandle;
use crate::shard::shared::stats::Counter;
use crate::sync::Ordering;
use crate::sync::plain::AtomicU64;
use crate::timer::time::Nanos;

/// What a [`Timer`](crate::Timer) has done since it was built, and what it holds.
///
/// Holds the figures of all shards together, and the figures of each shard. It dereferences to the
/// former: `stats.pending` is `stats.total.pending`.
///
/// While other threads use the `Timer`, the numbers may be a few operations apart from one another.
/// When the `Timer` is quiet, `scheduled + recurred = fired + cancelled + handed_back + pending`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// All shards together: the sum, or the maximum of what cannot be summed.
    pub total: Figures,
    /// Each shard's own figures.
    pub shards: Vec<Figures>,
}

impl Stats {
    /// `recent` reads the counter of the same name, or takes it.
    pub(in crate::timer) fn of(handles: &[Arc<ShardHandle>], recent: fn(&AtomicU64) -> Nanos) -> Self {
        let shards: Vec<_> = handles.iter().map(|handle| Figures::of(handle, recent)).collect();
        let mut total = Figures::default();
        shards.iter().for_each(|shard| total.add(shard));
        // The shards share one bound, and their figures are of different moments.
        total.pending = total.pending.min(handles[0].scheduler.limit());
        Self { total, shards }
    }
}

impl Deref for Stats {
    type Target = Figures;

    fn deref(&self) -> &Figures {
        &self.total
    }
}

/// What one shard of a `Timer` has done, or all shards together. What a user of a `Timer` cannot
/// influence (timers moved to another node, nodes used again where they stand) is in
/// [`ShardStats`](crate::ShardStats) alone.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Figures {
    /// Timers accepted: callbacks, sleeps that have been polled, and values of delay queues.
    pub scheduled: u64,
    /// Timers fired. Each occurrence of a recurring timer counts, except one during which the timer
    /// was cancelled.
    pub fired: u64,
    /// Occurrences of recurring timers after which the timer was armed anew.
    pub recurred: u64,
    /// Timers cancelled, dropped sleeps included.
    pub cancelled: u64,
    /// Timers that had not fired at shutdown.
    pub handed_back: u64,
    /// Reschedules to a later deadline that left the timer in its node.
    pub extended: u64,
    /// Nodes moved from an overflow bucket to a finer one, or found dead there; and nodes relinked
    /// because their timer had been put off.
    pub cascaded: u64,
    /// Nodes of cancelled timers that a sweep freed.
    pub swept: u64,
    /// Timers pending now; never more than `max_pending`. A recurring timer counts also while its
    /// callback runs.
    pub pending: usize,
    /// Panics caught in user code, each of which was [reported](crate::TimerBuilder::on_panic): in
    /// callbacks, schedules, wakers, clocks and executors, and in drops of callbacks, schedules,
    /// sleeps' wakers and executors.
    pub panics: u64,
    /// The longest time that a callback, a waker or a call of
    /// [`Executor::execute`](crate::Executor::execute) took.
    pub longest_callback: Duration,
    /// The longest of these since the last [`Timer::report`](crate::Timer::report), or ever.
    pub longest_recent_callback: Duration,
    /// How far the shard is behind: how long the timer that it runs now, or runs next, has been
    /// due. Zero if nothing is due, or after a shutdown. A [`Driver`](crate::Driver) that is not
    /// asked for its next deadline knows nothing of what is due between two turns.
    pub backlog: Duration,
    /// How late timers fired, measured from the start of the tick at which they were due.
    pub lateness: Lateness,
    /// Nodes that there is memory for, free ones included; a node takes 64 bytes.
    pub node_capacity: usize,
    /// The core that the shard's thread is pinned to. `None` if pinning was not requested or the
    /// system refused it, and for the total.
    pub core: Option<usize>,
}

impl Figures {
    fn of(handle: &ShardHandle, recent: fn(&AtomicU64) -> Nanos) -> Self {
        let (shard, counts) = (handle.scheduler.stats(), &handle.counts);
        // Ordering: Relaxed, a figure.
        let next = handle.time.start_of(counts.at_work_for.load(Ordering::Relaxed));
        let behind = handle.time.now().saturating_sub(next);
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
            panics: handle.guard.panics(),
            longest_callback: duration(&counts.longest),
            longest_recent_callback: Duration::from_nanos(recent(&counts.recent)),
            backlog: Duration::from_nanos(if handle.is_stopping() { 0 } else { behind }),
            lateness: Lateness {
                counts: counts.lateness.iter().map(Counter::get).collect(),
                sum: duration(&counts.late),
                max: duration(&counts.latest),
            },
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
        let recent = self.longest_recent_callback.max(other.longest_recent_callback);
        self.longest_recent_callback = recent;
        self.backlog = self.backlog.max(other.backlog);
        self.lateness.add(&other.lateness);
    }
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

    /// Returns how many timers were due and ran, those with it that were cancelled while they ran.
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

    fn add(&mut self, other: &Self) {
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

fn duration(nanos: &AtomicU64) -> Duration {
    // Ordering: Relaxed, a figure.
    Duration::from_nanos(nanos.load(Ordering::Relaxed))
}
