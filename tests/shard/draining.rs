//! The caller uses the shard while it takes timers from an advance: cases from Go's timing wheel
//! and from folly's.

use shardwheel::{Key, Tick, shard};

use crate::rig::{Rig, WHEEL_SIZES, config, drain};

/// Each of 128 timers schedules another as far ahead as the wheel reaches, while its own bucket is
/// being flushed. The new timers fire exactly then, not at once and not one revolution late.
/// Promises 1 and 7.
#[test]
fn timers_set_while_their_bucket_is_flushed_fire_on_time() {
    for size in WHEEL_SIZES {
        let ahead = size as Tick - 1;
        let mut rig = Rig::new(size, 0);
        let deadlines = (1..=128).collect::<Vec<Tick>>();
        rig.set_all(&deadlines);
        for now in 1..=128 + ahead {
            let own = usize::from(now <= 128);
            let armed = usize::from(now > ahead && now - ahead <= 128);
            assert_eq!(arm_at(&mut rig, now, ahead), own + armed, "at {now} in a wheel of {size}");
        }
        assert_eq!(rig.scheduler.len(), 0);
    }
}

/// Advances to `now`. Each timer whose payload is its deadline schedules one whose payload is
/// `Tick::MAX`. Returns how many timers fired, and checks that each was due at `now`.
fn arm_at(rig: &mut Rig, now: Tick, ahead: Tick) -> usize {
    let mut count = 0;
    for fired in rig.advancer.advance(now) {
        assert_eq!(fired.deadline, now);
        if fired.payload != Tick::MAX {
            rig.scheduler.schedule(now + ahead, Tick::MAX).expect("the shard is open");
        }
        count += 1;
    }
    count
}

/// Several timers are due together, and the first cancels all the others: one fires and the rest
/// are cancelled. A timer that is due and was not taken can still be cancelled. Promise 2.
#[test]
fn of_timers_that_cancel_each_other_one_fires() {
    for count in [2, 10, 300] {
        let mut rig = Rig::new(16, 0);
        let keys = rig.set_all(&vec![10; count]);
        let cancel_all =
            |key: Key| keys.iter().filter(|&&k| k != key && rig.scheduler.cancel(k).is_some()).count();
        let outcomes = rig.advancer.advance(10).map(|fired| cancel_all(fired.key)).collect::<Vec<_>>();
        assert_eq!(outcomes, [count - 1], "one fires and cancels the rest");
        assert_eq!(rig.scheduler.len(), 0);
    }
}

/// The caller schedules into the very tick that it drains, again and again. That does not deadlock,
/// as it does in a wheel with a lock for each bucket, and each such timer fires in this advance or
/// the next. Promise 7.
#[test]
fn scheduling_into_the_current_tick_does_not_deadlock() {
    let mut rig = Rig::new(16, 0);
    rig.set(10);
    let mut armed = 0;
    for _ in 0..=100 {
        for fired in rig.advancer.advance(10) {
            assert_eq!(fired.deadline, 10);
            if armed < 100 {
                armed += 1;
                rig.scheduler.schedule(10, armed).expect("the shard is open");
            }
        }
    }
    assert_eq!((armed, rig.scheduler.len()), (100, 0));
}

/// While it drains, the caller postpones a timer that is due in the same advance, and advances the
/// deadline of a later one. Promises 2 and 7.
#[test]
fn a_drain_reschedules_other_due_timers() {
    let (scheduler, mut advancer) = shard(&config(16, 0));
    let [first, second] =
        [10, 10].map(|deadline| scheduler.schedule(deadline, "pair").expect("the shard is open"));
    let late = scheduler.schedule(90, "late").expect("the shard is open");
    for fired in advancer.advance(10) {
        let other = if fired.key == first { second } else { first };
        scheduler.reschedule(other, 20).expect("due, but not taken");
        scheduler.reschedule(late, 11).expect("the timer is pending");
    }
    assert_eq!(drain(&mut advancer, 19), [(11, "late")]);
    assert_eq!(drain(&mut advancer, 20), [(20, "pair")]);
}
