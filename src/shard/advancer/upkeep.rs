//! Upkeep: the background work of an advance, and when there is some again.
//!
//! Most ticks need none. So each piece of work says when it is next due, and an advance before that
//! compares two words. What other threads ask for in the meantime, a sweep, they note in a word
//! that every advance reads.
//!
//! | work | due |
//! |---|---|
//! | early cascade | at the tick that its last step has set |
//! | a new sweep | when a producer has asked for it |
//! | a sweep under way; giving freed nodes to the producers, also those of a drain; giving segments back, once begun | at the next move of the clock |
//! | all of it | after `MOVES_PER_UPKEEP` moves of the clock |
//!
//! The count is of moves, not of ticks: an event loop, whose clock leaps from one timer to the
//! next, would otherwise do all of it for each timer.
//!
//! An advance that does not move the clock does its share of the work whenever it is called. Only
//! the early cascade and giving segments back go by the clock.
//!
//! # Leftovers
//!
//! An idle thread keeps some free nodes, and a few dead nodes are tolerated. Each of
//! these may keep a whole segment. So the advancer reclaims them if there is memory that the
//! pending timers do not need, and nothing has been scheduled since the last upkeep (or the caller
//! asks, by [`Advancer::maintain`]).

use crate::shard::advancer::Advancer;
use crate::shard::memory::recycle::{FREED_IN_A_DRAIN, RIPE_BATCH, WORDS_PER_STEP};
use crate::shard::shared::FEW_PENDING;
use crate::size::size;
use crate::sync::Ordering;
use crate::tick::Tick;

/// Moves of the clock from one upkeep to the next if nothing is under way.
pub(crate) const MOVES_PER_UPKEEP: u32 = size(64, 3, 1);

/// When the background work is due, and since when it counts.
#[derive(Default)]
pub(in crate::shard) struct Upkeep {
    /// Moves of the clock until the next upkeep.
    pub(in crate::shard) due_in: u32,
    /// Nodes freed since the number of dead nodes was last checked.
    pub(in crate::shard) ended: usize,
    /// How many timers had been scheduled at the last upkeep that looked for memory to give.
    scheduled: u64,
    /// How many timers had been scheduled and nodes left dead when the leftovers were last taken.
    pub(in crate::shard) reclaimed_at: u64,
    /// When the last step of the early cascade was.
    pub(in crate::shard) last_cascade: Tick,
    /// No step of the early cascade is due before this tick.
    pub(in crate::shard) next_cascade: Tick,
}

