//! The producers' half: schedule, cancel and reschedule.
//!
//! Each call enters a lane, finds or acquires a node, changes the node's word, and counts in the
//! lane. Every answer is decided by one transition of that word (see
//! [`state`](crate::shard::node::state)). Payloads are dropped, and the advancer's waker is called,
//! only after the call has left its lane and nothing is pinned.
//!
//! Who writes what: a producer writes its own lane, nodes that it owns, the word of any node by
//! compare-and-swap, the shared wheels and the inbox (see
//! [`machine`](crate::shard::machine)).
//!
//! The machine has schedule, cancel and reschedule; here are their public faces and what they share.
//! `by_key` has what else a key is good for; `batch` cancels many.

mod batch;
mod by_key;

pub(crate) use batch::Ahead;
pub use batch::CancelBatch;
pub(crate) use by_key::Exchanged;

use std::fmt;
use std::ops::RangeInclusive;
use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::{ScheduleError, ScheduleErrorKind};
use crate::shard::key::Key;
use crate::shard::memory::slab::Stay;
use crate::shard::node::{Node, Tag};
use crate::shard::shared::Shared;
use crate::shard::shared::advancer_waker::PendingWake;
use crate::shard::shared::lanes::{Entered, Lane, Local};
use crate::shard::shared::stats::ShardStats;
use crate::sync::Arc;
use crate::tick::Tick;

/// Schedules, cancels and reschedules timers of one shard, from any thread. Made by
/// [`shard`](crate::shard()); cheap to clone.
///
/// No call takes a lock, or waits for the [`Advancer`](crate::Advancer) or another thread. (If the
/// system has no memory left, threads that use the shard for the first time wait for each other's
/// calls.)
///
/// # Examples
///
/// ```
/// use shardwheel::{Config, shard};
///
/// let (scheduler, mut advancer) = shard(&Config::default());
/// let key = scheduler.schedule(30, "check the order")?;
/// scheduler.schedule(10, "send the mail")?;
/// assert_eq!(scheduler.cancel(key), Some("check the order"));
///
/// let fired: Vec<_> = advancer.advance(60).map(|fired| fired.payload).collect();
/// assert_eq!(fired, ["send the mail"]);
/// # Ok::<(), shardwheel::ScheduleError<&str>>(())
/// ```
pub struct Scheduler<T> {
    pub(crate) shared: Arc<Shared<T>>,
}

// As for the standard library's channels: a panic of the caller's leaves no half of a change
// behind.
impl<T> UnwindSafe for Scheduler<T> {}
impl<T> RefUnwindSafe for Scheduler<T> {}

impl<T> Scheduler<T> {
    /// Schedules a timer that fires when the shard's clock reaches `deadline`. A deadline at or
    /// before the clock is due at the next advance.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`], with the payload, if the advancer is gone, if the shard holds as many
    /// pending timers as it may, or if the system has no memory for another segment of timers.
    ///
    /// # Performance
    ///
    /// O(1), lock-free. Allocates when the shard grows (nodes for 65,536 small timers at once, or
    /// an overflow wheel), and for the thread's lane, usually at its first call.
    #[inline]
    pub fn schedule(&self, deadline: Tick, payload: T) -> Result<Key, ScheduleError<T>> {
        self.schedule_by(Tag::default(), deadline, || payload)
    }

    /// Schedules a timer that fires at a tick within `window`, both ends included; the wheel
    /// chooses the tick that is cheapest for it. A window that has begun or is over fires at the
    /// next advance.
    ///
    /// # Errors
    ///
    /// As [`schedule`](Self::schedule), and if the window is empty.
    ///
    /// # Performance
    ///
    /// As [`schedule`](Self::schedule), and O(levels squared) to choose.
    pub fn schedule_within(&self, window: RangeInclusive<Tick>, payload: T) -> Result<Key, ScheduleError<T>> {
        if window.is_empty() {
            let (start, end) = window.into_inner();
            return Err(ScheduleError::new(ScheduleErrorKind::EmptyWindow { start, end }, payload));
        }
        let deadline = self.shared.geometry.choose(self.shared.clock.flushed(), window);
        self.schedule(deadline, payload)
    }

