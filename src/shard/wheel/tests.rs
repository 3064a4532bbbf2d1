//! The effect of each step on a list and its bit.

use super::*;

fn new(size: usize, round: u32) -> Wheel {
    Wheel::new(size, round).expect("there is memory")
}

fn flush(wheel: &Wheel, index: usize, round: u32) {
    wheel.flush(index, round, |_, _| ());
}

#[test]
fn an_empty_list_whose_round_wrapped_takes_nothing_until_it_is_flushed() {
    let wheel = new(16, 0);
    wheel.mark(0, 0, 0);
    let push = || wheel.push(0, 0, 1 << 31, 1, &AtomicU32::new(NIL));
    assert!(!push());
    flush(&wheel, 0, (1 << 31) - 1);
    assert!(push());
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
