//! Lane totals: the advancer's sums over the counters of its shard's lanes.
//!
//! For its background work, and each time it announces its sleep, the advancer needs the number of
//! pending timers. No thread writes the counters of a lane without an owner, so the advancer keeps
//! the sum of those, and reads only the lanes that had an owner when it last recounted. The cost
//! follows the threads at work, not the threads that ever were.
//!
//! **No timer is missed.** A thread that takes a lane over raises
//! [`Lanes::changes`](crate::shard::shared::lanes::Lanes::changes) before it counts its first
//! timer. It then sets the timer's occupancy bit and passes its fence (see
//! [`protocol`](crate::shard::shared::protocol)). The advancer reads `changes` where it reads the
//! bits, after its own fence. So if the advancer relies on seeing the bit, it also sees the change,
//! and recounts. If the advancer's fence comes first, the producer sees `wake_below` and wakes the
//! advancer.
//!
//! In a recount, the advancer takes each lane without an owner for a moment. It gives back the
//! nodes that the last owner has left, which would keep their segments from going back to the
//! system.
//!
//! # Leftovers
//!
//! An idle thread keeps some free nodes and a held one, and a few dead nodes are tolerated. Each of
//! these may keep a whole segment. So the advancer reclaims them if there is memory that the
//! pending timers do not need, and nothing has been scheduled since the last move of the clock (or
//! the caller asks, by [`Advancer::maintain`]). It takes what lanes keep from their owners (see
//! [`Lanes::revoke`](crate::shard::shared::lanes::Lanes::revoke)) and sweeps. It does so once for
//! all that was scheduled and cancelled until then.

use crate::shard::advancer::Advancer;
use crate::shard::memory::epochs::Grace;
use crate::shard::memory::slab::{FreeWord, Held};
use crate::shard::shared::Shared;
use crate::shard::shared::lanes::LaneHandle;
use crate::sync::Ordering;

#[derive(Default)]
pub(super) struct LaneTotals {
    /// The value of `changes` at the last recount; `None` if there was no memory for it.
    seen: Option<u64>,
    /// The lanes that had an owner then.
    in_use: Vec<LaneHandle>,
    /// The sums over the other lanes.
    scheduled: u64,
    cancelled: u64,
    /// Epoch steps still owed: they free, little by little, what a thread leaves there when it
    /// ends.
    helps: usize,
    /// How many timers had been scheduled and how many nodes left dead, in sum, when the leftovers
    /// were last reclaimed.
    reclaimed_at: u64,
}

/// Epoch steps owed after a recount: for each change of a lane's owner, and besides those.
const HELPS_PER_LANE: usize = 1;
const LEAST_HELPS: usize = 8;

impl LaneTotals {
    /// Totals without lanes, in the former memory.
    fn begin_anew(&mut self) -> Self {
        let mut in_use = std::mem::take(&mut self.in_use);
        in_use.clear();
        Self { in_use, helps: self.helps, reclaimed_at: self.reclaimed_at, ..Self::default() }
    }

    /// Whether what threads have left in the epochs is not yet freed.
    pub(super) fn owes_help(&self) -> bool {
        self.helps > 0
    }

    /// How many timers are pending; `None` if a recount must come first. O(lanes in use).
    #[inline]
    fn pending<T>(&self, shared: &Shared<T>) -> Option<usize> {
        // Models read every lane each time: they do not model the changes.
        if cfg!(shardwheel_loom) || self.seen != Some(shared.lanes.changes()) {
            return None;
        }
        // As in `Shared::len`: the ended timers first.
        let add = |sum: u64, lane: &LaneHandle| sum.wrapping_add(lane.tally.cancelled.get());
        let ended = self.in_use.iter().fold(shared.tally.ended() + self.cancelled, add);
        let scheduled = self.scheduled(shared)?;
        Some(usize::try_from(scheduled.saturating_sub(ended)).unwrap_or(usize::MAX))
    }

