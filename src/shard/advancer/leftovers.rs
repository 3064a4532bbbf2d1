//! Leftovers: what idle threads keep, taken from them if memory is not needed.
//!
//! An idle thread keeps some free nodes and a held one, and a few dead nodes are tolerated. Each of
//! these may keep a whole segment. So the advancer reclaims them if there is memory that the
//! pending timers do not need, and nothing has been scheduled since the last move of the clock (or
//! the caller asks, by [`Advancer::maintain`]).

use crate::shard::advancer::Advancer;

impl<T> Advancer<T> {
    pub(crate) fn help(&mut self) {
        self.shared.participant().help();
    }

    /// Whether leftovers keep memory that `pending` timers do not need, and timers have been
    /// scheduled or nodes left dead since the last time. O(threads).
    pub(super) fn are_leftovers_due(&self, pending: usize) -> bool {
        !self.is_sweeping()
            && self.upkeep.reclaimed_at != self.activity()
            && self.recycler.excess(&self.shared.slab, pending) > 0
    }

    /// Takes what lanes keep and asks for a sweep, if leftovers are due.
    #[cold]
    pub(super) fn reclaim_leftovers(&mut self, pending: usize) {
        if !self.are_leftovers_due(pending) {
            return;
        }
        self.upkeep.reclaimed_at = self.activity();
        self.take_from_lanes();
        // A node that is left dead after this look makes leftovers due again.
        if self.shared.dead() > 0 {
            self.begin_pass();
        }
    }

    /// Takes what lanes keep, their free nodes and held ones, where the system can do that.
    pub(super) fn take_from_lanes(&mut self) {
        let mut kept = Vec::new();
        let (shared, reclaimer) = self.shared.parts();
        shared.lanes.revoke(reclaimer, |nodes| kept.push(nodes));
        for (free, mut held) in kept {
            self.shared.slab.give_words(std::iter::once(free), self.shared.keep());
            if !held.is_none() {
                // It is then a dead node like any other.
                self.shared.slab.regain(&mut held).into_vacant().cancelled();
                self.shared.note_aside_used();
            }
        }
    }

    fn activity(&self) -> u64 {
        self.shared.scheduled().wrapping_add(self.shared.dead_made())
    }
}
