//! Leftovers: what idle threads keep, taken from them if memory is not needed.
//!
//! An idle thread keeps some free nodes and a held one, and a few dead nodes are tolerated. Each of
//! these may keep a whole segment. So the advancer reclaims them if there is memory that the
//! pending timers do not need, and nothing has been scheduled since the last move of the clock (or
//! the caller asks, by [`Advancer::maintain`]).

use crate::shard::advancer::Advancer;
use crate::shard::memory::slab::{FreeWord, Held};

impl<T> Advancer<T> {
    /// How many timers are pending.
    #[inline]
    pub(super) fn pending(&self) -> usize {
        self.shared.len()
    }

    /// How many timers have been scheduled since the shard was made.
    #[inline]
    pub(super) fn scheduled(&self) -> u64 {
        self.shared.scheduled()
    }

    /// Gives back the free nodes that a lane has left over, and makes the node that it held a dead
    /// node like any other.
    fn take_in(&mut self, (free, mut held): (FreeWord, Held)) {
        self.shared.slab.give_words(std::iter::once(free), self.shared.keep());
        if !held.is_none() {
            self.shared.slab.regain(&mut held).into_vacant().cancelled();
            self.shared.note_aside_used();
        }
    }

    pub(crate) fn help(&mut self) {
        self.shared.participant().help();
    }

    /// Whether leftovers keep memory that `pending` timers do not need, and timers have been
    /// scheduled or nodes left dead since the last time. O(threads).
    pub(super) fn are_leftovers_due(&self, pending: usize) -> bool {
        !self.is_sweeping()
            && self.upkeep.reclaimed_at != self.activity()
            && self.recycler.is_worth_asking(&self.shared.slab, pending)
    }

    /// Takes what lanes keep and asks for a sweep, if leftovers are due.
    #[cold]
    pub(super) fn reclaim_leftovers(&mut self, pending: usize) {
        if !self.are_leftovers_due(pending) {
            return;
        }
        self.upkeep.reclaimed_at = self.activity();
        self.recycler.note_asked();
        self.take_from_lanes();
        // A node that is left dead after this look makes leftovers due again.
        if self.shared.dead() > 0 {
            self.begin_pass();
        }
    }

    /// Takes what lanes keep, where the system can do that.
    pub(super) fn take_from_lanes(&mut self) {
        let mut kept = Vec::new();
        let (shared, reclaimer) = self.shared.parts();
        shared.lanes.revoke(reclaimer, |nodes| kept.push(nodes));
        kept.into_iter().for_each(|nodes| self.take_in(nodes));
    }

    fn activity(&self) -> u64 {
        self.scheduled().wrapping_add(self.shared.dead_made())
    }
}
