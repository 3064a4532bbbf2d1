//! Deadlines and poll limits: cases from folly (29) and from Agrona's deadline timer wheel.

use std::collections::BTreeSet;
use std::time::Duration;

use shardwheel::{Tick, shard};

use crate::rig::{Rig, drain, ticking};

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

/// The caller takes only one of two due timers. The other is still counted, keeps the shard from
/// sleeping, and fires at the next advance, even if that does not move the clock. Promises 2 and 8.
#[test]
fn a_due_timer_that_was_not_taken_fires_at_the_next_advance() {
    let mut rig = Rig::new(16, 0);
    rig.set_all(&[15, 15]);
    assert_eq!(rig.advancer.advance(20).next().map(|fired| fired.payload), Some(15));
    assert_eq!(rig.scheduler.len(), 1);
    assert!(rig.advancer.next_expiration().is_some_and(|next| next <= 20), "one is due now");
    assert_eq!(rig.at(20), [15]);
    assert_eq!(rig.advancer.next_expiration(), None);
}

/// The caller takes neither of two due timers: both fire at the next advance, also if its time is
/// earlier, as a clock that goes backwards is ignored. Promises 4 and 8.
#[test]
fn an_advance_that_takes_nothing_loses_nothing() {
    let mut rig = Rig::new(16, 0);
    rig.set_all(&[15, 17]);
    drop(rig.advancer.advance(20));
    assert_eq!(rig.scheduler.len(), 2);
    let taken = rig.advancer.advance(10).map(|fired| fired.payload).collect::<Vec<_>>();
    assert_eq!(taken, [15, 17]);
    assert_eq!((rig.scheduler.len(), rig.scheduler.now()), (0, 20));
}

/// Many timers are due, and the caller takes one at a time while the clock moves and more become
/// due: each fires once, in the order of deadlines. Promises 1 and 7.
#[test]
fn timers_taken_one_at_a_time_all_fire_in_order() {
    let deadlines = (1..=500).map(|i| i / 2).collect::<Vec<Tick>>();
    let mut rig = Rig::new(16, 0);
    rig.set_all(&deadlines);
    let mut taken = Vec::new();
    for now in 0..=600 {
        let left = deadlines.len() - taken.len();
        assert_eq!(rig.scheduler.len(), left);
        taken.extend(rig.advancer.advance(now).take(1).map(|fired| fired.deadline));
        assert!(taken.last().is_none_or(|&deadline| deadline <= now));
    }
    assert_eq!(taken, deadlines, "in the order in which they were due");
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
