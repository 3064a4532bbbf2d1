//! The slot arithmetic over all ticks and wheel sizes, against a slow twin that computes in 128
//! bits.

#![no_main]

use std::ops::RangeInclusive;

use libfuzzer_sys::fuzz_target;
use shardwheel::{MAX_WHEEL_SIZE, MIN_WHEEL_SIZE};

#[allow(dead_code, reason = "the other targets use the rest")]
#[path = "../../tests/model/bytes.rs"]
mod bytes;
#[allow(dead_code, reason = "the crate uses the rest")]
#[path = "../../src/shard/wheel/geometry.rs"]
mod geometry;
#[path = "../../src/size.rs"]
mod size;
#[path = "../../src/tick.rs"]
mod tick;

use bytes::Bytes;
use geometry::{Geometry, Slot};
use tick::Tick;

/// A window of fewer ticks than this is searched tick by tick for the best one.
const SEARCHED: u64 = 24;

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let sizes = MAX_WHEEL_SIZE.ilog2() - MIN_WHEEL_SIZE.ilog2() + 1;
    let size = MIN_WHEEL_SIZE << (u32::from(bytes.byte()) % sizes);
    let pair = Pair { slots: Geometry::new(size), twin: Twin { size: size as u128 } };
    let level = usize::from(bytes.byte()) % pair.slots.levels();
    let (mut from, mut to) = (tick(&mut bytes), tick(&mut bytes));
    if to < from {
        pair.check_starts(level, from, to);
        std::mem::swap(&mut from, &mut to);
    }
    pair.check_place(from, to);
    pair.check_starts(level, from, to);
    pair.check_next(level, from, bytes.ticks());
    pair.check_choice(from, to..=to.saturating_add(bytes.ticks()), tick(&mut bytes));
    let window = tick(&mut bytes)..=tick(&mut bytes);
    if !window.is_empty() {
        pair.check_choice(from, window, tick(&mut bytes));
    }
});

/// Any tick; most are near zero, the end of time, or a wheel's edge.
fn tick(bytes: &mut Bytes<'_>) -> Tick {
    let ticks = bytes.ticks();
    match bytes.byte() % 4 {
        0 => ticks,
        1 => Tick::MAX - ticks,
        2 => ticks.wrapping_mul(3),
        _ => ticks.wrapping_add(bytes.ticks()),
    }
}

/// The slow arithmetic: a wheel's spans are powers of its size, and nothing is shifted or wraps.
struct Twin {
    size: u128,
}

impl Twin {
    fn span(&self, level: usize) -> u128 {
        self.size.pow(level as u32)
    }

    fn number(&self, level: usize, tick: Tick) -> u128 {
        u128::from(tick) / self.span(level)
    }

    /// The lowest level at which less than one revolution lies between the two ticks.
    fn place(&self, from: Tick, deadline: Tick) -> (usize, u128) {
        self.place_within(self.size, from, deadline)
    }

    /// The same for a revolution of `revolution` buckets.
    fn place_within(&self, revolution: u128, from: Tick, deadline: Tick) -> (usize, u128) {
        let ahead = |level| self.number(level, deadline) - self.number(level, from);
        let level = (0..).find(|&level| ahead(level) < revolution).expect("the top level takes everything");
        (level, self.number(level, deadline))
    }

    fn first_number(&self, level: usize, tick: Tick) -> u128 {
        u128::from(tick).div_ceil(self.span(level))
    }

    fn starts_within(&self, level: usize, from: Tick, to: Tick) -> u128 {
        let end = self.number(level, to) + 1;
        end.saturating_sub(self.first_number(level, from)).min(self.size)
    }

    /// When a bucket of the level expires; `None` if that is after the end of time.
    fn expiration(&self, level: usize, number: u128) -> Option<Tick> {
        Tick::try_from(number * self.span(level)).ok()
    }

    /// How often a timer cascades before it fires.
    fn cascades(&self, mut from: Tick, deadline: Tick) -> usize {
        let mut moves = 0;
        loop {
            let (level, number) = self.place(from, deadline);
            let expiration = self.expiration(level, number).expect("no later than the deadline");
            if expiration == deadline {
                return moves;
            }
            (from, moves) = (expiration, moves + 1);
        }
    }
}

