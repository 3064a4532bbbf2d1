//! Clocks that jump, stand still or go backwards: complaints about other timers (tokio, Kafka, Go).

use shardwheel::Tick;

use crate::rig::{Rig, WHEEL_SIZES};

const SECOND: Tick = 1_000;
const DAY: Tick = 24 * 60 * 60 * SECOND;

/// Timers that were due in more than twelve days made short timers hang. Here each timer of either
/// kind fires when it is due, also after the clock has passed the far ones. Promises 1 and 4.
#[test]
fn far_timers_do_not_delay_near_timers() {
    for size in WHEEL_SIZES {
        let mut rig = Rig::new(size, 0);
        let far = (12..=20).map(|day| day * DAY + 345).collect::<Vec<Tick>>();
        rig.set_all(&far);
        for now in (0..2_000).step_by(10) {
            rig.set(now + 7);
            assert_eq!(rig.at(now + 6), []);
            assert_eq!(rig.at(now + 7), [now + 7]);
        }
        rig.fires_by_sleeping(&far);
    }
}

/// While a shard was idle its clock fell far behind; timers that were then set relative to the true
/// time fired early, or needed extra levels. Here a deadline is absolute: each timer fires exactly,
/// whether the clock catches up before or after the timer is set. Promises 1 and 4.
#[test]
fn a_stale_clock_fires_nothing_early() {
    for size in WHEEL_SIZES {
        for idle in [6, 100, 4_096, 10_000_000, 1 << 40] {
            let mut rig = Rig::new(size, 0);
            rig.set(5);
            assert_eq!(rig.at(5), [5]);
            let deadlines = [1, 2, 20, 300, 5_000].map(|delay| idle + delay);
            rig.set_all(&deadlines);
            assert_eq!(rig.at(idle), [], "the clock catches up");
            rig.set_all(&deadlines);
            rig.fires_by_jumps(&[deadlines, deadlines].concat());
        }
    }
}

/// A clock that goes backwards is ignored: no timer fires early or twice, and timers that are set
/// afterwards are not early. Promise 4.
#[test]
fn a_clock_that_goes_backwards_is_ignored() {
    let mut rig = Rig::new(16, 0);
    rig.set_all(&[50, 150]);
    assert_eq!(rig.at(100), [50]);
    for earlier in [99, 50, 0] {
        assert_eq!(rig.at(earlier), []);
        assert_eq!(rig.scheduler.now(), 100);
    }
    rig.set(60);
    assert_eq!(rig.at(0), [60], "past, though not for the clock that went back");
    assert_eq!(rig.at(149), []);
    assert_eq!(rig.at(150), [150]);
}
