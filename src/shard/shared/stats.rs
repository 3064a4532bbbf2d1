//! Counters: each has one writer, so counting is a load and a store, and never contended.

use std::fmt;

use crate::sync::Ordering;
use crate::sync::plain::AtomicU64;

/// A counter that one thread at a time writes and any thread reads.
pub(crate) struct Counter(AtomicU64);

impl Counter {
    fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds `n`; for the one writer.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        // Ordering: Relaxed, nobody else writes.
        let now = self.0.load(Ordering::Relaxed).wrapping_add(n);
        // Ordering: Release, pairs with `get`: who sees a timer counted as ended also sees it counted as
        // scheduled, which came before by way of the node's word.
        self.0.store(now, Ordering::Release);
    }

    /// Takes one back; for the one writer.
    #[cold]
    pub(crate) fn take_back(&self) {
        self.add(u64::MAX);
    }

    pub(crate) fn get(&self) -> u64 {
        // Ordering: Acquire, pairs with `add`.
        self.0.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// What a lane's owner has done.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) scheduled: Counter,
    pub(crate) cancelled: Counter,
    pub(crate) extended: Counter,
    pub(crate) moved: Counter,
    pub(crate) reused: Counter,
    /// Of those cancelled, timers whose payload was out: no dead node was left.
    pub(crate) stopped: Counter,
}

impl Tally {
    pub(crate) fn new() -> Self {
        let [scheduled, cancelled, extended, moved, reused, stopped] =
            std::array::from_fn(|_| Counter::new());
        Self { scheduled, cancelled, extended, moved, reused, stopped }
    }

    /// Nodes that were left dead by the lane's owners. At least the truth: the timer whose payload is out is counted
    /// last.
    pub(crate) fn dead_made(&self) -> u64 {
        let stopped = self.stopped.get();
        (self.cancelled.get() + self.moved.get()).saturating_sub(stopped)
    }
}

/// What the advancer has done.
#[derive(Debug)]
pub(crate) struct AdvancerTally {
    pub(crate) fired: Counter,
    pub(crate) recurred: Counter,
    pub(crate) handed_back: Counter,
    pub(crate) cascaded: Counter,
    pub(crate) swept: Counter,
    /// Dead nodes unlinked, by a flush or a sweep.
    pub(crate) dead_freed: Counter,
}

impl AdvancerTally {
    pub(crate) fn new() -> Self {
        let [fired, recurred, handed_back, cascaded, swept, dead_freed] =
            std::array::from_fn(|_| Counter::new());
        Self { fired, recurred, handed_back, cascaded, swept, dead_freed }
    }

    /// Timers that have ended without being cancelled.
    #[inline]
    pub(crate) fn ended(&self) -> u64 {
        self.fired.get() + self.handed_back.get()
    }
}

/// What a shard has done since it was made, and what it holds.
///
/// Taken while other threads are at work, the numbers may be a few operations apart from one another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardStats {
    /// Timers taken.
    pub scheduled: u64,
    /// Timers that [`Expired`](crate::Expired) has yielded; recurring ones, when they have ended.
    pub fired: u64,
    /// Occurrences of recurring timers after which the timer was armed anew.
    pub recurred: u64,
    /// Timers cancelled, their payloads given to the canceller.
    pub cancelled: u64,
    /// Timers handed back, or dropped, when the advancer ended.
    pub handed_back: u64,
    /// Reschedules to a later deadline that left the timer where it was.
    pub extended: u64,
    /// Reschedules that moved the timer to another node.
    pub moved: u64,
    /// Nodes moved from an overflow wheel to a finer one, or put back because they were found early.
    pub cascaded: u64,
    /// Timers put into the node of a cancelled one where it stood.
    pub reused: u64,
    /// Nodes of cancelled timers that a sweep unlinked.
    pub swept: u64,
    /// Timers pending now: neither fired nor cancelled nor handed back.
    pub pending: usize,
    /// Nodes of cancelled timers that are still linked (one for each of a few threads is kept for the thread's next
    /// timer).
    pub dead_nodes: usize,
    /// Nodes in use or set aside for a producer: for timers, for cancelled ones that are still linked or
    /// not yet reusable, and up to 64 for each thread.
    pub nodes: usize,
    /// Nodes that there is memory for.
    pub node_capacity: usize,
    /// Wheels that producers can add to: the finest, and the overflow wheels in use or kept for those to come.
    pub wheels: usize,
}
