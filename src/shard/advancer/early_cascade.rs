//! The early cascade: overflow buckets are emptied little by little before they expire.
//!
//! A bucket that is cascaded at its expiration is cascaded at once. With ten million timers over
//! half an hour and wheels of 2,048 buckets of 1 ms ticks, that is 11,000 nodes, while the timers
//! that are due wait. So each advance takes a few nodes out of the next bucket of each overflow
//! wheel and places them. That bucket's deadlines lie within two revolutions of the next finer
//! wheel, and the private wheels are that large (see [`private`](crate::shard::wheel::private)).
//!
//! At the end of a step, what is left of a list goes back to the bucket's private lists: between
//! advances nothing is in hand. Shared lists are detached as the sweep does it: the bit and the
//! round stay. So a producer goes on pushing to the same list, the next step takes what it has
//! pushed, and the flush, which comes in any case, takes the rest. A bucket that is not emptied in
//! time, because the clock jumps or nothing makes the advancer move it, is cascaded when it
//! expires.

use crate::shard::advancer::Advancer;
use crate::shard::advancer::chains::Chains;
use crate::shard::node::{NIL, NodeId};
use crate::shard::wheel::STRIPES;
use crate::shard::wheel::geometry::Slot;
use crate::tick::Tick;

/// Nodes moved early for each tick that the clock has moved by, and at most in one advance. With a
/// hundred million timers over half an hour, 56 timers become due per tick of 1 ms.
const NODES_PER_TICK: Tick = if crate::config::SMALL { 1 } else { 64 };
const MOST_NODES: Tick = if crate::config::SMALL { 3 } else { 512 };

/// Ticks until the next look, if a step has left nothing to move early.
const REST: Tick = if cfg!(shardwheel_loom) || crate::config::SMALL { 1 } else { 8 };

/// When the last step of the early cascade was, and when the next one is due.
pub(super) struct EarlyCascade {
    last: Tick,
    next: Tick,
}

impl EarlyCascade {
    pub(super) fn new(start: Tick) -> Self {
        Self { last: start, next: start }
    }
}

impl<T> Advancer<T> {
    /// Does a step of the early cascade, if one is due; the clock has moved.
    #[inline]
    pub(super) fn cascade_early(&mut self) {
        if self.now >= self.early_cascade.next {
            self.cascade_each_level_early();
        }
    }

    /// Empties the next bucket of each overflow wheel, finer wheels first, within the budget for
    /// the ticks that have passed.
    fn cascade_each_level_early(&mut self) {
        let moved = self.now - std::mem::replace(&mut self.early_cascade.last, self.now);
        let mut budget = moved.saturating_mul(NODES_PER_TICK).min(MOST_NODES);
        for level in 1..self.shared.geometry.levels() {
            let Some(slot) = self.next_early_bucket(level) else { continue };
            while budget > 0
                && let Some(lists) = self.take_early_lists(slot)
            {
                budget -= self.place_early(slot, lists, budget);
            }
        }
        self.early_cascade.next = self.now.saturating_add(if budget == 0 { 1 } else { REST });
    }

    /// The next bucket of that level, unless the clock has already reached its expiration.
    #[inline]
    fn next_early_bucket(&self, level: usize) -> Option<Slot> {
        if self.private.level(level).is_none() && self.wheel(level).is_none() {
            return None;
        }
        let geometry = self.shared.geometry;
        let slot = geometry.first_from(level, self.flushed.checked_add(1)?)?;
        // Otherwise it is about to be flushed.
        (geometry.expiration(slot) > self.now).then_some(slot)
    }

    /// Takes the private lists of a bucket, or else its shared lists, if they hold anything.
    fn take_early_lists(&mut self, slot: Slot) -> Option<[NodeId; STRIPES]> {
        let (geometry, level) = (self.shared.geometry, slot.level);
        let private = geometry.private_index(slot);
        if self.sweep.has_private(level, private) {
            // The sweep relies on the bucket's bit, which `take` would clear.
            return None;
        }
        self.private.take(level, private).or_else(|| {
            let index = geometry.index(slot);
            let wheel = self.wheel(level).filter(|wheel| wheel.is_occupied(index))?;
            let lists = wheel.detach_all(index);
            (lists != [NIL; STRIPES]).then_some(lists)
        })
    }

    /// Places up to `budget` of the nodes, and leaves the rest in the bucket's private lists.
    /// Returns how many nodes it has placed.
    fn place_early(&mut self, slot: Slot, lists: [NodeId; STRIPES], budget: Tick) -> Tick {
        self.idle.note_use(slot.level, self.flushed);
        let mut chains = Chains::of(lists, &self.shared);
        let mut placed = 0;
        while placed < budget
            && let Some(id) = chains.pop(&self.shared).map(|hand| hand.id())
        {
            self.shared.tally.cascaded.add(1);
            self.relink(id);
            placed += 1;
        }
        // A pass of the sweep that has already visited the private lists does not meet these nodes.
        self.sweep.note_transfer();
        if !self.private.put_lists_back(self.shared.geometry, slot, chains.lists()) {
            // No memory: each node goes wherever there is a place for it.
            while let Some(id) = chains.pop(&self.shared).map(|hand| hand.id()) {
                self.relink(id);
            }
        }
        placed
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
