//! Unit tests of the arithmetic of wheels.

use super::*;

#[test]
fn rounds_and_cascades_of_wheels_of_four() {
    let geometry = Geometry::new(4);
    for (level, tick, round) in [(0, 3, 0), (0, 4, 1), (0, 11, 2), (1, 15, 0), (1, 16, 1), (2, 64, 1)] {
        assert_eq!(geometry.round(geometry.slot(level, tick)), round, "level {level}, tick {tick}");
    }
    let far = 1 << 34;
    assert_eq!([far - 1, far, far + 5].map(|tick| geometry.round(geometry.slot(0, tick))), [u32::MAX, 0, 1]);
    assert_eq!((1..10).filter(|&tick| geometry.starts_overflow_bucket(tick)).collect::<Vec<_>>(), [4, 8]);
    // A timer passes through buckets of 64, 16, 4 and 1 ticks. Each bucket that starts later
    // than the bucket before it costs a move.
    for (deadline, moves) in [(3, 0), (16, 0), (17, 1), (20, 1), (23, 2), (64, 0), (64 + 23, 3)] {
        assert_eq!(geometry.cascades(0, deadline), moves, "{deadline}");
    }
    assert_eq!((geometry.cascades(9, 5), geometry.cascades(22, 23)), (0, 0));
}

#[test]
fn overflow_starts_within_a_span() {
    let geometry = Geometry::new(4);
    for (from, to) in (0..20).flat_map(|from| (from..40).map(move |to| (from, to))) {
        let has_start = (from..=to).any(|tick| geometry.starts_overflow_bucket(tick));
        assert_eq!(geometry.has_overflow_start(from, to), has_start, "{from} to {to}");
    }
}

#[test]
fn the_reciprocal_divides() {
    for bits in 1..=15 {
        let geometry = Geometry::new(1 << bits);
        for n in 0..Tick::BITS {
            assert_eq!((n * geometry.reciprocal) >> 16, n / bits, "{n} / {bits}");
        }
    }
}

/// Ticks at which digits roll over, and their neighbours.
fn landmarks() -> Vec<Tick> {
    let powers = (0..64).map(|shift| 1u64 << shift);
    let near = powers.flat_map(|tick| [tick - 1, tick, tick + 1, tick.wrapping_mul(3)]);
    let top = (0..5).map(|back| Tick::MAX - back);
    near.chain(top).collect()
}

fn sizes() -> impl Iterator<Item = Geometry> {
    [2, 4, 16, 256, 2048, 1 << 15].into_iter().map(Geometry::new)
}

/// [`Geometry::place`] for wheels of `size` buckets, the slow way: tries each level in turn.
fn place_slowly(geometry: Geometry, size: usize, from: Tick, deadline: Tick) -> Slot {
    let span = |level: u32| u128::from(geometry.wheel_size() as u64).pow(level);
    let number = |level, tick: Tick| u128::from(tick) / span(level);
    let fits = |level| number(level, deadline) - number(level, from) < size as u128;
    let level = (0..).find(|&level| fits(level)).expect("the top level takes everything");
    Slot { level: level as usize, number: number(level, deadline) as u64 }
}

#[test]
fn place_agrees_with_its_slow_twin() {
    for geometry in sizes() {
        for from in landmarks() {
            for deadline in landmarks().into_iter().filter(|&deadline| deadline >= from) {
                let slot = geometry.place(from, deadline);
                let slowly = |size| place_slowly(geometry, size, from, deadline);
                assert_eq!(slot, slowly(geometry.wheel_size()), "{from} to {deadline}");
                let own = geometry.place_private(from, deadline);
                if geometry.wheel_size() > 2 {
                    assert_eq!(own, slowly(geometry.private_wheel_size()), "{from} to {deadline}, own");
                }
                assert!(slot.level < geometry.levels());
            }
        }
    }
}

#[test]
fn a_slot_starts_no_later_than_its_deadline_and_ends_after_it() {
    for geometry in sizes() {
        for from in landmarks() {
            for deadline in landmarks().into_iter().filter(|&deadline| deadline >= from) {
                let slot = geometry.place(from, deadline);
                assert!(geometry.expiration(slot) <= deadline);
                let next = geometry.nth_after(slot, 1);
                assert!(next.is_none_or(|next| geometry.expiration(next) > deadline));
            }
        }
    }
}

#[test]
fn a_cascade_descends() {
    for geometry in sizes() {
        for from in landmarks() {
            for deadline in landmarks().into_iter().filter(|&deadline| deadline >= from) {
                let slot = geometry.place(from, deadline);
                let below = geometry.place(geometry.expiration(slot), deadline);
                assert!(slot.level == 0 || below.level < slot.level, "{from} to {deadline}");
                assert!(geometry.cascades(from, deadline) < geometry.levels() as u32);
            }
        }
    }
}

