//! Drawing ahead: overflow buckets are emptied little by little before they expire.
//!
//! A bucket that is cascaded when it expires is cascaded at one go: with ten million timers over half an hour and
//! wheels of 2,048 buckets, eleven thousand nodes while those that are due wait. So each advance takes a few nodes out
//! of the next bucket of each overflow wheel and places them. That bucket's deadlines lie within two revolutions of the
//! next finer wheel, and the advancer's own wheels are that large (see [`private`](crate::shard::wheel::private)).
//!
//! What is left of a list when the step is over goes back to the bucket, to the advancer's half: between advances
//! nothing is in hand. A list of the shared half is detached as the sweep does it, its bit and its round staying as they
//! are, so an adder goes on pushing to it, the next step takes what it has pushed, and the flush, which comes in any
//! case, takes the rest. What is not drawn in time, because the clock jumps or nothing has the advancer move it, is
//! cascaded when the bucket expires.

use crate::shard::advancer::Advancer;
use crate::shard::advancer::chains::{Chains, InHand};
use crate::shard::node::{NIL, NodeId};
use crate::shard::wheel::STRIPES;
use crate::shard::wheel::geometry::Slot;
use crate::tick::Tick;

/// How many nodes are drawn for each tick that the clock has moved by, and at most in an advance. With a hundred million
/// timers over half an hour, 56 become due in a tick.
const NODES_PER_TICK: Tick = if crate::config::SMALL { 1 } else { 64 };
const MOST_NODES: Tick = if crate::config::SMALL { 3 } else { 512 };

/// Where nothing was left to draw, the next look comes so many ticks later.
const REST: Tick = if cfg!(shardwheel_loom) || crate::config::SMALL { 1 } else { 8 };

/// When the advancer drew last, and draws next.
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
    /// Draws ahead, if it is time to; the clock has moved.
    #[inline]
    pub(super) fn cascade_early(&mut self) {
        if self.now >= self.early_cascade.next {
            self.cascade_each_level_early();
        }
    }

    /// Empties the next bucket of each overflow wheel, finer wheels first, or as much of it as is due for the ticks that
    /// have passed.
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

    /// The first bucket of that level after the clock.
    #[inline]
    fn next_early_bucket(&self, level: usize) -> Option<Slot> {
        if self.private.level(level).is_none() && self.wheel(level).is_none() {
            return None;
        }
        let geometry = self.shared.geometry;
        let slot = geometry.first_from(level, self.flushed.checked_add(1)?)?;
        // Else it is about to be flushed.
        (geometry.expiration(slot) > self.now).then_some(slot)
    }

    /// The lists of the advancer's half of a bucket, or else of the producers' half, if there is anything in it.
    fn take_early_lists(&mut self, slot: Slot) -> Option<[NodeId; STRIPES]> {
        let (geometry, level) = (self.shared.geometry, slot.level);
        let private = geometry.private_index(slot);
        if self.sweep.has_private(level, private) {
            // It looks to the bit, which would have to stay.
            return None;
        }
        self.private.take(level, private).or_else(|| {
            let index = geometry.index(slot);
            let wheel = self.wheel(level).filter(|wheel| wheel.is_occupied(index))?;
            let lists = wheel.detach_all(index);
            (lists != [NIL; STRIPES]).then_some(lists)
        })
    }

    /// Places up to `budget` of the nodes, and leaves the rest in the bucket; how many it has placed.
    fn place_early(&mut self, slot: Slot, lists: [NodeId; STRIPES], budget: Tick) -> Tick {
        self.idle.note_use(slot.level, self.flushed);
        let mut chains = Chains::of(lists, &self.shared);
        let mut placed = 0;
        while placed < budget
            && let Some(InHand { id, .. }) = chains.pop(&self.shared)
        {
            self.shared.tally.cascaded.add(1);
            self.relink(id);
            placed += 1;
        }
        // A pass that has seen the advancer's half already does not meet them.
        self.sweep.note_transfer();
        if !self.private.put_lists_back(self.shared.geometry, slot, chains.lists()) {
            // No memory: one by one, to wherever there is a place.
            while let Some(InHand { id, .. }) = chains.pop(&self.shared) {
                self.relink(id);
            }
        }
        placed
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