    /// How many timers have been scheduled; `None` if a recount must come first.
    #[inline]
    fn scheduled<T>(&self, shared: &Shared<T>) -> Option<u64> {
        let is_current = !cfg!(shardwheel_loom) && self.seen == Some(shared.lanes.changes());
        let add = |sum: u64, lane: &LaneHandle| sum.wrapping_add(lane.tally.scheduled.get());
        is_current.then(|| self.in_use.iter().fold(self.scheduled, add))
    }
}

impl<T> Advancer<T> {
    /// How many timers are pending; as [`Shared::len`].
    #[inline]
    pub(super) fn pending(&self) -> usize {
        self.lane_totals.pending(&self.shared).unwrap_or_else(|| self.shared.len())
    }

    /// How many timers have been scheduled since the shard was made.
    #[inline]
    pub(super) fn scheduled(&self) -> u64 {
        self.lane_totals.scheduled(&self.shared).unwrap_or_else(|| self.shared.scheduled())
    }

    /// Whether lanes have been taken over or given up since the last recount.
    #[inline]
    pub(super) fn are_lane_totals_stale(&self) -> bool {
        !cfg!(shardwheel_loom) && self.lane_totals.seen != Some(self.shared.lanes.changes())
    }

    /// Recounts if lanes have been taken over or given up since the last recount.
    pub(super) fn refresh_lane_totals(&mut self) {
        let changes = self.shared.lanes.changes();
        if self.lane_totals.seen != Some(changes) && !cfg!(shardwheel_loom) {
            self.recount_lanes(changes);
        }
    }

    #[cold]
    fn recount_lanes(&mut self, changes: u64) {
        let shared = self.shared.share();
        let former = self.lane_totals.in_use.len();
        let mut lane_totals = self.lane_totals.begin_anew();
        let mut has_memory = true;
        for lane in shared.lanes.iter() {
            if let Some(mut tidied) = lane.tidy() {
                self.take_in(tidied.take_nodes());
                lane_totals.scheduled = lane_totals.scheduled.wrapping_add(lane.tally.scheduled.get());
                lane_totals.cancelled = lane_totals.cancelled.wrapping_add(lane.tally.cancelled.get());
                continue;
            }
            has_memory &= lane_totals.in_use.try_reserve(1).is_ok();
            if has_memory {
                lane_totals.in_use.push(lane.handle());
            }
        }
        lane_totals.seen = has_memory.then_some(changes);
        // A new thread may have come for each that ended, so the changes say more than the number
        // of lanes.
        let gone = usize::try_from(changes - self.lane_totals.seen.unwrap_or(0)).unwrap_or(former);
        lane_totals.helps = (lane_totals.helps + LEAST_HELPS + HELPS_PER_LANE * gone).min(1 << 16);
        self.lane_totals = lane_totals;
    }

    /// Gives back the free nodes that a lane has left over, and makes the node that it held a dead
    /// node like any other.
    fn take_in(&mut self, (free, mut held): (FreeWord, Held)) {
        if self.shared.slab.give_back(free, self.shared.keep()) {
            self.recycler.note_given();
        }
        if !held.is_none() {
            self.shared.slab.regain(&mut held).into_vacant().cancelled();
            self.shared.note_aside_used();
        }
    }

    /// Takes an epoch step, if one is owed.
    #[inline]
    pub(super) fn help_epochs(&mut self) {
        if self.lane_totals.helps > 0 {
            self.lane_totals.helps -= 1;
            Grace::help(self.shared.participant());
        }
    }

    /// Whether leftovers keep memory that `pending` timers do not need, and timers have been
    /// scheduled or nodes left dead since the last time. O(threads).
    pub(super) fn are_leftovers_due(&self, pending: usize) -> bool {
        !self.is_sweeping()
            && self.lane_totals.reclaimed_at != self.activity()
            && self.recycler.is_worth_asking(&self.shared.slab, pending)
    }

