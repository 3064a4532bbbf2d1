//! Durations as deadlines, and a postponed timer: cases from folly (29) and from Agrona's deadline timer
//! wheel.

use std::time::Duration;

use shardwheel::{Config, shard};

use crate::rig::{Rig, drain};

/// Settings whose tick lasts `tick`.
fn ticking(tick: Duration) -> Config {
    Config::builder().tick(tick).build().expect("a tick that is not zero")
}

/// Division by the tick is exact: a deadline is the first tick that does not precede the duration's
/// end, and the clock is the last tick that has begun. Checked for small pairs and near 2^32 and
/// 2^53, where floating-point arithmetic would show. Promise 1.
#[test]
fn tick_division_is_exact() {
    let values = [0..50, (1 << 32) - 2..(1 << 32) + 2, (1 << 53) - 2..(1 << 53) + 2];
    for tick in (1..50).chain([(1 << 32) - 1, 1 << 32, 1_000_000]) {
        let config = ticking(Duration::from_nanos(tick));
        for nanos in values.iter().cloned().flatten() {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(config.ticks_floor(duration), nanos / tick, "{nanos} ns, rounded down to {tick}");
            assert_eq!(config.ticks_ceil(duration), nanos.div_ceil(tick), "{nanos} ns, rounded up to {tick}");
        }
    }
}

/// Five ticks and a nanosecond are due at the sixth tick. (Agrona rounds down and fires at the
/// fifth.) Promise 1.
#[test]
fn a_fraction_of_a_tick_rounds_up() {
    let config = ticking(Duration::from_micros(1));
    let (scheduler, mut advancer) = shard(&config);
    let deadline = config.ticks_ceil(Duration::from_nanos(5_001));
    scheduler.schedule(deadline, "rounded up").expect("the shard is open");
    assert_eq!(drain(&mut advancer, config.ticks_floor(Duration::from_nanos(5_999))), []);
    assert_eq!(drain(&mut advancer, config.ticks_floor(Duration::from_nanos(6_000))), [(6, "rounded up")]);
}

/// The advancer finds a far-postponed timer in the bucket of its former deadline, and places it by
/// its new deadline. Nothing is to be done before the overflow bucket of the new deadline. Promise
/// 9.
#[test]
fn a_postponed_timer_is_moved_once_on_its_way() {
    let mut rig = Rig::new(16, 0);
    let key = rig.set(40);
    assert_eq!(rig.scheduler.reschedule(key, 5040), Some(key));
    assert_eq!(rig.at(32), []);
    assert_eq!(rig.advancer.next_expiration(), Some(4864), "its bucket of the second overflow wheel");
    #[cfg(debug_assertions)]
    rig.advancer.check_invariants();
    assert_eq!(rig.at(5039), []);
    assert_eq!(rig.at(5040), [40]);
}
