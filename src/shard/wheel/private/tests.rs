//! Private wheels alone: what is placed comes out once, and where.

use super::*;

/// The lists that are taken out of a bucket.
fn take(wheel: &mut PrivateWheel, index: usize) -> Vec<(usize, NodeId)> {
    let mut lists = Vec::new();
    wheel.take(index, |stripe, first| lists.push((stripe, first)));
    lists
}

#[test]
fn a_bucket_yields_what_was_pushed_once() {
    let mut wheel = PrivateWheel::new(16);
    let (a, b) = (AtomicU32::new(9), AtomicU32::new(9));
    wheel.link(3, STRIPES as NodeId, &a);
    wheel.link(3, 2 * STRIPES as NodeId, &b);
    assert_eq!(take(&mut wheel, 2), []);
    assert_eq!(take(&mut wheel, 3), [(0, 2 * STRIPES as NodeId)]);
    // Ordering: Relaxed, there is one thread.
    assert_eq!((b.load(Ordering::Relaxed), a.load(Ordering::Relaxed)), (STRIPES as NodeId, NIL));
    assert_eq!(take(&mut wheel, 3), []);
    assert!(wheel.is_empty());
}

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
            assert_eq!(take(&mut wheel, index).len(), 1);
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

#[test]
fn a_wheel_is_made_when_needed() {
    let geometry = Geometry::new(16);
    let mut own = PrivateWheels::new(geometry.levels());
    assert_eq!(own.next_expiration(geometry, 0), None);
    own.link(geometry, geometry.slot(1, 40), 1, &AtomicU32::new(NIL));
    assert_eq!(own.next_expiration(geometry, 5), Some(32));
    own.take(1, 2, |_, first| assert_eq!(first, 1));
    assert!(own.level(1).is_some_and(PrivateWheel::is_empty));
}
