//! Each timer fires once, at its tick: cases from Go's timing wheel and from folly's.

use shardwheel::Tick;

use crate::rig::{Rig, WHEEL_SIZES, fires_exactly};

const DAY: Tick = 24 * 60 * 60 * 1_000;

/// Two hundred timers from eight days to five years ahead, at a tick of one millisecond: none is
/// early, none is lost, and the years between cost next to nothing. Promises 1 and 4.
#[test]
fn timers_days_to_years_ahead_fire_on_time() {
    let deadlines = (0..200).map(|i| DAY * (8 + 9 * i) + 7_919 * i).collect::<Vec<Tick>>();
    for size in WHEEL_SIZES {
        fires_exactly(size, 0, &deadlines);
    }
}

/// Two timers for one tick and one for twice as far: each fires once, and nothing is counted
/// afterwards. Promise 2.
#[test]
fn each_timer_fires_once() {
    let mut rig = Rig::new(16, 0);
    rig.set_all(&[20, 20, 40]);
    assert_eq!(rig.at(19), []);
    assert_eq!(rig.at(20), [20, 20]);
    assert_eq!(rig.at(39), []);
    assert_eq!(rig.at(40), [40]);
    assert_eq!(rig.at(1_000), []);
    assert_eq!(rig.scheduler.len(), 0);
}

/// A timer for an earlier tick, set after a timer for a later tick, does not wait for it. Promise
/// 1.
#[test]
fn a_timer_set_later_may_be_due_first() {
    let mut rig = Rig::new(16, 0);
    rig.set_all(&[10, 5]);
    assert_eq!(rig.at(4), []);
    assert_eq!(rig.at(5), [5]);
    assert_eq!(rig.at(9), []);
    assert_eq!(rig.at(10), [10]);
}

/// Timers that start on a higher level and move to a lower one, and the same 256 times as far, in
/// folly's wheel of 256 and in others. Promise 1.
#[test]
fn timers_that_cross_levels_fire_on_time() {
    for size in WHEEL_SIZES {
        for start in [0, 1, 255, 256, 1_000_003] {
            let deadlines = [300, 605, 300 * 256, 605 * 256].map(|delay| start + delay);
            fires_exactly(size, start, &deadlines);
        }
    }
}
