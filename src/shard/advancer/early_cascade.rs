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
//! an advance places, for each tick of the lead by which the clock has moved, 64 nodes and 1.25
//! times what is pending, divided by the lead. A bucket with all that is pending is then empty
//! after four fifths of its lead. The last fifth serves clocks that do not move at each tick, and
//! timers that are scheduled meanwhile. A bucket that is not emptied in time, because the clock
//! jumps or nothing makes the advancer move it, is cascaded when it expires. So is each bucket
//! while no more than `FEW_PENDING` timers are pending.
//!
//! # Lists
//!
//! At the end of a step, what is left of a list goes back to the bucket's private lists: `moving`
//! is empty between advances. Shared lists are detached as the sweep does it: the bit and the
//! round stay. So a producer goes on pushing to the same list, the next step takes what it has
//! pushed, and the flush, which comes in any case, takes the rest.

use crate::shard::advancer::Advancer;
use crate::shard::node::{NIL, NodeId};
use crate::shard::shared::FEW_PENDING;
use crate::shard::shared::chains::Chains;
use crate::shard::wheel::STRIPES;
use crate::shard::wheel::geometry::Slot;
use crate::size::size;
use crate::sync::hint;
use crate::tick::{Tick, earlier};

/// Nodes of a bucket that the early cascade places for each tick, at least.
pub(crate) const EARLY_NODES: u64 = size(64, 1, 64);

/// After a step that has left nothing to move early, the early cascade rests for the shortest
/// lead divided by this. Models and fuzzers do not rest.
pub(crate) const EARLY_RESTS: Tick = size(8, Tick::MAX, Tick::MAX);

impl<T> Advancer<T> {
    /// Does a step of the early cascade, if one is due; the clock has moved.
    #[inline]
    pub(super) fn cascade_early(&mut self) {
        if self.now >= self.upkeep.next_cascade {
            if !self.is_bucket_due() && !self.hands.hold_due() {
                // The bucket whose lead begins now is the next one only from here on.
                self.set_flushed(self.now);
            }
            self.cascade_each_level_early();
        }
    }

    /// Places a share of the next bucket of each overflow wheel, finer wheels first: for each tick
    /// by which the clock has moved, 64 and 1.25 times what is pending, divided by the ticks of
    /// the bucket.
    #[inline(never)]
    fn cascade_each_level_early(&mut self) {
        let last = std::mem::replace(&mut self.upkeep.last_cascade, self.now);
        let geometry = self.shared.geometry;
        // Models have few timers, which count as many.
        let pending = hint(|| self.shared.len()).unwrap_or(FEW_PENDING + 1) as u64;
        let are_many = pending > FEW_PENDING as u64;
        let levels = if are_many { self.shared.height().max(self.private.height()) } else { 0 };
        // A bucket that is about to be flushed hides the one after it.
        let mut is_done =
            self.flushed >= self.now || !geometry.has_overflow_start(self.flushed + 1, self.now);
        for level in 1..levels {
            let Some(slot) = self.next_early_bucket(level).filter(|&slot| self.may_place_early(slot)) else {
                continue;
            };
            let span = geometry.span(level);
            // Since the last step, or since the bucket before this one expired.
            let moved = self.now - last.max(geometry.expiration(slot).saturating_sub(span)).min(self.now - 1);
            let mut share = moved.saturating_mul(EARLY_NODES + (pending + pending / 4) / span);
            while share > 0
                && let Some(lists) = self.take_early_lists(slot)
            {
                share -= self.place_early(slot, lists, share);
            }
            is_done &= share > 0;
        }
        // If a bucket fills during a rest, the next step catches up: its share covers every tick
        // since the lead began.
        let rest = if is_done { (geometry.span(1) / EARLY_RESTS).max(1) } else { 1 };
        // A lead begins where an overflow bucket starts.
        let next_lead = (self.now | (geometry.span(1) - 1)).saturating_add(1);
        self.upkeep.next_cascade = self.now.saturating_add(rest).min(next_lead);
    }

    /// The tick at which the early cascade next has something to do, or a later one if it has
    /// nothing to do up to `to`: `Tick::MAX` if no overflow bucket holds anything.
    pub(in crate::shard) fn next_lead(&self, to: Tick) -> Tick {
        let height = self.shared.height().max(self.private.height());
        let leads = (1..height).filter_map(|level| self.next_lead_at(level, to));
        leads.min().map_or(Tick::MAX, |lead| lead.max(self.upkeep.next_cascade).max(self.flushed + 1))
    }

    /// As [`next_lead`](Self::next_lead), of one level.
    #[inline]
    fn next_lead_at(&self, level: usize, to: Tick) -> Option<Tick> {
        let next = self.next_early_bucket(level)?;
        if self.may_place_early(next) {
            return Some(self.flushed);
        }
        let geometry = self.shared.geometry;
        // The lead of the bucket after that one begins here.
        let next_lead = geometry.expiration(next);
        if to <= next_lead {
            return None;
        }
        let after = next_lead.checked_add(1)?;
        let private = self.private.next_expiration_at(level, geometry, after);
        let shared = self.shared.next_expiration_at(level, after, Tick::MAX);
        earlier(private, shared).map(|expiration| expiration.saturating_sub(geometry.span(level)))
    }

    /// The next bucket of that level, unless the clock has already reached its expiration.
    #[inline]
    fn next_early_bucket(&self, level: usize) -> Option<Slot> {
        if self.private.level(level).is_none() && self.shared.wheel(level).is_none() {
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
    fn may_place_early(&self, slot: Slot) -> bool {
        self.private.may_hold(self.shared.geometry, slot) || self.shared.holds_nodes(slot)
    }

    /// Takes the private lists of a bucket, or else its shared lists, if they hold anything.
    fn take_early_lists(&mut self, slot: Slot) -> Option<[NodeId; STRIPES]> {
        let (geometry, level) = (self.shared.geometry, slot.level);
        let private = geometry.private_index(slot);
        if self.sweep.has(slot) {
            // The sweep relies on the bucket's bit, which `take` would clear.
            return None;
        }
        let mut lists = [NIL; STRIPES];
        let mut are_any = false;
        let note = |stripe: usize, first| (lists[stripe], are_any) = (first, true);
        self.private.take(level, private, note);
        if !are_any && self.shared.holds_nodes(slot) {
            lists = self.shared.wheel(level)?.detach_all(geometry.index(slot));
            are_any = lists != [NIL; STRIPES];
        }
        are_any.then_some(lists)
    }

    /// Places up to `budget` of the nodes, and leaves the rest in the bucket's private lists.
    /// Returns how many nodes it has placed.
    fn place_early(&mut self, slot: Slot, lists: [NodeId; STRIPES], budget: Tick) -> Tick {
        self.hands.moving = Chains::of(lists, &self.shared);
        let placed = self.place_moving(self.flushed, budget);
        let left = std::mem::take(&mut self.hands.moving).lists();
        self.private.put_lists_back(self.shared.geometry, slot, left);
        placed
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
