//! The effect of each step on a list and its bit.

use super::*;

fn new(size: usize, round: u32) -> Wheel {
    Wheel::new(size, round).expect("there is memory")
}

/// The index of a bucket, a stripe and a round.
type Place = (usize, usize, u32);

fn push_unmarked(wheel: &Wheel, (index, stripe, round): Place, id: NodeId, link: &AtomicU32) -> bool {
    wheel.push(index, stripe, round, id, link)
}

fn push(wheel: &Wheel, at: Place, id: NodeId, link: &AtomicU32) -> bool {
    wheel.mark(0, at.0, at.1);
    push_unmarked(wheel, at, id, link)
}

/// The lists that a flush takes.
fn flush(wheel: &Wheel, index: usize, round: u32) -> Vec<(usize, NodeId)> {
    let mut lists = Vec::new();
    wheel.flush(index, round, |stripe, first| lists.push((stripe, first)));
    lists
}

#[test]
fn a_flush_takes_what_was_pushed_and_ends_the_round() {
    let wheel = new(16, 0);
    let (a, b, c) = (AtomicU32::new(9), AtomicU32::new(9), AtomicU32::new(9));
    assert!(push(&wheel, (3, 1, 7), 1, &a));
    assert!(push(&wheel, (3, 1, 7), 2, &b));
    assert_eq!(flush(&wheel, 3, 7), [(1, 2)]);
    // Ordering: Relaxed, there is one thread.
    assert_eq!((b.load(Ordering::Relaxed), a.load(Ordering::Relaxed)), (1, NIL));
    assert!(!push(&wheel, (3, 1, 7), 3, &c), "the round is over");
    assert!(push(&wheel, (3, 1, 8), 3, &c));
}

#[test]
fn a_list_that_holds_a_round_takes_no_other() {
    let wheel = new(16, 0);
    let (a, b) = (AtomicU32::new(NIL), AtomicU32::new(NIL));
    assert!(push(&wheel, (0, 0, 5), 1, &a));
    for round in [4, 6] {
        assert!(!push_unmarked(&wheel, (0, 0, round), 2, &b));
    }
}

#[test]
fn an_empty_list_whose_round_wrapped_takes_nothing_until_it_is_flushed() {
    let wheel = new(16, 0);
    let link = AtomicU32::new(NIL);
    let far = (0, 0, 1 << 31);
    assert!(!push(&wheel, far, 1, &link));
    flush(&wheel, 0, (1 << 31) - 1);
    assert!(push(&wheel, far, 1, &link));
}

#[test]
fn next_occupied_goes_round() {
    for size in [2, 4, 8, 16, 64] {
        let wheel = new(size, 0);
        assert_eq!(wheel.distance_to_occupied(1, size), None);
        for index in [0, size / 2, size - 1] {
            wheel.mark(0, index, STRIPES - 1);
            for (from, count) in (0..size).flat_map(|from| (0..=size).map(move |count| (from, count))) {
                let expected = Some((index + size - from) % size).filter(|&ahead| ahead < count);
                let found = wheel.distance_to_occupied(from, count);
                assert_eq!(found, expected, "{index} from {from} of {size}, {count} of them");
            }
            flush(&wheel, index, 0);
        }
        assert_eq!(wheel.distance_to_occupied(0, size), None);
    }
}

#[test]
fn what_is_detached_leaves_the_round_open() {
    let wheel = new(4, 0);
    let (a, b, c) = (AtomicU32::new(NIL), AtomicU32::new(NIL), AtomicU32::new(NIL));
    assert!(push(&wheel, (2, 3, 0), 1, &a));
    assert!(push(&wheel, (2, 3, 0), 2, &b));
    assert_eq!(wheel.detach(2, 3), Some(2));
    assert_eq!(wheel.detach(2, 3), None);
    assert!(push(&wheel, (2, 3, 0), 3, &c));
    // Ordering: Relaxed, there is one thread.
    assert_eq!(c.load(Ordering::Relaxed), NIL);
    assert_eq!(flush(&wheel, 2, 0), [(3, 3)]);
}