    /// Takes what lanes keep and asks for a sweep, if leftovers are due.
    #[cold]
    pub(super) fn reclaim_leftovers(&mut self, pending: usize) {
        if !self.are_leftovers_due(pending) {
            return;
        }
        self.lane_totals.reclaimed_at = self.activity();
        self.recycler.note_asked();
        self.take_from_lanes();
        // A node that is left dead after this look makes leftovers due again.
        if self.shared.dead() > 0 {
            // Ordering: Relaxed, the advancer sees its own request.
            self.shared.sweep_requested.store(true, Ordering::Relaxed);
        }
    }

    /// Takes what lanes keep, where the system can do that.
    pub(super) fn take_from_lanes(&mut self) {
        let shared = self.shared.share();
        shared.lanes.revoke(|kept| self.take_in(kept));
    }

    fn activity(&self) -> u64 {
        self.scheduled().wrapping_add(self.shared.dead_made())
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests {
    use crate::shard::support::{cancel, schedule};
    use crate::{Config, shard};

    /// Fires all but the last of many timers and maintains the shard, as a driver does. Returns
    /// whether a sweep was requested. `cancelled` timers are cancelled before.
    fn is_sweep_requested_after_firing(cancelled: usize) -> bool {
        let count = 200_000;
        let (scheduler, mut advancer) = shard::<u32>(&Config::default());
        let keys: Vec<_> = (0..count).map(|i| scheduler.schedule(1 + i / 100, 0).expect("open")).collect();
        scheduler.schedule(1_000_000, 0).expect("open");
        (1..=count / 200).for_each(|now| drop(advancer.advance(now)));
        cancel(&scheduler, &keys[keys.len() - cancelled..]);
        assert!(!advancer.shared.is_sweep_requested() && !advancer.is_sweeping());
        advancer.reclaim_leftovers(0);
        assert_ne!(advancer.lane_totals.reclaimed_at, 0, "leftovers have been reclaimed");
        advancer.shared.is_sweep_requested()
    }

    /// A sweep visits all that is pending: it must not begin for memory alone.
    #[test]
    fn leftovers_ask_for_a_sweep_only_if_a_node_is_dead() {
        assert!(!is_sweep_requested_after_firing(0));
        assert!(is_sweep_requested_after_firing(1));
    }

    #[test]
    fn threads_that_have_ended_cost_nothing_and_keep_nothing() {
        let (scheduler, mut advancer) = shard::<u32>(&Config::default());
        let keys = std::thread::scope(|scope| {
            let work = || {
                let keys = schedule(&scheduler, 100, 3);
                cancel(&scheduler, &keys[..1]);
                keys
            };
            let threads: Vec<_> = (0..100).map(|_| scope.spawn(work)).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("it schedules")).collect::<Vec<_>>()
        });
        assert_eq!(advancer.advance(1).count(), 0);
        // Lent lanes stay.
        let lent = |advancer: &crate::Advancer<u32>| {
            advancer.lane_totals.in_use.iter().filter(|lane| !lane.may_keep()).count()
        };
        assert!(advancer.lane_totals.in_use.len() == lent(&advancer) && advancer.lane_totals.seen.is_some());
        assert_eq!((advancer.pending(), scheduler.len()), (200, 200));
        advancer.check_invariants();
        let private = scheduler.schedule(50, 1).expect("open");
        assert_eq!((advancer.pending(), scheduler.len()), (201, 201));
        cancel(&scheduler, &[private]);
        cancel(&scheduler, &keys[1..2]);
        assert_eq!(advancer.advance(100).count(), 199);
        assert_eq!(
            (advancer.lane_totals.in_use.len() - lent(&advancer), advancer.next_expiration()),
            (1, None)
        );
        advancer.check_invariants();
        (101..1_000).for_each(|now| assert_eq!(advancer.advance(now).count(), 0));
        let kept = scheduler.stats().nodes;
        assert!(kept <= 64, "the own lane keeps a word of nodes at most, and not {kept}");
    }
}
