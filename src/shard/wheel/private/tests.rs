//! The search for the next bucket of private wheels.

use super::*;

#[test]
fn next_occupied_goes_round() {
    for size in [2, 4, 8, 16, 64, 128, 2048] {
        let mut wheel = PrivateWheel::new(size);
        assert_eq!(wheel.distance_to_occupied(1), None);
        for index in [0, size / 2, size - 1] {
            wheel.link(index, 1, &AtomicU32::new(NIL));
            for from in 0..size {
                let expected = (index + size - from) % size;
                assert_eq!(wheel.distance_to_occupied(from), Some(expected), "{index} from {from} of {size}");
            }
            wheel.take(index, |stripe, first| assert_eq!((stripe, first), (1, 1)));
            assert!(wheel.is_empty());
        }
    }
}

/// Ticks, each with pairs of deadlines up to some revolutions of the finest wheel later.
fn some_deadlines(size: Tick) -> impl Iterator<Item = (Tick, [Tick; 2])> {
    (0..2 * size).flat_map(move |from| {
        let deadlines =
            move |first| (first..8 * size).map(move |second| (from, [from + first, from + second]));
        (1..8 * size).step_by(3).flat_map(deadlines)
    })
}

/// For any two timers, the earliest expiration is found from any tick up to it.
#[test]
fn next_occupied_is_the_earliest_of_all_wheels() {
    for size in [2, 4, 8] {
        let geometry = Geometry::new(size);
        for (from, deadlines) in some_deadlines(size as Tick) {
            let mut own = PrivateWheels::new(geometry.levels());
            let slots = deadlines.map(|deadline| geometry.place_private(from, deadline));
            for slot in slots {
                own.link(geometry, slot, 1, &AtomicU32::new(NIL));
            }
            let earliest = slots.map(|slot| geometry.expiration(slot)).into_iter().min();
            let first = earliest.expect("there are two");
            for asked in from..=first {
                assert_eq!(own.next_expiration_within(geometry, asked, first), earliest);
                assert_eq!(own.next_expiration_within(geometry, asked, first.saturating_sub(1)), None);
                assert_eq!(
                    own.next_expiration(geometry, asked),
                    earliest,
                    "{deadlines:?} from {from}, {asked}"
                );
            }
        }
    }
}
