//! The producers' half.

mod acquire;
mod exchange;
mod recurring;
mod relocate;

pub(crate) use exchange::Exchanged;
pub(crate) use recurring::Stopped;

use std::fmt;
use std::ops::RangeInclusive;

use crate::error::{ScheduleError, ScheduleErrorKind};
use crate::shard::key::Key;
use crate::shard::memory::slab::Stay;
use crate::shard::node::payload::{IntoPayload, PayloadSlot};
use crate::shard::node::{Extended, Node};
use crate::shard::scheduler::acquire::Acquired;
use crate::shard::shared::Shared;
use crate::shard::shared::lanes::{Entered, Held, Lane, Local};
use crate::shard::shared::stats::ShardStats;
use crate::sync::Arc;
use crate::tick::Tick;

/// Schedules, cancels and reschedules timers of one shard, from any thread. Made by
/// [`shard`](crate::shard()); cloning it is cheap.
///
/// No call takes a lock or waits for the [`Advancer`](crate::Advancer) or another thread. (Where the system has no memory left,
/// threads that use the shard for the first time wait for each other's calls.)
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
    pub(in crate::shard) shared: Arc<Shared<T>>,
}

impl<T> Scheduler<T> {
    /// Schedules a timer that fires when the shard's clock reaches `deadline`. One that is not after the
    /// clock is due at the next advance.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`], with the payload, if the advancer is gone, as many timers are pending as the
    /// shard may hold, or the system gives no memory.
    ///
    /// # Performance
    ///
    /// O(1), lock-free. Allocates only when the shard grows: nodes for 65,536 small timers at once, or an
    /// overflow wheel.
    #[inline]
    pub fn schedule(&self, deadline: Tick, payload: T) -> Result<Key, ScheduleError<T>> {
        self.schedule_in_place(deadline, payload)
    }

    /// As [`schedule`](Self::schedule), for a payload that is still a seed.
    #[inline]
    pub(crate) fn schedule_in_place<S: IntoPayload<T>>(
        &self,
        deadline: Tick,
        seed: S,
    ) -> Result<Key, ScheduleError<S>> {
        let shared = &*self.shared;
        let mut entered = shared.lanes.enter();
        let (lane, local) = entered.parts();
        if shared.clock.is_closed() {
            return Err(ScheduleError::new(ScheduleErrorKind::ShutDown, seed));
        }
        if let Err(kind) = shared.bound.reserve() {
            return Err(ScheduleError::new(kind, seed));
        }
        let acquire = match self.acquire(local, deadline) {
            Ok(acquire) => acquire,
            Err(kind) => {
                shared.bound.release();
                return Err(ScheduleError::new(kind, seed));
            }
        };
        let accepted = self.accept(lane, local, acquire, deadline, seed);
        self.return_spare_nodes(lane, local);
        let (key, must_wake) = accepted?;
        if must_wake {
            self.wake_advancer(entered);
        }
        Ok(key)
    }

    /// Schedules a timer that fires at a tick within `window`, both ends included; the wheel chooses the
    /// one that is cheapest for it. A window that has begun fires as soon as may be; one that is over, at
    /// the next advance.
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

    /// Cancels a timer and hands back its payload. `None` means that it has fired, is being fired, or was
    /// cancelled before: the answer is final at once.
    ///
    /// # Performance
    ///
    /// O(1), lock-free, no allocation.
    #[inline]
    pub fn cancel(&self, key: Key) -> Option<T> {
        self.cancel_and(key, |slot| Some(slot.read()))
    }