/// The arithmetic and its twin, for one wheel size.
struct Pair {
    slots: Geometry,
    twin: Twin,
}

impl Pair {
    fn check_place(&self, from: Tick, deadline: Tick) {
        let Self { slots, twin } = self;
        let slot = slots.place(from, deadline);
        let (level, number) = twin.place(from, deadline);
        assert_eq!((slot.level, u128::from(slot.number)), (level, number), "{from} to {deadline}");
        assert!(level < slots.levels());
        assert_eq!(Some(slots.expiration(slot)), twin.expiration(level, number));
        assert_eq!(slots.index(slot) as u128, number % twin.size);
        assert_eq!(u128::from(slots.round(slot)), number / twin.size % (1 << 32));
        self.check_own(from, deadline);
        let below = slots.place(slots.expiration(slot), deadline);
        assert!(level == 0 || below.level < level, "{from} to {deadline}: a cascade does not descend");
    }

    /// A private wheel has twice as many buckets, and each of its buckets stands for one slot.
    fn check_own(&self, from: Tick, deadline: Tick) {
        let own = self.slots.place_private(from, deadline);
        let (level, number) = self.twin.place_within(2 * self.twin.size, from, deadline);
        // With two-bucket wheels the result may be one level too high.
        if self.twin.size > 2 {
            assert_eq!((own.level, u128::from(own.number)), (level, number), "{from} to {deadline}, own");
        }
        if let Some(flushed) = from.checked_sub(1) {
            assert_eq!(self.own_ahead(own, flushed), own, "{from} to {deadline}, own");
        }
    }

    /// The slot of the bucket that `slot` has in its private wheel.
    fn own_ahead(&self, slot: Slot, flushed: Tick) -> Slot {
        let (index, size) = (self.slots.private_index(slot), self.slots.private_wheel_size());
        self.slots.slot_ahead(slot.level, index, size, flushed)
    }

    fn check_starts(&self, level: usize, from: Tick, to: Tick) {
        let starts = self.slots.starts_within(level, from, to);
        assert_eq!(starts as u128, self.twin.starts_within(level, from, to), "level {level}, {from}..={to}");
    }

    /// Checks the first bucket from `from` on, and the bucket `ahead` buckets after it.
    fn check_next(&self, level: usize, from: Tick, ahead: u64) {
        let Self { slots, twin } = self;
        let first = twin.first_number(level, from);
        let ahead = ahead % slots.wheel_size() as u64;
        let answer = slots.expiration_of(level, from, |slot| {
            let index = slots.index(slot);
            assert_eq!(index as u128, first % twin.size, "level {level} from {from}");
            Some(ahead as usize)
        });
        let expected = twin.expiration(level, first + u128::from(ahead));
        assert_eq!(answer, expected, "level {level} from {from}, {ahead} ahead");
        assert_eq!(slots.expiration_of(level, from, |_| None), None);
    }

    /// No tick of the window may be cheaper than the chosen tick, and no earlier tick as cheap. A
    /// small window is checked completely, a larger one at `tried`.
    fn check_choice(&self, from: Tick, window: RangeInclusive<Tick>, tried: Tick) {
        let chosen = self.slots.choose(from, window.clone());
        let (start, end) = ((*window.start()).max(from), *window.end());
        if start > end {
            assert_eq!(chosen, end, "the window is over");
            return;
        }
        assert!((start..=end).contains(&chosen), "{chosen} is not in {start}..={end}");
        let cost = |tick| (self.twin.cascades(from, tick), tick);
        let worst = cost(chosen);
        if end - start < SEARCHED {
            assert_eq!((start..=end).map(cost).min(), Some(worst), "{start}..={end} from {from}");
        } else {
            let tried = cost(tried.clamp(start, end));
            assert!(worst <= tried, "{worst:?}, not {tried:?}, in {start}..={end} from {from}");
        }
    }
}
