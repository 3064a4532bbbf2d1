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
//! | giving freed nodes to the producers | at the next tick while a batch is given, also one that a drain has begun |
//! | giving segments back | at the next tick while there are too many |
//! | all of it | after [`LULL`] ticks |
//!
//! A clock that leaps from one timer to the next passes many ticks at once, and would do all of it
//! for each timer. So after an upkeep that has left nothing under way, the next [`LEAPS`] leaps do
//! only what goes by the clock, the early cascade, and what is asked for. What they leave out is
//! little: a batch of freed nodes that is large enough ends the rest, and memory that is to be given
//! back waits for a few leaps.
//!
//! An advance that does not move the clock does its share of the work whenever it is called. Only
//! the early cascade and giving segments back go by the clock. The look for idle wheels is apart
//! from this, because a fence has to follow it (see
//! [`idle_wheels`](crate::shard::advancer::idle_wheels)).

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

/// A move of the clock by at least this many ticks is a leap. After an upkeep that has left nothing
/// under way, the next [`LEAPS`] leaps leave the upkeep out: an event loop that sleeps from one
/// timer to the next would otherwise do all the work for each timer.
const LEAP: Tick = 16;
const LEAPS: u32 = if cfg!(shardwheel_loom) || crate::config::SMALL { 0 } else { 8 };

/// Epoch steps in one call of [`Advancer::maintain`]: they free what ended threads have left.
const HELPS: usize = 64;

impl<T> Advancer<T> {
    /// Returns whether memory that the shard does not need waits to be given back to the system. An
    /// idle event loop then calls [`maintain`](Self::maintain), for example every 10 ms, until this
    /// returns false. The answer of [`next_expiration`](Self::next_expiration) does not take this
    /// work into account. While the clock moves often enough, [`advance`](Self::advance) does the
    /// work.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let (_scheduler, mut advancer) = shardwheel::shard::<u32>(&shardwheel::Config::default());
    /// let until_next = advancer.next_expiration();
    /// if until_next.is_none() && advancer.needs_maintenance() {
    ///     // ... sleep for 10 ms, or until the registered waker is woken; then ...
    ///     advancer.maintain();
    /// }
    /// ```
    ///
    /// # Performance
    ///
    /// O(threads + segments), and less if nothing has been freed.
    #[must_use]
    pub fn needs_maintenance(&self) -> bool {
        let pending = self.pending();
        self.is_sweeping()
            || self.lane_totals.owes_help()
            || self.recycler.owes_memory(&self.shared.slab, pending)
            || self.are_leftovers_due(pending)
    }

    /// Gives a sixteenth of the memory that is not needed, at least one segment of 2 MiB, back to
    /// the system. If nodes of cancelled timers keep memory, it also starts a sweep, which the next
    /// calls of this or of [`advance`](Self::advance) continue.
    ///
    /// # Performance
    ///
    /// Never blocks. A segment of 2 MiB takes about 50 microseconds, the first one of a shard up to
    /// 150.
    pub fn maintain(&mut self) {
        self.refresh_lane_totals();
        let pending = self.pending();
        self.reclaim_leftovers(pending);
        self.sweep_in_steps();
        self.help();
        let (shared, reclaimer) = self.shared.parts();
        self.recycler.shed(&shared.slab, pending, reclaimer);
        (self.upkeep_due, self.leaps_left) = (self.now, 0);
    }

    /// Takes some of the epoch steps that are owed.
    pub(crate) fn help(&mut self) {
        (0..HELPS).for_each(|_| self.help_epochs());
    }

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

    /// Does a share of the background work. The clock has moved by `moved` ticks.
    pub(super) fn keep_up(&mut self, moved: Tick) {
        if moved > 0 {
            self.cascade_early();
        }
        if moved < LEAP || self.is_upkeep_asked_for() || !self.leave_out() {
            self.keep_all_up(moved > 0);
        }
    }

    /// Whether this leap of the clock may leave out what does not go by the clock.
    #[inline]
    fn leave_out(&mut self) -> bool {
        let may = self.leaps_left > 0 && !self.recycler.is_ripe();
        self.leaps_left -= u32::from(may);
        may
    }

    #[inline(never)]
    fn keep_all_up(&mut self, moves: bool) {
        self.refresh_lane_totals();
        self.help_epochs();
        if self.ended > 0 {
            self.note_ended();
        }
        self.sweep_in_steps();
        // One step gives memory to the system or looks for more of it, not both.
        let has_let_go = self.poll_recycler();
        let has_excess = moves && (has_let_go || self.give_memory_back());
        let is_at_work = self.is_at_work() || has_excess;
        self.leaps_left = if is_at_work { 0 } else { LEAPS };
        let rest = if is_at_work { 1 } else { LULL };
        let next = self.now.saturating_add(rest).min(self.early_cascade.next());
        // What goes by the clock was not done if the clock stands.
        self.upkeep_due = if moves { next } else { next.min(self.upkeep_due) };
    }

    /// Notes that a drain has begun to give a batch: the rest of it is due from the next tick on. If
    /// it waited for the end of a rest, a single step would give what many ticks have freed.
    #[inline]
    pub(super) fn note_recycling(&mut self) {
        self.upkeep_due = self.upkeep_due.min(self.now.saturating_add(1));
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

    /// Whether a piece of work is under way.
    fn is_at_work(&self) -> bool {
        self.sweep.is_under_way() || self.lane_totals.owes_help() || self.recycler.is_giving()
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests {
    use crate::shard::support::schedule;
    use crate::{Config, shard};

    /// A drain begins to give a batch in the middle of a rest. Its words are given from the next tick
    /// on, not all at once when so many nodes are freed that the next batch is ripe.
    #[test]
    fn a_batch_that_a_drain_has_begun_to_give_waits_for_no_rest() {
        let (scheduler, mut advancer) = shard(&Config::default());
        (1..=100).for_each(|tick| drop(schedule(&scheduler, tick, 1_000)));
        let mut given = 0;
        for tick in 1..=100 {
            advancer.advance(tick).for_each(drop);
            if advancer.recycler.is_giving() {
                given += 1;
                assert_eq!(advancer.upkeep_due, tick + 1);
            }
        }
        assert!(given > 0, "no drain has given a batch");
    }
}
