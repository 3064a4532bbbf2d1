//! Slot arithmetic: the wheel and the bucket that a deadline belongs to. No atomics, no unsafe
//! code.
//!
//! # Algorithm
//!
//! A tick is a number of digits of `bits` bits each; the wheel size is `1 << bits`. A bucket of
//! level `k` spans `1 << (k * bits)` ticks. Its *number* is its first tick divided by that span.
//! Its *index* in the wheel is the number modulo the wheel size, and its *round* is the number
//! divided by the wheel size.
//!
//! The hierarchy is that of the hashed hierarchical timing wheels of Varghese and Lauck (1987), in
//! the form of Kafka's `TimingWheel`. One thing differs: a level accepts every deadline whose
//! bucket lies within one revolution, not only deadlines within the time of one revolution. So a
//! timer is placed at the lowest level possible.
//!
//! # Invariant
//!
//! Seen from tick `from`, a deadline `d >= from` belongs to the lowest level at which
//! `number(d) - number(from) < wheel size`. Every deadline has such a level: at the top level all
//! numbers differ by less than the wheel size.

use std::ops::RangeInclusive;

use crate::size::size;
use crate::tick::Tick;

/// Levels of a hierarchy, at most: as many as wheels of two buckets have.
pub(crate) const LEVELS: usize = size(64, 64, 3);

/// The length of a window, in ticks; a power of two. The longer it is, the fewer fences an advancer
/// passes, and the more timers that are due soon go through the inbox. The bits of a window are in
/// one word (see [`Wheel::distance_within_word`](super::Wheel::distance_within_word)).
pub(super) const WINDOW: Tick = 4;

/// A bucket in absolute terms: the span of ticks that it stands for, not a place in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The level; 0 is the finest.
    pub(crate) level: usize,
    /// The bucket's first tick divided by the span of a bucket of its level.
    pub(crate) number: u64,
}

/// The shape of a shard's hierarchy: 8 bytes, so it is passed in a register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    bits: u8,
    levels: u8,
    /// `2^16 / bits`, rounded up: a multiplication and a shift divide a number below 64 by `bits`.
    reciprocal: u32,
}

impl Geometry {
    /// Makes the geometry for wheels of `wheel_size` buckets, a power of two of at least 2.
    pub(crate) fn new(wheel_size: usize) -> Self {
        debug_assert!(wheel_size.is_power_of_two() && wheel_size >= 2);
        let bits = wheel_size.trailing_zeros();
        let levels = Tick::BITS.div_ceil(bits).min(LEVELS as u32);
        Self { bits: bits as u8, levels: levels as u8, reciprocal: (1_u32 << 16).div_ceil(bits) }
    }

    pub(crate) fn wheel_size(self) -> usize {
        1 << self.bits
    }

    /// The number of buckets in a private wheel.
    pub(crate) fn private_wheel_size(self) -> usize {
        2 << self.bits
    }

    /// The last tick of the window that contains `tick`: the advancer closes the buckets of a whole
    /// window to producers at once (see [`machine`](crate::shard::machine)).
    #[inline]
    pub(crate) fn end_of_window(self, tick: Tick) -> Tick {
        tick | (WINDOW.min(self.span(1) / 2) - 1)
    }

    /// The number of levels needed to reach every tick. Models have at most 3, because they use
    /// near ticks only.
    pub(crate) fn levels(self) -> usize {
        self.levels as usize
    }

    #[inline]
    fn shift(self, level: usize) -> u32 {
        level as u32 * u32::from(self.bits)
    }

    /// The slot of `level` that contains `tick`.
    #[inline]
    pub(crate) fn slot(self, level: usize, tick: Tick) -> Slot {
        Slot { level, number: tick >> self.shift(level) }
    }

    /// The slot for a timer due at `deadline`, seen from `from`, which is no later.
    #[inline]
    pub(crate) fn place(self, from: Tick, deadline: Tick) -> Slot {
        debug_assert!(from <= deadline);
        // At level `digits` the two numbers differ by at most the wheel size; at the level below
        // they differ by at least that. If they differ by exactly the wheel size, the next level
        // takes the timer.
        let digits = ((deadline - from).checked_ilog2().unwrap_or(0) * self.reciprocal) >> 16;
        let slot = self.slot(digits as usize, deadline);
        let ahead = slot.number - (from >> self.shift(slot.level));
        if ahead < self.wheel_size() as u64 { slot } else { self.slot(slot.level + 1, deadline) }
    }

    /// The slot for a timer due at `deadline` in the private wheels, which have twice as many
    /// buckets as the shared wheels: the lowest level possible. (With shared wheels of two buckets,
    /// the result may be one level too high where the finest private wheel does not reach.)
    #[inline]
    pub(crate) fn place_private(self, from: Tick, deadline: Tick) -> Slot {
        if deadline - from < self.private_wheel_size() as u64 {
            // The common case, found in less than half the time of the general case.
            return self.slot(0, deadline);
        }
        let slot = self.place(from, deadline);
        let Some(level) = slot.level.checked_sub(1) else { return slot };
        let below = self.slot(level, deadline);
        let ahead = below.number - (from >> self.shift(level));
        if ahead < self.private_wheel_size() as u64 { below } else { slot }
    }

