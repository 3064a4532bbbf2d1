//! The private wheels: the advancer places here the nodes that it moves, and no other thread adds
//! to them.
//!
//! Each bucket of the hierarchy has two halves. Producers push to the lists of the shared wheels. A
//! node that the advancer moves (in a cascade, an early cascade or a sweep, or out of the inbox)
//! goes to a private wheel, in plain memory: no compare-and-swap, no round, no fence. A flush takes
//! both halves of a bucket that expires. So only producers push to the shared lists, and only the
//! advancer takes from them. A timer that came down from an overflow wheel costs no further atomic
//! read-modify-write before the fire. A timer with an extension costs one: it is marked as
//! displaced.
//!
//! A private wheel has twice as many buckets as a shared wheel. So all that the next overflow
//! bucket holds can be placed here before that bucket expires (see
//! [`early_cascade`](crate::shard::advancer::early_cascade)).
//!
//! # Invariants
//!
//! - A node that is linked here lies within one revolution of its private wheel after `flushed`. So
//!   a bucket holds the timers of one slot at a time.
//! - A bucket's bit is set exactly if the bucket holds a node, or if the sweep has detached its
//!   lists.

mod buckets;

use crate::shard::node::{NIL, NodeId};
use crate::shard::wheel::STRIPES;
use crate::shard::wheel::bitset::Bitmap;
use crate::shard::wheel::geometry::{Geometry, Slot};
use crate::sync::{AtomicU32, Ordering};
use crate::tick::Tick;

use buckets::Buckets;

/// A private wheel for each level. A wheel is made when it is first needed, and stays.
pub(crate) struct PrivateWheels {
    levels: Box<[Option<PrivateWheel>]>,
    /// No bucket that holds a node expires before this tick.
    none_before: Tick,
    /// No level from this one on has ever had a wheel.
    height: usize,
}

pub(crate) struct PrivateWheel {
    /// [`STRIPES`] lists per bucket, as in the shared wheels and for the same reason: chains to
    /// walk in turn. An empty list is `NIL`.
    buckets: Buckets,
    /// A bit for each list of a bucket that is not empty.
    set: Box<[u16]>,
    /// The buckets that hold a node.
    occupied: Bitmap,
}

impl PrivateWheels {
    pub(crate) fn new(levels: usize) -> Self {
        Self { levels: (0..levels).map(|_| None).collect(), none_before: Tick::MAX, height: 0 }
    }

    /// No level from this one on has ever had a wheel.
    pub(crate) fn height(&self) -> usize {
        self.height
    }

    pub(crate) fn level(&self, level: usize) -> Option<&PrivateWheel> {
        self.levels[level].as_ref()
    }

    /// Links a node, whose link is `next`, in front of its list.
    #[inline]
    pub(crate) fn link(&mut self, geometry: Geometry, slot: Slot, id: NodeId, next: &AtomicU32) {
        self.wheel_or_new(geometry, slot).link(geometry.private_index(slot), id, next);
    }

    /// The wheel of a slot that is about to hold a node.
    #[inline]
    fn wheel_or_new(&mut self, geometry: Geometry, slot: Slot) -> &mut PrivateWheel {
        self.none_before = self.none_before.min(geometry.expiration(slot));
        self.height = self.height.max(slot.level + 1);
        self.levels[slot.level].get_or_insert_with(|| PrivateWheel::new(geometry.private_wheel_size()))
    }

    /// Takes a bucket's lists and clears its bit. `take` gets the stripe and the first node of each
    /// list that is not empty.
    #[inline]
    pub(crate) fn take(&mut self, level: usize, index: usize, take: impl FnMut(usize, NodeId)) {
        if let Some(wheel) = &mut self.levels[level] {
            wheel.take(index, take);
        }
    }

    /// Puts lists into a bucket that is empty, for example because [`take`](Self::take) has emptied
    /// it.
    pub(crate) fn put_lists_back(&mut self, geometry: Geometry, slot: Slot, lists: [NodeId; STRIPES]) {
        if lists == [NIL; STRIPES] {
            return;
        }
        let index = geometry.private_index(slot);
        let wheel = self.wheel_or_new(geometry, slot);
        debug_assert_eq!((wheel.buckets.get(index), wheel.set[index]), ([NIL; STRIPES], 0));
        *wheel.buckets.get_mut(index) = lists;
        wheel.set[index] = lists.iter().rev().fold(0, |set, &first| set << 1 | u16::from(first != NIL));
        wheel.occupied.insert(index);
    }

    /// Takes a bucket's lists and leaves its bit, because the sweep links the nodes again.
    pub(crate) fn detach(&mut self, level: usize, index: usize) -> [NodeId; STRIPES] {
        let Some(wheel) = &mut self.levels[level] else { return [NIL; STRIPES] };
        wheel.set[index] = 0;
        match wheel.occupied.contains(index) {
            true => std::mem::replace(wheel.buckets.get_mut(index), [NIL; STRIPES]),
            false => [NIL; STRIPES],
        }
    }

    /// Clears the bit of a bucket that holds nothing, after [`detach`](Self::detach).
    pub(crate) fn clear_if_empty(&mut self, level: usize, index: usize) {
        if let Some(wheel) = &mut self.levels[level]
            && wheel.set[index] == 0
        {
            wheel.occupied.remove(index);
        }
    }

