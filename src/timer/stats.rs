//! What a timer has done, and how late.

use std::fmt;
use std::ops::{Deref, RangeInclusive};
use std::sync::Arc;
use std::time::Duration;

use super::shard_handle::ShardHandle;
use super::time::Nanos;
use crate::shard::shared::stats::Counter;
use crate::sync::Ordering;
use crate::sync::plain::AtomicU64;
use crate::tick::Tick;

/// What a [`Timer`](crate::Timer) has done since it was built, and what it holds.
///
/// Holds the figures of all shards together, and the figures of each shard. It dereferences to the
/// former: `stats.pending` is `stats.total.pending`.
///
/// While other threads use the timer, the numbers may be a few operations apart from one another.
/// When the timer is quiet, `scheduled + recurred = fired + cancelled + handed_back + pending`.
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
    pub(super) fn of(handles: &[Arc<ShardHandle>], recent: fn(&AtomicU64) -> Nanos) -> Self {
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

/// What one shard of a timer has done, or all shards together.
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
    /// Nodes moved to a finer wheel, or relinked because they were found before their deadline.
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
            // Ordering: Relaxed, a count.
            panics: counts.panics.load(Ordering::Relaxed),
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

/// The counters of one shard. Times are in nanoseconds.
///
/// The shard's worker writes them, so they are not contended. Two exceptions: an executor's threads
/// also raise `longest` and `recent`, and any thread that runs or drops user code also counts
/// `panics`. A report sets `recent` to 0.
pub(crate) struct Counts {
    pub(super) panics: AtomicU64,
    pub(super) longest: AtomicU64,
    pub(super) recent: AtomicU64,
    pub(super) latest: AtomicU64,
    /// The lateness of all timers that fired, together.
    pub(super) late: AtomicU64,
    /// How many timers there were in each bucket of [`Lateness`].
    pub(super) lateness: Box<[Counter]>,
    /// The tick of the timer that the worker fired last, or until which it sleeps.
    pub(super) at_work_for: AtomicU64,
}

impl Counts {
    pub(crate) fn new() -> Self {
        let [panics, longest, recent, latest, late] = std::array::from_fn(|_| AtomicU64::new(0));
        let at_work_for = AtomicU64::new(Tick::MAX);
        let lateness = (0..BUCKETS).map(|_| Counter::default()).collect();
        Self { panics, longest, recent, latest, late, lateness, at_work_for }
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

fn duration(nanos: &AtomicU64) -> Duration {
    // Ordering: Relaxed, a figure.
    Duration::from_nanos(nanos.load(Ordering::Relaxed))
}

/// A power of two has so many buckets. Each is at most this part of its values wide.
const PARTS: usize = 16;

/// The buckets of the nanoseconds of 64 bits: one for each value below two times [`PARTS`], then
/// [`PARTS`] for each power of two.
const BUCKETS: usize = (u64::BITS as usize - PARTS.ilog2() as usize + 1) * PARTS;

/// The bucket of a value: the five highest of its bits, after how many follow them.
#[inline]
fn bucket_of(value: Nanos) -> usize {
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

    #[cfg(not(any(shardwheel_loom, fuzzing)))]
    #[test]
    fn vectors_of_buckets() {
        use crate::vectors::{numbers, show};
        for value in numbers(1, 100) {
            show("bucket_of", &[value], &[bucket_of(value) as u64]);
        }
        for bucket in 0..BUCKETS {
            let (first, last) = values_of(bucket).into_inner();
            show("values_of", &[bucket as u64], &[first, last]);
        }
    }
}