    /// The slot's expiration: its first tick.
    #[inline]
    pub(crate) fn expiration(self, slot: Slot) -> Tick {
        slot.number << self.shift(slot.level)
    }

    /// The index of the slot's bucket in its shared wheel.
    #[inline]
    pub(crate) fn index(self, slot: Slot) -> usize {
        slot.number as usize & (self.wheel_size() - 1)
    }

    /// The index of the slot's bucket in its private wheel.
    #[inline]
    pub(crate) fn private_index(self, slot: Slot) -> usize {
        slot.number as usize & (self.private_wheel_size() - 1)
    }

    /// The round of the slot's bucket, modulo 2^32.
    #[inline]
    pub(crate) fn round(self, slot: Slot) -> u32 {
        (slot.number >> self.bits) as u32
    }

    /// Returns whether an overflow bucket expires at `tick`.
    #[inline]
    pub(crate) fn starts_overflow_bucket(self, tick: Tick) -> bool {
        tick & (self.span(1) - 1) == 0
    }

    /// Returns whether an overflow bucket expires within `from..=to`.
    #[inline]
    pub(crate) fn has_overflow_start(self, from: Tick, to: Tick) -> bool {
        let shift = self.shift(1);
        self.starts_overflow_bucket(from) || from >> shift != to >> shift
    }

    /// The number of ticks that a bucket of `level` spans.
    #[inline]
    pub(crate) fn span(self, level: usize) -> Tick {
        1 << self.shift(level)
    }

    /// The first slot of `level` that starts at or after `tick`, if there is one.
    #[inline]
    pub(crate) fn first_from(self, level: usize, tick: Tick) -> Option<Slot> {
        let slot = self.slot(level, tick);
        if self.expiration(slot) == tick {
            return Some(slot);
        }
        self.nth_after(slot, 1)
    }

    /// The slot `n` buckets after `slot`; `None` if it would start after the last tick.
    pub(crate) fn nth_after(self, slot: Slot, n: usize) -> Option<Slot> {
        let number = slot.number.checked_add(n as u64)?;
        let in_time = number <= Tick::MAX >> self.shift(slot.level);
        in_time.then_some(Slot { level: slot.level, number })
    }

    /// The slot that bucket `index` of a wheel of `size` buckets stands for: the first one that
    /// starts after `flushed`. The last slot of the level if none does.
    #[cfg(any(test, debug_assertions, fuzzing, shardwheel_loom))]
    pub(crate) fn slot_ahead(self, level: usize, index: usize, size: usize, flushed: Tick) -> Slot {
        let next = flushed.checked_add(1).and_then(|from| self.first_from(level, from));
        let ahead = |next: Slot| index.wrapping_sub(next.number as usize) & (size - 1);
        let slot = next.and_then(|next| self.nth_after(next, ahead(next)));
        slot.unwrap_or(self.slot(level, Tick::MAX))
    }

    /// The number of buckets of `level` that start within `from..=to`, but at most the wheel size.
    #[inline]
    pub(crate) fn starts_within(self, level: usize, from: Tick, to: Tick) -> usize {
        let shift = self.shift(level);
        let first = self.first_from(level, from).map_or(u64::MAX, |slot| slot.number);
        let count = (to >> shift).checked_sub(first).map_or(0, |more| more.saturating_add(1));
        usize::try_from(count).map_or(self.wheel_size(), |count| count.min(self.wheel_size()))
    }

    /// The expiration of the first occupied bucket of `level` that starts at or after `from`.
    /// `next` gets the first slot to consider, and returns the distance in buckets from there to
    /// the occupied bucket.
    #[inline(always)]
    pub(crate) fn expiration_of(
        self,
        level: usize,
        from: Tick,
        next: impl FnOnce(Slot) -> Option<usize>,
    ) -> Option<Tick> {
        let first = self.first_from(level, from)?;
        let ahead = next(first)?;
        Some(self.expiration(self.nth_after(first, ahead)?))
    }

    /// The first tick in `window` that needs the fewest cascades, seen from `from`.
    ///
    /// A bucket fires the timers due at its first tick without a cascade. So the candidates are the
    /// window's start and, for each level, the first bucket that starts within the window. O(levels
    /// squared).
    pub(crate) fn choose(self, from: Tick, window: RangeInclusive<Tick>) -> Tick {
        let (start, end) = ((*window.start()).max(from), *window.end());
        let starts = (1..self.levels()).filter_map(|level| self.first_from(level, start));
        let candidates = starts.map(|slot| self.expiration(slot)).take_while(|&tick| tick <= end);
        let best = candidates.min_by_key(|&tick| (self.cascades(from, tick), tick));
        let first = start.min(end);
        best.filter(|&tick| self.cascades(from, tick) < self.cascades(from, first)).unwrap_or(first)
    }

    /// How often a timer due at `deadline`, placed as seen from `from`, is moved before it fires,
    /// if each cascade uses [`place`](Self::place). An upper bound: a private wheel reaches twice
    /// as far, which may save a move.
    pub(crate) fn cascades(self, from: Tick, deadline: Tick) -> u32 {
        let mut from = from.min(deadline);
        let mut moves = 0;
        loop {
            let expiration = self.expiration(self.place(from, deadline));
            if expiration == deadline {
                return moves;
            }
            from = expiration;
            moves += 1;
        }
    }
}

#[cfg(test)]
mod tests;