    /// Whether the bucket of a slot may hold a node.
    #[inline]
    pub(crate) fn may_hold(&self, geometry: Geometry, slot: Slot) -> bool {
        let wheel = self.levels[slot.level].as_ref();
        wheel.is_some_and(|wheel| wheel.occupied.contains(geometry.private_index(slot)))
    }

    /// Whether a bucket that expires at or before `tick` may hold a node.
    #[inline]
    pub(crate) fn may_hold_by(&self, tick: Tick) -> bool {
        self.none_before <= tick
    }

    /// The earliest tick within `from..=to` at which a bucket that holds a node expires. O(1) if
    /// none does; otherwise as [`next_expiration`](Self::next_expiration).
    #[inline]
    pub(crate) fn next_expiration_within(
        &mut self,
        geometry: Geometry,
        from: Tick,
        to: Tick,
    ) -> Option<Tick> {
        let known = self.none_before;
        if known > to {
            return None;
        }
        if known >= from && self.may_hold(geometry, geometry.slot(0, known)) {
            return Some(known);
        }
        self.find_next(geometry, Some(from)).filter(|&tick| tick <= to)
    }

    /// As [`next_expiration`](Self::next_expiration), and keeps the answer: after the last bucket that
    /// is due, an advance then sees at once that no other one is.
    #[inline]
    pub(crate) fn find_next(&mut self, geometry: Geometry, from: Option<Tick>) -> Option<Tick> {
        let next = from.and_then(|from| self.next_expiration(geometry, from));
        self.none_before = next.unwrap_or(Tick::MAX);
        next
    }

    /// The earliest tick, from `from` on, at which a bucket that holds a node expires. O(wheels x
    /// wheel size / 4096).
    #[inline]
    pub(crate) fn next_expiration(&self, geometry: Geometry, from: Tick) -> Option<Tick> {
        let finest = self.next_expiration_at(0, geometry, from);
        // No overflow bucket expires before the next tick that starts an overflow bucket.
        let is_first =
            |&tick: &Tick| (tick ^ from) < geometry.span(1) && !geometry.starts_overflow_bucket(from);
        match finest.filter(is_first) {
            Some(tick) => Some(tick),
            None => {
                let overflow =
                    (1..self.height).filter_map(|level| self.next_expiration_at(level, geometry, from));
                overflow.chain(finest).min()
            }
        }
    }

    /// No bucket that holds a node expires before this tick; `None` if there is no such bucket.
    #[inline]
    pub(crate) fn none_before(&self) -> Option<Tick> {
        let holds_any = || self.levels.iter().flatten().any(|wheel| !wheel.is_empty());
        Some(self.none_before).filter(|&tick| tick < Tick::MAX || holds_any())
    }

    /// As [`next_expiration`](Self::next_expiration), of one level.
    #[inline(always)]
    pub(crate) fn next_expiration_at(&self, level: usize, geometry: Geometry, from: Tick) -> Option<Tick> {
        let wheel = self.level(level)?;
        geometry.expiration_of(level, from, |slot| wheel.distance_to_occupied(geometry.private_index(slot)))
    }
}

impl PrivateWheel {
    #[cold]
    fn new(size: usize) -> Self {
        let occupied = Bitmap::new(size.div_ceil(u64::BITS as usize));
        Self { buckets: Buckets::new(size), set: vec![0; size].into(), occupied }
    }

    pub(crate) fn size(&self) -> usize {
        self.set.len()
    }

    // Not a call: random timers would take 5 % more instructions to fire.
    #[inline(always)]
    fn link(&mut self, index: usize, id: NodeId, next: &AtomicU32) {
        let stripe = id as usize % STRIPES;
        let lists = self.buckets.get_mut(index);
        // Ordering: Relaxed, no other thread accesses the link.
        let former = std::mem::replace(&mut lists[stripe], id);
        next.store(former, Ordering::Relaxed);
        if former == NIL {
            self.set[index] |= 1 << stripe;
            self.occupied.insert(index);
        }
    }

    #[inline]
    fn take(&mut self, index: usize, mut take: impl FnMut(usize, NodeId)) {
        if !self.occupied.contains(index) {
            return;
        }
        self.occupied.remove(index);
        let mut set = std::mem::take(&mut self.set[index]);
        let lists = self.buckets.get_mut(index);
        while set != 0 {
            let stripe = set.trailing_zeros() as usize;
            take(stripe, std::mem::replace(&mut lists[stripe % STRIPES], NIL));
            set &= set - 1;
        }
    }

    /// Finds the first bucket that holds a node, from the bucket `from` on and with wrap-around.
    /// Returns its distance from `from`.
    #[inline]
    pub(crate) fn distance_to_occupied(&self, from: usize) -> Option<usize> {
        let found = self.occupied.first_from(from).or_else(|| self.occupied.first_from(0))?;
        Some(found.wrapping_sub(from) & (self.size() - 1))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.occupied.is_empty()
    }

    /// The lists of a bucket, and whether its bit is set. For invariant checks.
    ///
    /// # Panics
    ///
    /// If the bits of the lists are wrong.
    #[cfg(any(test, debug_assertions, fuzzing, shardwheel_loom))]
    pub(crate) fn lists(&self, index: usize) -> ([NodeId; STRIPES], bool) {
        let lists = self.buckets.get(index);
        let is_set = |stripe: usize| self.set[index] >> stripe & 1 == 1;
        assert!((0..STRIPES).all(|stripe| is_set(stripe) == (lists[stripe] != NIL)));
        (lists, self.occupied.contains(index))
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests;
