//! The early cascade: overflow buckets are emptied little by little before they expire.
//!
//! A bucket that is cascaded at its expiration is cascaded at once: with a million timers that were
//! placed within a second, most of them in one advance, while the timers that are due wait. So an
//! advance takes a share of the next bucket of each overflow wheel and places it. That bucket's
//! deadlines lie within two revolutions of the next finer wheel, and the private wheels are that
//! large (see [`private`](crate::shard::wheel::private)). Its *lead* is the time from the
//! expiration of the bucket before it to its own.
//!
//! # The share of a tick
//!
//! A bucket's nodes are not counted, but no bucket holds more than what is pending in the shard. So
//! an advance places, for each tick by which the clock has moved,
//!
//! - in the first quarter of the lead: 1 / 16 of what is pending, divided by the lead. Most buckets
//!   are empty after a few such steps;
//! - after that: what is pending and has not been placed in this lead, divided by the ticks that
//!   are left, without the last eighth of the lead. A bucket with all that is pending is then
//!   placed in equal shares: 1.6 times what is pending, divided by the lead.
//!
//! The last eighth serves clocks that do not move at each tick, and timers that are scheduled
//! meanwhile. A bucket that is not emptied in time, because the clock jumps or nothing makes the
//! advancer move it, is cascaded when it expires.
//!
//! # Lists
//!
//! At the end of a step, what is left of a list goes back to the bucket's private lists: between
//! advances nothing is in hand. Shared lists are detached as the sweep does it: the bit and the
//! round stay. So a producer goes on pushing to the same list, the next step takes what it has
//! pushed, and the flush, which comes in any case, takes the rest.

use crate::shard::advancer::Advancer;
use crate::shard::advancer::chains::Chains;
use crate::shard::node::{NIL, NodeId, Observed};
use crate::shard::wheel::STRIPES;
use crate::shard::wheel::geometry::Slot;
use crate::tick::Tick;

/// A step places at least this many nodes of a bucket for each tick that the clock has moved by. In
/// the first quarter of the lead it counts at most [`MOST_TICKS`] ticks.
const LEAST_NODES: u64 = if crate::config::SMALL { 1 } else { 64 };
const MOST_TICKS: Tick = if crate::config::SMALL { 3 } else { 8 };

/// The share in the first quarter of the lead is 1 / `SLOW`.
const SLOW: u64 = 16;

/// The rest after a step that has left nothing to move early: 1 / `REST` of the shortest lead. It is
/// shorter than the first quarter of a lead, so a bucket that is full when its lead begins loses no
/// step of the other quarters. Models and fuzzers do not rest.
const REST: Tick = 8;

/// When the last step of the early cascade was, and when the next one is due.
pub(super) struct EarlyCascade {
    last: Tick,
    next: Tick,
    leads: Box<[Lead]>,
}

/// What has been placed early of a level's next bucket.
#[derive(Clone, Copy, Default)]
struct Lead {
    expiration: Tick,
    placed: u64,
}

impl EarlyCascade {
    pub(super) fn new(levels: usize, start: Tick) -> Self {
        Self { last: start, next: start, leads: vec![Lead::default(); levels].into() }
    }

    /// No step is due before this tick.
    pub(super) fn next(&self) -> Tick {
        self.next
    }

    /// The lead of that level's bucket that expires at `expiration`.
    fn lead(&mut self, level: usize, expiration: Tick) -> &mut Lead {
        let lead = &mut self.leads[level];
        if lead.expiration != expiration {
            *lead = Lead { expiration, placed: 0 };
        }
        lead
    }
}

