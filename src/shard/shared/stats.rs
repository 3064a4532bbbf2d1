//! Counters. Each has one writer, so counting is a load and a store, and is never contended.

use crate::sync::Ordering;
use crate::sync::plain::AtomicU64;

/// A counter that one thread at a time writes and any thread reads.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`, with wrap-around, and returns the sum. Only the counter's writer calls this.
    #[inline]
    pub(crate) fn add(&self, n: u64) -> u64 {
        // Ordering: Relaxed, no other thread writes.
        let now = self.0.load(Ordering::Relaxed).wrapping_add(n);
        // Ordering: Release, pairs with `get`: a thread that sees a timer counted as ended also
        // sees it counted as scheduled. The node's word orders the two counts.
        self.0.store(now, Ordering::Release);
        now
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        // Ordering: Acquire, pairs with `add`.
        self.0.load(Ordering::Acquire)
    }
}

/// What a lane's owner has done. Written by the lane's owner.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) scheduled: Counter,
    pub(crate) cancelled: Counter,
    pub(crate) extended: Counter,
    pub(crate) moved: Counter,
    pub(crate) reused: Counter,
    /// Of the cancelled timers, those whose payload was out: they left no dead node.
    pub(crate) stopped: Counter,
}

impl Tally {
    /// Nodes that the lane's owners have left dead. Never less than the truth: a timer whose
    /// payload is out is counted in `cancelled` first and in `stopped` last.
    pub(crate) fn dead_made(&self) -> u64 {
        let stopped = self.stopped.get();
        (self.cancelled.get() + self.moved.get()).saturating_sub(stopped)
    }
}

/// What the advancer has done. Written by the advancer.
#[derive(Default)]
pub(crate) struct AdvancerTally {
    pub(crate) fired: Counter,
    pub(crate) recurred: Counter,
    pub(crate) handed_back: Counter,
    pub(crate) cascaded: Counter,
    pub(crate) swept: Counter,
    /// Dead nodes unlinked by a flush or a sweep.
    pub(crate) dead_freed: Counter,
}

impl AdvancerTally {
    /// Timers that have ended without a cancel.
    #[inline]
    pub(crate) fn ended(&self) -> u64 {
        self.fired.get() + self.handed_back.get()
    }
}

/// What a shard has done since it was made, and what it holds.
///
/// While other threads are at work, the numbers may be a few operations apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardStats {
    /// Timers accepted.
    pub scheduled: u64,
    /// Timers that [`Expired`](crate::Expired) has yielded. A recurring timer counts once, when it
    /// ends.
    pub fired: u64,
    /// Occurrences of recurring timers after which the timer was armed again.
    pub recurred: u64,
    /// Timers cancelled. The canceller got the payload, except of a recurring timer that was
    /// running.
    pub cancelled: u64,
    /// Timers handed back, or dropped, when the advancer ended.
    pub handed_back: u64,
    /// Reschedules to a later deadline that left the timer in its node.
    pub extended: u64,
    /// Reschedules that moved the timer to another node.
    pub moved: u64,
    /// Nodes moved from an overflow bucket to a finer one, or found dead there; and nodes relinked
    /// because their timer had been put off.
    pub cascaded: u64,
    /// Timers put into a cancelled timer's node, which stayed in its list.
    pub reused: u64,
    /// Nodes of cancelled or moved timers that a sweep unlinked.
    pub swept: u64,
    /// Timers pending now, not fired, not cancelled and not handed back, as
    /// [`Scheduler::len`](crate::Scheduler::len) counts them.
    pub pending: usize,
    /// Nodes of cancelled or moved timers that are still linked. They include at most one node for
    /// each of up to 64 threads, kept for the thread's next timer.
    pub dead_nodes: usize,
    /// Nodes in use or set aside for a producer: for pending timers, for cancelled or moved ones
    /// whose nodes are still linked or not yet reusable, and up to 64 for each of up to 64 threads.
    pub nodes: usize,
    /// Nodes for which memory is mapped.
    pub node_capacity: usize,
    /// Wheels that producers can add to: the finest wheel, and the overflow wheels that a timer has
    /// needed so far.
    pub wheels: usize,
}