impl Upkeep {
    pub(super) fn new(start: Tick) -> Self {
        Self { last_cascade: start, next_cascade: start, ..Self::default() }
    }
}

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
        let pending = self.shared.len();
        self.is_sweeping()
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
        let pending = self.shared.len();
        self.reclaim_leftovers(pending);
        self.sweep_in_steps();
        self.help();
        let (shared, reclaimer) = self.shared.parts();
        self.recycler.shed(&shared.slab, pending, reclaimer);
        self.upkeep.due_in = 0;
    }

    /// Whether there is work, or a producer has asked for a sweep.
    #[inline]
    pub(in crate::shard) fn is_upkeep_due(&self) -> bool {
        let is_due = self.upkeep.due_in == 0 || self.now >= self.upkeep.next_cascade;
        is_due || self.shared.is_sweep_requested()
    }

    /// Does a share of the background work. The clock has moved by `ticks`.
    pub(in crate::shard) fn keep_up(&mut self, ticks: Tick) {
        if ticks > 0 {
            self.cascade_early();
        }
        if ticks == 0 || self.upkeep.due_in == 0 || self.shared.is_sweep_requested() {
            self.keep_all_up(ticks > 0);
        }
    }

    #[cold]
    pub(in crate::shard) fn step_recycler(&mut self) {
        let (shared, reclaimer) = self.shared.parts();
        self.recycler.step(0, &shared.slab, reclaimer);
        if self.recycler.is_giving() {
            // The rest of the batch is due from the next tick on. At the end of a rest, a single
            // step would give what many ticks have freed.
            self.upkeep.due_in = self.upkeep.due_in.min(1);
        }
    }

    /// Ends a drain. If it has freed some nodes, it checks the number of dead nodes; otherwise the
    /// check waits for the next upkeep.
    #[inline]
    pub(crate) fn end_drain(&mut self) {
        self.ensure_due();
        if self.upkeep.ended >= FREED_IN_A_DRAIN {
            self.note_ended();
        }
    }

    /// Does what is due when some timers have ended.
    #[inline(never)]
    fn note_ended(&mut self) {
        // Fewer pending timers tolerate fewer dead nodes; and freed dead nodes require the next
        // check to be near.
        self.shared.check_dead();
        self.upkeep.ended = 0;
        self.hands.overdue.shrink();
    }

    /// Lets the next cancel wake the advancer, if it has memory that the few pending timers do not
    /// need. With many timers the sweep that follows would take too long.
    #[inline]
    pub(in crate::shard) fn note_excess(&self) {
        let slab = &self.shared.slab;
        let has_excess = slab.size() > 1 && {
            let pending = self.shared.len();
            pending <= FEW_PENDING && self.recycler.excess(slab, pending) > 0
        };
        // Ordering: Relaxed for both, a hint.
        if has_excess != self.shared.clock.wakes_for_cancel.load(Ordering::Relaxed) {
            self.shared.clock.wakes_for_cancel.store(has_excess, Ordering::Relaxed);
        }
    }

    #[inline(never)]
    fn keep_all_up(&mut self, moves: bool) {
        if self.upkeep.ended > 0 {
            self.note_ended();
        }
        let has_rested = !self.is_sweeping() && !self.recycler.is_giving();
        self.sweep_in_steps();
        let (shared, reclaimer) = self.shared.parts();
        self.recycler.step(WORDS_PER_STEP, &shared.slab, reclaimer);
        // One step gives memory to the system or looks for more of it, not both.
        let has_given = self.recycler.give_memory(false, reclaimer);
        if !has_given {
            self.give_memory_back(has_rested, moves);
        }
        let is_at_work = self.sweep.is_under_way() || self.recycler.is_giving() || has_given;
        let next = if is_at_work { 1 } else { MOVES_PER_UPKEEP };
        // What goes by the clock was not done if the clock stands.
        self.upkeep.due_in = if moves { next } else { next.min(self.upkeep.due_in) };
    }

    /// After a rest, gives freed nodes that are few to the slab, if nothing is pending or more is
    /// mapped than the pending timers need. In the latter case, if the clock moves, also takes an
    /// empty segment out of the table.
    ///
    /// Most shards have nothing to give. Beside 64 threads, their counts would take most of the
    /// time of an idle tick.
    fn give_memory_back(&mut self, has_rested: bool, moves: bool) {
        let least = if moves { 1 } else { RIPE_BATCH };
        let may_hurry = has_rested && self.recycler.len() >= least;
        let may_retire = moves && self.recycler.excess(&self.shared.slab, 0) > 0;
        if !may_hurry && !may_retire {
            return;
        }
        let (scheduled, pending) = self.shared.scheduled_and_pending();
        let (shared, reclaimer) = self.shared.parts();
        let has_excess = self.recycler.excess(&shared.slab, pending) > 0;
        if may_hurry && (pending == 0 || has_excess) {
            self.recycler.hurry(&shared.slab);
        }
        if may_retire {
            let is_idle = std::mem::replace(&mut self.upkeep.scheduled, scheduled) == scheduled;
            if has_excess {
                self.recycler.retire_segment(&shared.slab, reclaimer);
            }
            if has_excess && is_idle {
                self.reclaim_leftovers(pending);
            }
        }
    }

    pub(crate) fn help(&mut self) {
        self.shared.participant().help();
    }

    /// Whether leftovers keep memory that `pending` timers do not need, and timers have been
    /// scheduled or nodes left dead since the last time. O(threads).
    fn are_leftovers_due(&self, pending: usize) -> bool {
        !self.is_sweeping()
            && self.upkeep.reclaimed_at != self.activity()
            && self.recycler.excess(&self.shared.slab, pending) > 0
    }

    /// Takes what lanes keep and asks for a sweep, if leftovers are due.
    #[cold]
    fn reclaim_leftovers(&mut self, pending: usize) {
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

    /// Takes the free nodes that lanes keep, where the system can do that.
    pub(super) fn take_from_lanes(&mut self) {
        let mut kept = Vec::new();
        let (shared, reclaimer) = self.shared.parts();
        shared.lanes.revoke(reclaimer, |nodes| kept.push(nodes));
        self.shared.slab.give_words(kept.into_iter(), self.shared.keep());
    }

    fn activity(&self) -> u64 {
        self.shared.scheduled().wrapping_add(self.shared.dead_made())
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests {
    use super::MOVES_PER_UPKEEP;
    use crate::shard::support::schedule;
    use crate::{Config, shard};

    /// While empty segments go back, no upkeep rests after each of them.
    #[test]
    fn segments_go_back_one_after_the_other() {
        const TIMERS: u64 = 20_000;
        let (scheduler, mut advancer) = shard::<[u8; 4096]>(&Config::default());
        for _ in 0..TIMERS {
            scheduler.schedule(1, [0; 4096]).expect("there is memory");
        }
        let segments = advancer.shared.slab.size();
        assert!(segments > 70, "{segments}");
        advancer.advance(1).for_each(drop);
        let mut tick = 1;
        // Where the system offers no `membarrier`, the lane of this thread keeps nodes of one.
        while advancer.shared.slab.size() > 1 {
            tick += 1;
            assert_eq!(advancer.advance(tick).count(), 0);
            assert!(tick < segments as u64 * u64::from(MOVES_PER_UPKEEP) / 4, "{tick} moves");
        }
    }

    /// A drain begins to give a batch in the middle of a rest. Its words are given from the next
    /// tick on, not all at once when so many nodes are freed that the next batch is ripe.
    #[test]
    fn a_batch_that_a_drain_has_begun_to_give_waits_for_no_rest() {
        let (scheduler, mut advancer) = shard(&Config::default());
        (1..=100).for_each(|tick| drop(schedule(&scheduler, tick, 1_000)));
        let mut given = 0;
        for tick in 1..=100 {
            advancer.advance(tick).for_each(drop);
            if advancer.recycler.is_giving() {
                given += 1;
                assert_eq!(advancer.upkeep.due_in, 1);
            }
        }
        assert!(given > 0, "no drain has given a batch");
    }
}
