//! Deadlines, poll limits and keys: cases from folly (29) and from Agrona's deadline timer wheel.

use std::collections::BTreeSet;
use std::time::Duration;

use shardwheel::{Tick, shard};

use crate::rig::{Rig, drain, ticking};

/// Division by the tick is exact: a deadline is the first tick that is not before the duration's end, and the
/// clock the last tick that has begun, for small pairs and near 2^32 and 2^53, where a detour through
/// floating point would show. Promise 1.
#[test]
fn folly_29_tick_division_is_exact() {
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

/// A deadline of five ticks has not come at four and has at five. Promise 1.
#[test]
fn agrona_30_five_ticks_are_five_ticks() {
    let mut rig = Rig::new(8, 0);
    rig.set(5);
    assert_eq!(rig.at(4), []);
    assert_eq!(rig.at(5), [5]);
}

/// Five ticks and a nanosecond are due at the sixth tick. Agrona rounds down and fires at the fifth; here a
/// timer never fires early. Promise 1.
#[test]
fn agrona_30_a_nanosecond_more_is_a_tick_more() {
    let config = ticking(Duration::from_micros(1));
    let (scheduler, mut advancer) = shard(&config);
    let deadline = config.ticks_ceil(Duration::from_nanos(5_001));
    scheduler.schedule(deadline, "rounded up").expect("the shard is open");
    assert_eq!(drain(&mut advancer, config.ticks_floor(Duration::from_nanos(5_999))), []);
    assert_eq!(drain(&mut advancer, config.ticks_floor(Duration::from_nanos(6_000))), [(6, "rounded up")]);
}

/// Five ticks from a clock that starts at 100 are due at 105. Promise 1.
#[test]
fn agrona_30_a_clock_that_starts_at_a_hundred() {
    let mut rig = Rig::new(8, 100);
    assert_eq!(rig.scheduler.now(), 100);
    rig.set(105);
    assert_eq!(rig.at(104), []);
    assert_eq!(rig.at(105), [105]);
}

/// 63 ticks ahead in a wheel of 16 buckets: the bucket comes round three times before the timer is due.
/// Promise 1.
#[test]
fn agrona_31_further_ahead_than_the_wheel_reaches() {
    let mut rig = Rig::new(16, 0);
    rig.set(63);
    rig.fires_tick_by_tick(&[63]);
}

/// The same, cancelled when the clock is at 16: the first cancel has it, the second has nothing, and it never
/// fires. Promise 2.
#[test]
fn agrona_31_cancelled_after_a_revolution() {
    let mut rig = Rig::new(16, 0);
    let key = rig.set(63);
    (0..=16).for_each(|now| assert_eq!(rig.at(now), []));
    assert_eq!(rig.scheduler.cancel(key), Some(63));
    assert_eq!(rig.scheduler.cancel(key), None);
    (17..200).for_each(|now| assert_eq!(rig.at(now), []));
}

/// Timers that share a bucket but not a round each fire in their own round. Promise 1.
#[test]
fn agrona_32_one_bucket_two_rounds() {
    for size in [2, 8, 16] {
        let revolution = size as Tick;
        let deadlines = [3, 3 + revolution, 3 + 2 * revolution, 3 + revolution * revolution];
        let mut rig = Rig::new(size, 0);
        rig.set_all(&deadlines);
        rig.fires_tick_by_tick(&deadlines);
    }
}

/// The caller takes only one of two that are due: the other is still counted, keeps the shard from sleeping,
/// and comes at the next advance, even one that does not move the clock. Promises 2 and 8.
#[test]
fn agrona_33_what_is_not_taken_comes_next_time() {
    let mut rig = Rig::new(16, 0);
    rig.set_all(&[15, 15]);
    assert_eq!(rig.advancer.advance(20).next().map(|fired| fired.payload), Some(15));
    assert_eq!(rig.scheduler.len(), 1);
    assert!(rig.advancer.next_expiration().is_some_and(|next| next <= 20), "one is due now");
    assert_eq!(rig.at(20), [15]);
    assert_eq!(rig.advancer.next_expiration(), None);
}

/// The caller takes none: both come at the next advance, also if that is told an earlier time; for a clock
/// that goes backwards is ignored. Promises 4 and 8.
#[test]
fn agrona_33_taking_none_loses_none() {
    let mut rig = Rig::new(16, 0);
    rig.set_all(&[15, 17]);
    drop(rig.advancer.advance(20));
    assert_eq!(rig.scheduler.len(), 2);
    let taken = rig.advancer.advance(10).map(|fired| fired.payload).collect::<Vec<_>>();
    assert_eq!(taken, [15, 17]);
    assert_eq!((rig.scheduler.len(), rig.scheduler.now()), (0, 20));
}

/// Many are due and few are taken at a time, while the clock goes on and more become due: all come, each
/// once, those left over first. Promises 1 and 7.
#[test]
fn agrona_33_a_few_at_a_time() {
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

/// A timer that is due but has not been taken can still be cancelled, and can still be put off. Promise 2.
#[test]
fn agrona_33_untaken_timers_can_be_cancelled_and_rescheduled() {
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