    /// Cancels a timer and returns its payload. `None` means that it has fired, is being fired, or
    /// was cancelled before. The answer is final at once.
    ///
    /// # Performance
    ///
    /// O(1), lock-free. Allocates only for the thread's lane, usually at its first call.
    #[inline]
    pub fn cancel(&self, key: Key) -> Option<T> {
        self.cancel_and(key, |slot| Some(slot.read()))
    }

    /// Tells the processor to fetch the timer's node from memory, for a cancel or reschedule that
    /// comes soon. It changes nothing, and any key will do.
    ///
    /// With a million timers pending, most of the cost of a cancel is the wait for one cache line.
    /// A caller that cancels several timers prefetches about eight keys ahead:
    ///
    /// ```
    /// # use shardwheel::{Config, shard};
    /// # let (scheduler, _advancer) = shard(&Config::default());
    /// # let keys: Vec<_> = (0..100).map(|i| scheduler.schedule(30, i).unwrap()).collect();
    /// for (i, &key) in keys.iter().enumerate() {
    ///     if let Some(&soon) = keys.get(i + 8) {
    ///         scheduler.prefetch(soon);
    ///     }
    ///     scheduler.cancel(key);
    /// }
    /// # assert!(scheduler.is_empty());
    /// ```
    ///
    /// # Performance
    ///
    /// A few instructions.
    #[inline]
    pub fn prefetch(&self, key: Key) {
        if key.is_of(self.shared.id) {
            self.shared.slab.prefetch(key.node());
        }
    }

    /// Gives a pending timer another deadline and returns its key from then on. `None` means that
    /// it has fired, is being fired, or was cancelled before.
    ///
    /// A later deadline usually leaves the timer where it is, with the same key; an earlier one
    /// moves it. If a move finds no memory, the timer keeps its former deadline.
    ///
    /// # Performance
    ///
    /// O(1), lock-free. A later deadline takes one compare-and-swap if it is less than 2^28 ticks
    /// after the tick for which the timer's node was first linked: the tick of this timer, or of a
    /// cancelled one whose node it reuses.
    #[inline]
    #[must_use = "the timer may have another key from now on; the former one then finds nothing"]
    pub fn reschedule(&self, key: Key, deadline: Tick) -> Option<Key> {
        self.reschedule_and(key, deadline, |_| (), |moved| moved)
    }

    /// Returns the last tick all of whose timers the advancer has taken out: every tick up to and
    /// including this one is flushed.
    #[must_use]
    pub fn now(&self) -> Tick {
        self.shared.clock.flushed()
    }

    /// Returns the tick up to which timers are due: that of [`now`](Self::now), or a later one
    /// while an advance is under way.
    pub(crate) fn reached(&self) -> Tick {
        self.shared.clock.fence_and_read().now
    }

    /// Returns how many timers are pending: neither fired nor cancelled. A timer that is due but
    /// not yet taken from [`Expired`](crate::Expired) counts. O(threads).
    ///
    /// While other threads are at work, the number is at least the true one of some moment during
    /// the call. It is higher than that by at most the timers that end while the call sums its
    /// counts, which it does up to eight times, and never above `max_pending`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// The bound on pending timers.
    pub(crate) fn limit(&self) -> usize {
        self.shared.bound.limit()
    }

    /// Returns whether no timer is pending. O(threads).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `look` with the deadline and the tag of each pending timer. O(nodes that have memory).
    ///
    /// A timer that ends or is scheduled meanwhile may be left out. One that another thread moves
    /// meanwhile may be left out or come twice, and one whose payload is out is left out.
    #[cfg(feature = "introspect")]
    pub(crate) fn each_pending(&self, mut look: impl FnMut((Tick, Tag))) {
        use crate::shard::memory::table::Keep;
        let slab = &self.shared.slab;
        for word in 0..slab.words() {
            let mut entered = self.shared.lanes.enter();
            let who = &entered.parts().1.participant;
            // Both pins protect: the word's segment, which the advancer may give back meanwhile.
            for id in slab.taken(word, Keep::pinned(&who.pin())) {
                let stay = Stay::pinned(id, who);
                slab.get(&stay).and_then(|(node, era)| node.look(era)).into_iter().for_each(&mut look);
            }
        }
    }