#[test]
fn all_of_the_next_bucket_has_a_place_in_the_finer_own_wheel() {
    for geometry in sizes() {
        for flushed in landmarks().into_iter().filter(|&flushed| flushed < Tick::MAX) {
            for level in 1..geometry.levels() {
                let Some(next) = geometry.first_from(level, flushed + 1) else { continue };
                let first = geometry.expiration(next);
                let last = first.saturating_add(geometry.span(level) - 1);
                for deadline in [first, last] {
                    let slot = geometry.place_private(flushed + 1, deadline);
                    assert!(slot.level < level, "{flushed}, {deadline}");
                    let ahead = geometry.slot_ahead(
                        slot.level,
                        geometry.private_index(slot),
                        geometry.private_wheel_size(),
                        flushed,
                    );
                    assert_eq!(slot, ahead, "{flushed}, {deadline}");
                }
            }
        }
    }
}

#[test]
fn first_from_is_the_first() {
    let geometry = Geometry::new(4);
    for tick in 0..200 {
        for level in 0..4 {
            let slot = geometry.first_from(level, tick).unwrap();
            let span = 4u64.pow(level as u32);
            assert_eq!(geometry.expiration(slot), tick.div_ceil(span) * span);
        }
    }
    assert_eq!(geometry.first_from(1, Tick::MAX), None);
    assert_eq!(geometry.first_from(0, Tick::MAX).map(|slot| slot.number), Some(Tick::MAX));
}

/// [`Geometry::choose`] against the slow way: trying each tick of the window.
/// The buckets that start within a span, counted in 128 bits.
#[test]
fn starts_within_agrees_with_its_slow_twin() {
    let starts = |geometry: Geometry, level: usize, from: Tick, to: Tick| {
        let size = u128::from(geometry.wheel_size() as u64);
        let span = size.pow(level as u32);
        let (first, after) = (u128::from(from).div_ceil(span), u128::from(to) / span + 1);
        after.saturating_sub(first).min(size) as usize
    };
    let (from, to) = (landmarks().into_iter().step_by(5), landmarks().into_iter().step_by(7));
    for geometry in sizes() {
        for (from, to) in from.clone().flat_map(|from| to.clone().map(move |to| (from, to))) {
            for level in 0..geometry.levels() {
                let count = geometry.starts_within(level, from, to);
                assert_eq!(count, starts(geometry, level, from, to), "level {level}, {from} to {to}");
            }
        }
    }
}

#[test]
fn choose_agrees_with_its_slow_twin() {
    let geometry = Geometry::new(4);
    for from in [0, 1, 3, 17, 63] {
        for start in 0..150 {
            for end in start.max(from)..start + 90 {
                let chosen = geometry.choose(from, start..=end);
                let cost = geometry.cascades(from, chosen);
                let least = (start.max(from)..=end).map(|tick| geometry.cascades(from, tick)).min();
                assert!((start..=end).contains(&chosen));
                assert_eq!(Some(cost), least, "{start}..={end} from {from}: {chosen}");
            }
        }
    }
}

#[test]
fn a_window_in_the_past_yields_its_end() {
    assert_eq!(Geometry::new(16).choose(100, 20..=30), 30);
    assert_eq!(Geometry::new(16).choose(100, 20..=130), 100);
}

#[cfg(not(any(shardwheel_loom, fuzzing)))]
#[test]
fn vectors_of_slots() {
    use crate::vectors::{numbers, show};
    for bits in 1..=15 {
        let geometry = Geometry::new(1 << bits);
        let (ticks, others) = (numbers(bits, 12), numbers(bits + 100, 12));
        for (from, deadline) in ticks.into_iter().zip(others).map(|(a, b)| (a.min(b), a.max(b))) {
            let slot = geometry.place(from, deadline);
            let (index, round) = (geometry.index(slot) as u64, u64::from(geometry.round(slot)));
            let level = slot.level as u64;
            let results = [level, slot.number, geometry.expiration(slot), index, round];
            show("geometry", &[bits, from, deadline], &results);
            let first = geometry.first_from(slot.level, from).map(|slot| slot.number);
            show("first_from", &[bits, level, from], &[u64::from(first.is_some()), first.unwrap_or(0)]);
            let own = geometry.place_private(from, deadline);
            let (level, expiration) = (own.level as u64, geometry.expiration(own));
            let results = [level, own.number, expiration, geometry.private_index(own) as u64];
            show("place_private", &[bits, from, deadline], &results);
        }
    }
}
