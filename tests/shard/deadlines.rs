//! Deadlines, past and postponed ones too, and poll limits: cases from folly (29), from Kafka's timing
//! wheel and from Agrona's deadline timer wheel.

use std::collections::BTreeSet;
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

/// The caller takes none of three due timers, and then one. The others are still counted, keep the
/// shard from sleeping, and fire at the next advance, even if its time is earlier. Promises 2, 4 and 8.
#[test]
fn a_due_timer_that_was_not_taken_fires_at_the_next_advance() {
    let mut rig = Rig::new(16, 0);
    rig.set_all(&[15, 15, 17]);
    drop(rig.advancer.advance(20));
    assert_eq!(rig.scheduler.len(), 3);
    assert_eq!(rig.advancer.advance(20).next().map(|fired| fired.payload), Some(15));
    assert_eq!(rig.scheduler.len(), 2);
    assert!(rig.advancer.next_expiration().is_some_and(|next| next <= 20), "they are due now");
    assert_eq!(rig.advancer.advance(10).map(|fired| fired.payload).collect::<Vec<_>>(), [15, 17]);
    assert_eq!((rig.advancer.next_expiration(), rig.scheduler.now()), (None, 20));
}

/// Timers whose deadlines are one to five ticks past, or are the clock's tick, fire at the next
/// advance, although the clock stands still; also before the clock has moved. (Kafka's wheel refuses
/// them.) Promise 4.
#[test]
fn past_deadlines_fire_at_the_next_advance() {
    for (clock, past) in [(100, [95, 96, 97, 98, 99]), (100, [100; 5]), (0, [0; 5])] {
        let mut rig = Rig::new(8, clock);
        rig.set_all(&past);
        assert_eq!(rig.scheduler.len(), 5, "due, but not yet taken");
        assert_eq!(BTreeSet::from_iter(rig.at(clock)), BTreeSet::from(past));
        assert_eq!((rig.at(clock), rig.scheduler.len()), (vec![], 0));
    }
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

/// A timer that is due and was not taken can still be cancelled, and can still be rescheduled.
/// Promise 2.
#[test]
fn due_timers_that_were_not_taken_can_be_cancelled_and_rescheduled() {
    let mut rig = Rig::new(16, 0);
    let [cancelled, later, earlier, kept] = [5, 6, 7, 8].map(|deadline| rig.set(deadline));
    drop(rig.advancer.advance(10));
    assert_eq!(rig.scheduler.cancel(cancelled), Some(5));
    assert!(rig.scheduler.reschedule(later, 30).is_some());
    assert!(rig.scheduler.reschedule(earlier, 2).is_some());
    assert_eq!(rig.scheduler.len(), 3);
    let due = rig.advancer.advance(10).map(|fired| fired.payload).collect::<BTreeSet<_>>();
    assert_eq!(due, BTreeSet::from([7, 8]));
    assert_eq!(rig.scheduler.cancel(kept), None);
    assert_eq!(rig.at(29), []);
    assert_eq!(rig.at(30), [6]);
}