impl Lead {
    /// How many nodes a step places, with `left` of the lead's `span` ticks to go. The clock has
    /// moved by `moved` ticks since the last step.
    fn share(&self, span: Tick, left: Tick, moved: Tick, pending: u64) -> u64 {
        let fast = span - span / 4;
        if left > fast {
            return moved.min(MOST_TICKS) * (LEAST_NODES + pending / SLOW / span);
        }
        // If steps were left out, all the ticks that are left make up for it, not this one alone.
        let moved = if left.saturating_add(moved) > fast { 1 } else { moved };
        let ticks = left.saturating_sub(span / 8).max(1);
        moved.saturating_mul(LEAST_NODES + pending.saturating_sub(self.placed).div_ceil(ticks))
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

    /// Places a share of the next bucket of each overflow wheel, finer wheels first.
    #[inline(never)]
    fn cascade_each_level_early(&mut self) {
        let moved = self.now - std::mem::replace(&mut self.early_cascade.last, self.now);
        let geometry = self.shared.geometry;
        let mut is_done = true;
        for level in 1..self.shared.height().max(self.private.height()) {
            let Some(slot) = self.next_early_bucket(level).filter(|&slot| self.may_place_early(slot)) else {
                continue;
            };
            let (expiration, pending) = (geometry.expiration(slot), self.pending() as u64);
            let lead = self.early_cascade.lead(level, expiration);
            let mut share = lead.share(geometry.span(level), expiration - self.now, moved, pending);
            while share > 0
                && let Some(lists) = self.take_early_lists(slot)
            {
                let placed = self.place_early(slot, lists, share);
                self.early_cascade.leads[level].placed += placed;
                share -= placed;
            }
            is_done &= share > 0;
        }
        let is_small = cfg!(shardwheel_loom) || crate::config::SMALL;
        let rest = if is_done && !is_small { (geometry.span(1) / REST).max(1) } else { 1 };
        self.early_cascade.next = self.now.saturating_add(rest);
    }

    /// The next bucket of that level, unless the clock has already reached its expiration.
    #[inline]
    pub(super) fn next_early_bucket(&self, level: usize) -> Option<Slot> {
        if self.private.level(level).is_none() && self.wheel(level).is_none() {
            return None;
        }
        let geometry = self.shared.geometry;
        let slot = geometry.first_from(level, self.flushed.checked_add(1)?)?;
        // Otherwise it is about to be flushed.
        (geometry.expiration(slot) > self.now).then_some(slot)
    }

    /// Whether the next bucket of a level holds anything now. The bits of a shared bucket stay set
    /// when the early cascade has emptied it, so the lists count. What a producer is about to push
    /// there waits for the next look.
    #[inline]
    pub(super) fn may_place_early(&self, slot: Slot) -> bool {
        self.private.may_hold(self.shared.geometry, slot) || self.shared.holds_nodes(slot)
    }

    /// Takes the private lists of a bucket, or else its shared lists, if they hold anything.
    fn take_early_lists(&mut self, slot: Slot) -> Option<[NodeId; STRIPES]> {
        let (geometry, level) = (self.shared.geometry, slot.level);
        let private = geometry.private_index(slot);
        if self.sweep.has_private(level, private) {
            // The sweep relies on the bucket's bit, which `take` would clear.
            return None;
        }
        let mut lists = [NIL; STRIPES];
        let mut are_any = false;
        let note = |stripe: usize, first| (lists[stripe], are_any) = (first, true);
        self.private.take(level, private, note);
        if !are_any && self.shared.holds_nodes(slot) {
            lists = self.wheel(level)?.detach_all(geometry.index(slot));
            are_any = lists != [NIL; STRIPES];
        }
        are_any.then_some(lists)
    }

    /// Places up to `budget` of the nodes, and leaves the rest in the bucket's private lists.
    /// Returns how many nodes it has placed.
    fn place_early(&mut self, slot: Slot, lists: [NodeId; STRIPES], budget: Tick) -> Tick {
        self.idle.note_use(slot.level, self.flushed);
        let mut chains = Chains::of(lists, &self.shared);
        let mut placed = 0;
        while placed < budget {
            let (moved, other) = self.place_pending(&mut chains, budget - placed);
            placed += moved;
            let Some(id) = other else { break };
            self.relink(id);
            placed += 1;
        }
        self.shared.tally.cascaded.add(placed);
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

    /// Places up to `budget` nodes whose timers are pending. It stops at another node, and returns
    /// that node; the number of nodes placed comes first.
    fn place_pending(&mut self, chains: &mut Chains, budget: Tick) -> (Tick, Option<NodeId>) {
        let Self { shared, private, flushed, .. } = self;
        let (geometry, from) = (shared.geometry, *flushed + 1);
        let (mut placed, mut turn) = (0, 0);
        while placed < budget
            && let Some((hand, next)) = chains.pop_from(turn, shared)
        {
            turn = next;
            let id = hand.id();
            match hand.observe() {
                Observed::Pending(deadline, word) if deadline >= from && hand.displace(word) => {
                    if !private.splice(geometry, geometry.place_private(from, deadline), id, hand.next()) {
                        shared.push_to_inbox(id, id);
                    }
                    placed += 1;
                }
                _ => return (placed, Some(id)),
            }
        }
        (placed, None)
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