    /// Returns what the shard has done and what it holds. O(threads + segments).
    #[must_use]
    pub fn stats(&self) -> ShardStats {
        let mut entered = self.shared.lanes.enter();
        // Protects: the segments whose free nodes are counted.
        let pinned = entered.parts().1.participant.pin();
        self.shared.stats(&pinned)
    }

    /// For models: see [`testing`](crate::testing).
    #[cfg(any(shardwheel_loom, shardwheel_model))]
    pub(crate) fn let_producers_reuse(&self) {
        self.shared.lanes.let_reuse();
    }

    /// Enters a lane for an operation on the key's timer, and prefetches its node. `None` if the
    /// key is of another shard.
    #[inline]
    pub(super) fn enter(&self, key: Key) -> Option<Entered<'_>> {
        let shared = &*self.shared;
        if !key.is_of(shared.id) {
            return None;
        }
        shared.slab.prefetch(key.node());
        Some(shared.lanes.enter())
    }

    /// Calls `act` with the node that the key names and its segment's era, if that segment exists.
    /// Also returns the lane that the call has entered.
    #[inline]
    pub(super) fn at_node<R>(
        &self,
        key: Key,
        act: impl FnOnce(&Node<T>, u32) -> R,
    ) -> Option<(Entered<'_>, R)> {
        let mut entered = self.enter(key)?;
        let (_, local) = entered.parts();
        // Protects: the node, whose segment the advancer may give back meanwhile.
        let stay = self.shared.slab.stay(key.node(), &local.nodes.free, &local.participant);
        let done = self.shared.slab.get(&stay).map(|(node, era)| act(node, era))?;
        drop(stay);
        Some((entered, done))
    }

    /// Counts a timer that the caller has cancelled or stopped.
    #[inline]
    pub(super) fn count_cancelled(&self, lane: &Lane) {
        self.shared.counting.model_change();
        lane.tally.cancelled.add(1);
        self.shared.bound.release();
    }

    /// Takes the timer out again if the shard was closed during the insert. `None` if it has fired,
    /// or the final walk hands it back.
    #[cold]
    pub(super) fn take_back(&self, lane: &Lane, local: &mut Local, key: Key) -> Option<T> {
        // Protects: the node. It may have been fired and freed, and its segment given back, just
        // before.
        let stay = Stay::pinned(key.node(), &local.participant);
        let (node, era) = self.shared.slab.get(&stay)?;
        let payload = node.cancel(era, key.generation)?;
        // Adds -1: the counter wraps.
        lane.tally.scheduled.add(u64::MAX);
        self.shared.bound.release();
        Some(payload)
    }

    /// Gives back the free nodes that a call leaves over, if its lane may not keep them.
    #[inline]
    pub(super) fn return_spare_nodes(&self, lane: &Lane, local: &mut Local) {
        if !lane.is_own {
            self.shared.slab.hand_back(&mut local.nodes.free, &local.participant);
        }
    }

    /// Notes that a cancel or a move has left a dead node, and reports from time to time how many
    /// there are. True if the caller must wake the advancer, for a sweep or for maintenance.
    #[inline]
    pub(super) fn note_dead(&self, lane: &Lane, local: &mut Local) -> bool {
        let must_wake = self.shared.must_wake_for_cancel();
        match local.until_report.checked_sub(1) {
            Some(left) => {
                local.until_report = left;
                must_wake
            }
            None => self.shared.report_dead(lane, local) || must_wake,
        }
    }

    /// Wakes the advancer, unless a wake for its present sleep has returned. The waker is user
    /// code, so the lane is left first, and nothing is pinned.
    #[cold]
    pub(super) fn wake_advancer<'s>(&'s self, mut entered: Entered<'s>) {
        loop {
            let pending = self.shared.waker.pending_wake(&entered.parts().1.participant);
            drop(entered);
            if !pending.is_some_and(PendingWake::wake) {
                return;
            }
            entered = self.shared.lanes.enter();
        }
    }
}

impl<T> Clone for Scheduler<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> fmt::Debug for Scheduler<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler")
            .field("now", &self.now())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
