//! Upkeep: the background work of an advance, and the tick at which there is some again.
//!
//! Most ticks need none. So each piece of work says when it is next due, and an advance before the
//! earliest of these ticks compares one word. What other threads ask for in the meantime (a sweep,
//! a recount of the lanes) they note in a word that every advance reads.
//!
//! | work | due |
//! |---|---|
//! | early cascade | at the tick that its last step has set |
//! | recount of the lanes, a new sweep | when a producer has noted it |
//! | epoch steps, a sweep under way | at the next tick |
//! | giving freed nodes to the producers | at the next tick while a batch is given |
//! | giving segments back | at the next tick while there are too many |
//! | all of it | after [`LULL`] ticks |
//!
//! An advance that does not move the clock does its share of the work whenever it is called. Only
//! the early cascade and giving segments back go by the clock. Idle wheels are looked at apart from
//! this, before the fence (see [`idle_wheels`](crate::shard::advancer::idle_wheels)).

use crate::shard::advancer::Advancer;
use crate::tick::Tick;

/// Ticks until the next upkeep if nothing is under way.
const LULL: Tick = if cfg!(shardwheel_loom) {
    1
} else if crate::config::SMALL {
    3
} else {
    64
};

impl<T> Advancer<T> {
    /// Whether the tick has come at which there is work.
    #[inline]
    pub(super) fn is_upkeep_due(&self) -> bool {
        self.now >= self.upkeep_due
    }

    /// Whether a producer has asked for a sweep, or lanes have changed hands.
    #[inline]
    pub(super) fn is_upkeep_asked_for(&self) -> bool {
        self.shared.is_sweep_requested() || self.are_lane_totals_stale()
    }

    /// Does a share of the background work.
    pub(super) fn keep_up(&mut self, moves: bool) {
        self.refresh_lane_totals();
        self.help_epochs();
        if self.ended > 0 {
            self.note_ended();
        }
        self.sweep_in_steps();
        self.poll_recycler();
        let mut has_excess = false;
        if moves {
            self.cascade_early();
            has_excess = self.give_memory_back();
        }
        let next = self.next_upkeep(has_excess);
        // What goes by the clock was not done if the clock stands.
        self.upkeep_due = if moves { next } else { next.min(self.upkeep_due) };
    }

    /// May unlink a segment; true if there is more memory than the pending timers need.
    fn give_memory_back(&mut self) -> bool {
        let (scheduled, pending) = (self.scheduled(), self.pending());
        let (shared, reclaimer) = self.shared.parts();
        if self.recycler.note_move(self.now, &shared.slab, scheduled, pending, reclaimer) {
            self.reclaim_leftovers(pending);
        }
        self.recycler.has_excess(&self.shared.slab, pending)
    }

    fn next_upkeep(&self, has_excess: bool) -> Tick {
        let is_at_work = self.sweep.is_under_way() || self.lane_totals.owes_help() || has_excess;
        let rest = if is_at_work || self.recycler.is_giving() { 1 } else { LULL };
        self.now.saturating_add(rest).min(self.early_cascade.next())
    }
}
