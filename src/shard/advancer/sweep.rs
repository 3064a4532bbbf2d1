//! The sweep: frees dead nodes before the bucket in which they are linked is due.
//!
//! The node of a cancelled timer stays linked. When a shard has more dead nodes than three quarters
//! of what promise 5 allows, a canceller asks for a sweep. The advancer then goes through all lists
//! in steps: it detaches a bucket's lists, private and shared (the bits and rounds of shared lists
//! stay), frees the dead nodes, and links the living into the private lists of the bucket. A pass
//! goes from the coarsest level to the finest. So nodes that are cascaded meanwhile come to a level
//! that the pass has yet to visit, and it misses no node that was dead when it began.
//!
//! **No timer is lost.** Between detaching and linking, the living nodes are in the advancer's
//! hand. A producer goes on pushing to the same list, and a canceller finds its node by its key.
//! Before a flush of the bucket, the advancer sweeps what is detached of it; the bit, which stays
//! set, still says where to look.
//!
//! **Cost.** A pass begins when the dead nodes are three quarters of what is tolerated. With `live`
//! timers pending at that moment it visits 1.75 x `live` nodes. At 16 nodes per cancel it ends
//! after 0.11 x `live` cancels; then 0.86 x `live` nodes are dead and 0.89 x `live` timers pending,
//! so it ends before the bound is reached. That is amortised O(1) per cancel, in steps of 4,096
//! nodes plus 16 for each cancel since the step before.
//!
//! **Progress.** While a pass is under way and a sweep is still due, cancellers wake the advancer
//! for the next step, as for the first. The advancer also wakes itself when it announces its sleep,
//! because there may be no further cancel.
//!
//! **Limit.** Nodes of timers that were cancelled before a pass begins, perhaps all at once, or
//! while the advancer's thread waits for a processor, are above the bound until the pass reaches
//! them. Cancellers whose nodes are twice the bound yield (`shared/counts.rs`).

use crate::shard::advancer::Advancer;
use crate::shard::shared::chains::{Chains, SHARED};
use crate::shard::wheel::geometry::Slot;
use crate::size::size;
use crate::tick::Tick;

/// Nodes that a step of the sweep visits, at least.
pub(crate) const SWEPT_NODES: u64 = size(4096, 4, 4096);

/// Nodes that a step visits for each cancel since the step before.
const NODES_PER_CANCEL: u64 = 16;

#[derive(Default)]
pub(in crate::shard) struct Sweep {
    /// Where the pass under way goes on: at the first bucket of that level which starts at or after
    /// that tick, or at the next finer level if there is no tick.
    next: Option<(usize, Option<Tick>)>,
    /// What is left to visit of a bucket's detached lists.
    detached: Option<(Slot, Chains)>,
    /// How many dead nodes had been made when the last step began; never falls within a pass.
    made: u64,
}

impl Sweep {
    /// Whether a pass is under way.
    pub(in crate::shard) fn is_under_way(&self) -> bool {
        self.next.is_some()
    }

    /// Whether lists of that bucket are detached.
    #[inline]
    pub(in crate::shard) fn has(&self, slot: Slot) -> bool {
        self.detached.as_ref().is_some_and(|&(detached, _)| detached == slot)
    }

    /// The bucket and the nodes that are detached; for invariant checks.
    #[cfg(any(test, debug_assertions, fuzzing, shardwheel_loom))]
    pub(super) fn in_hand(&self) -> Option<(Slot, &Chains)> {
        self.detached.as_ref().map(|(slot, chains)| (*slot, chains))
    }
}

impl<T> Advancer<T> {
    /// Whether a pass of the sweep is under way or asked for: an advance would continue it.
    pub(crate) fn is_sweeping(&self) -> bool {
        self.sweep.is_under_way() || self.shared.is_sweep_requested()
    }