    /// As [`cancel`](Self::cancel), and hands back what `harvest` makes of the payload. It is called while the lane is in
    /// use, so it runs no code of the user's, no drop of a part of the payload either.
    #[inline]
    pub(crate) fn cancel_and<R>(
        &self,
        key: Key,
        harvest: impl FnOnce(PayloadSlot<'_, T>) -> Option<R>,
    ) -> Option<R> {
        let mut place = None;
        let mut entered = self.enter(key)?;
        let (lane, local) = entered.parts();
        // Protects: the node that the key names, whose segment may be given back meanwhile.
        let stay = self.shared.slab.stay(key.node(), &local.free, &local.participant);
        let (node, era) = self.find(key, &stay)?;
        if local.held.is_none() && lane.may_hold {
            let (word, linked_for) = node.hold(era, key.generation, &mut place, harvest)?;
            local.held = Held { node: key.node(), word, linked_for };
        } else {
            let linked_for = node.cancel_into(era, key.generation, &mut place, harvest)?;
            local.hints.push(key.node(), linked_for);
        }
        drop(stay);
        self.count_cancelled(lane);
        if self.note_dead(lane, local) {
            self.wake_advancer(entered);
        }
        place
    }

    /// Says that the timer will soon be cancelled or rescheduled, so that the processor can fetch its node from memory
    /// meanwhile. It changes nothing, and any key will do.
    ///
    /// With a million timers pending, most of what a cancel costs is the wait for one cache line. Who has several at hand
    /// to cancel names one some eight ahead:
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

    /// Gives a pending timer another deadline and returns the key that it has now. `None` means that it
    /// has fired, is being fired, or was cancelled before.
    ///
    /// A later deadline usually leaves the timer where it is, and its key as it was; an earlier one moves
    /// it. Where a move finds no memory, the timer keeps its former deadline.
    ///
    /// # Performance
    ///
    /// O(1), lock-free; to a later deadline (up to 2^28 ticks after the one it was scheduled for) one
    /// compare-and-swap.
    #[inline]
    pub fn reschedule(&self, key: Key, deadline: Tick) -> Option<Key> {
        let mut entered = self.enter(key)?;
        let (lane, local) = entered.parts();
        // Protects: as in `cancel`.
        let stay = self.shared.slab.stay(key.node(), &local.free, &local.participant);
        let (node, era) = self.find(key, &stay)?;
        match node.extend(era, key.generation, deadline) {
            Extended::Gone => None,
            Extended::Done => {
                lane.tally.extended.add(1);
                Some(key)
            }
            Extended::NeedsMove => {
                drop(stay);
                self.relocate(entered, key, deadline)
            }
        }
    }

    /// The last tick all of whose timers have been taken out by the advancer: all ticks up to and including
    /// this one have been flushed.
    #[must_use]
    pub fn now(&self) -> Tick {
        self.shared.clock.flushed()
    }

    /// The tick up to which timers are due: that of [`now`](Self::now), or a later one while an advance is under way.
    pub(crate) fn clock(&self) -> Tick {
        self.shared.clock.read().now
    }

    /// How many timers are pending: neither fired nor cancelled. One that is due but not yet taken from
    /// [`Expired`](crate::Expired) counts. O(threads).
    ///
    /// While other threads are at work the number is at least the truth of some moment during the call.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether no timer is pending. O(threads).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the shard has done and what it holds. O(threads + segments).
    #[must_use]
    pub fn stats(&self) -> ShardStats {
        let mut entered = self.shared.lanes.enter();
        // Protects: the segments whose free nodes are counted.
        let pinned = entered.parts().1.participant.pin();
        self.shared.stats(&pinned)
    }

    /// See [`model`](crate::model).
    #[cfg(feature = "model")]
    pub(crate) fn let_producers_hold(&self) {
        self.shared.lanes.let_hold();
    }

    /// A lane for something to be done with the key's timer, if it is one of this shard; its node is asked for.
    #[inline]
    pub(super) fn enter(&self, key: Key) -> Option<Entered<'_>> {
        let shared = &*self.shared;
        if !key.is_of(shared.id) {
            return None;
        }
        shared.slab.prefetch(key.node());
        Some(shared.lanes.enter())
    }

    /// The node that the key names and its segment's era, if there is a segment.
    #[inline]
    pub(super) fn find<'g>(&'g self, key: Key, stay: &'g Stay<'_>) -> Option<(&'g Node<T>, u32)> {
        self.shared.firing.note_look();
        self.shared.slab.get(key.node(), stay)
    }

    /// Counts a timer that the caller has cancelled or stopped.
    #[inline]
    pub(super) fn count_cancelled(&self, lane: &Lane) {
        self.shared.counting.note_change();
        lane.tally.cancelled.add(1);
        self.shared.bound.release();
    }

    /// Puts the timer into the vacancy, unless the shard closes meanwhile. Beside the key it says whether the caller owes
    /// the advancer a ring.
    #[inline]
    fn accept<S: IntoPayload<T>>(
        &self,
        lane: &Lane,
        local: &mut Local,
        acquire: Acquired<'_, T>,
        deadline: Tick,
        seed: S,
    ) -> Result<(Key, bool), ScheduleError<S>> {
        // Before the timer can be seen, so that `len` never misses it.
        self.shared.counting.note_change();
        lane.tally.scheduled.add(1);
        let (key, must_wake) = self.arm_and_insert(lane, local, acquire, deadline, seed);
        if self.shared.clock.is_closed()
            && let Some(payload) = self.take_back(lane, local, key)
        {
            return Err(ScheduleError::new(ScheduleErrorKind::ShutDown, S::from_payload(payload)));
        }
        Ok((key, must_wake))
    }

    /// The shard was closed while the timer was put in: the advancer's last look has found it and hands it
    /// back, or it is taken out again here.
    #[cold]
    fn take_back(&self, lane: &Lane, local: &mut Local, key: Key) -> Option<T> {
        // Protects: the node, which may have been fired and freed, and its segment given back, just before.
        let stay = Stay::pinned(&local.participant);
        let (node, era) = self.shared.slab.get(key.node(), &stay)?;
        let (linked_for, payload) = node.cancel(era, key.generation)?;
        lane.tally.scheduled.take_back();
        self.shared.bound.release();
        local.hints.push(key.node(), linked_for);
        Some(payload)
    }

    /// Gives the free nodes back that a call leaves over, if the lane is a common one.
    #[inline]
    fn return_spare_nodes(&self, lane: &Lane, local: &mut Local) {
        if !lane.may_keep() {
            self.shared.slab.hand_back(&mut local.free, &local.participant);
        }
    }

    /// After a cancel or a move, which left a dead node: reports now and then how many there are. True if that asks for a
    /// sweep, so that the caller owes the advancer a ring.
    #[inline]
    pub(super) fn note_dead(&self, lane: &Lane, local: &mut Local) -> bool {
        match local.until_report.checked_sub(1) {
            Some(left) => {
                local.until_report = left;
                false
            }
            None => self.shared.report_dead(lane, local),
        }
    }

    /// Wakes the advancer, unless that has been done since it went to sleep. The waker is user code, so the lane is left
    /// first, and nothing is pinned.
    #[cold]
    pub(super) fn wake_advancer(&self, mut entered: Entered<'_>) {
        let pending = self.shared.clock.waker.pending_wake(&entered.parts().1.participant);
        drop(entered);
        if let Some(pending) = pending {
            pending.wake();
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