    /// Continues the pass under way, or begins one if a sweep is asked for.
    pub(super) fn sweep_in_steps(&mut self) {
        // Also while a pass is under way: cancellers then ask, and wake, for the next step.
        let owed = self.shared.take_sweep_request();
        if owed && !self.sweep.is_under_way() {
            if self.shared.is_sweep_due() {
                self.begin_pass();
            } else {
                self.shared.check_dead();
            }
        }
        if !self.sweep.is_under_way() {
            return;
        }
        let made = self.shared.dead_made();
        let mut budget = SWEPT_NODES + NODES_PER_CANCEL * made.saturating_sub(self.sweep.made);
        // The sum may fall for a moment: a timer that is stopped while its payload is out counts
        // first as cancelled, and as stopped only afterwards.
        self.sweep.made = self.sweep.made.max(made);
        while budget > 0 && (self.sweep.detached.is_some() || self.detach_next()) {
            budget = budget.saturating_sub(1 + self.sweep_detached(budget));
        }
    }

    /// Begins a pass.
    pub(super) fn begin_pass(&mut self) {
        let levels = self.shared.height().max(self.private.height());
        self.sweep.next = Some((levels.saturating_sub(1), Some(0)));
        // Earlier cancels do not count: the first step of a pass is as short as the others.
        self.sweep.made = self.shared.dead_made();
    }

    /// Detaches the next bucket of the pass that may hold something. False at the end of the pass;
    /// if a sweep is still due then, it is asked for again.
    fn detach_next(&mut self) -> bool {
        let Some(next) = self.sweep.next else { return false };
        let Some(slot) = self.occupied_from(next) else {
            self.sweep.next = None;
            self.shared.check_dead();
            return false;
        };
        let geometry = self.shared.geometry;
        self.sweep.next = Some((slot.level, geometry.expiration(slot).checked_add(1)));
        let private = self.private.detach(slot.level, geometry.private_index(slot));
        let mut chains = Chains::of(private, &self.shared);
        if self.is_within(slot, geometry.wheel_size())
            && let Some(wheel) = self.shared.wheel(slot.level)
        {
            chains.add(SHARED, wheel.detach_all(geometry.index(slot)), &self.shared);
        }
        self.sweep.detached = Some((slot, chains));
        true
    }

    /// The first bucket of the pass, at or after `next`, that may hold something.
    fn occupied_from(&self, next: (usize, Option<Tick>)) -> Option<Slot> {
        let (geometry, flushed) = (self.shared.geometry, self.flushed);
        (0..=next.0).rev().find_map(|level| {
            let from = if level == next.0 { next.1? } else { 0 };
            let from = from.max(flushed.checked_add(1)?);
            let slot = |tick| geometry.slot(level, tick);
            let private = self.private.next_expiration_at(level, geometry, from).map(slot);
            let private = private.filter(|&slot| self.is_within(slot, geometry.private_wheel_size()));
            let shared = self.shared.next_expiration_at(level, from, Tick::MAX).map(slot);
            let shared = shared.filter(|&slot| self.is_within(slot, geometry.wheel_size()));
            private.into_iter().chain(shared).min_by_key(|slot| slot.number)
        })
    }

    /// Whether the bucket is one of the next `size` buckets of its level. A wheel of that size
    /// holds these; a search that goes round it finds them again as later ones.
    fn is_within(&self, slot: Slot, size: usize) -> bool {
        let geometry = self.shared.geometry;
        let first = self.flushed.checked_add(1).and_then(|from| geometry.first_from(slot.level, from));
        first.is_some_and(|first| slot.number - first.number < size as u64)
    }

    /// Frees the dead among the next `budget` detached nodes, and links the living again. Returns
    /// how many nodes it has visited.
    pub(in crate::shard) fn sweep_detached(&mut self, budget: u64) -> u64 {
        let Some((slot, mut chains)) = self.sweep.detached.take() else { return 0 };
        let mut seen = 0;
        while seen < budget
            && let Some(id) = chains.pop(&self.shared).map(|hand| hand.id())
        {
            seen += 1;
            if self.free_if_dead(id) {
                self.shared.tally.swept.add(1);
            } else {
                let Self { shared, private, .. } = self;
                private.link(shared.geometry, slot, id, shared.node(id).next());
            }
        }
        if chains.is_empty() {
            self.private.clear_if_empty(slot.level, self.shared.geometry.private_index(slot));
        } else {
            self.sweep.detached = Some((slot, chains));
        }
        seen
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
