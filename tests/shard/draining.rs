//! Callbacks and schedules: cases from Go's timing wheel and from folly's. A callback, on the ground floor,
//! is what the caller does with a timer that it takes from an advance.

use shardwheel::{Key, Tick, shard};

use crate::rig::{Rig, WHEEL_SIZES, config, drain};

/// Each of 128 timers arms another as far ahead as the wheel reaches, while its own bucket is being emptied:
/// those fire exactly that much later, not at once and not a revolution late. Promises 1 and 7.
#[test]
fn folly_24_a_callback_arms_as_far_as_the_wheel_reaches() {
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

/// Advances to `now`; each timer that was set beforehand (its payload is its deadline) arms one whose payload
/// is `Tick::MAX`. Counts what fired, and checks that each was due at `now`.
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

/// Of two timers that are due together, each cancels all the others: one fires and one is cancelled. A
/// timer that is due but has not been taken can still be cancelled. Promise 2.
#[test]
fn folly_26_each_cancels_all_the_others() {
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

/// A callback schedules into the very tick that is being drained, again and again. That does not deadlock, as
/// a wheel with a lock for each bucket does, and each such timer comes in this advance or the next. Promise
/// 7.
#[test]
fn go_49_scheduling_into_the_tick_being_drained() {
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

/// A callback reschedules a neighbour that is due in the same advance, and one that is due later: the first
/// moves away, the second comes nearer. Promises 2 and 7.
#[test]
fn folly_26_a_callback_reschedules_its_neighbours() {
    let (scheduler, mut advancer) = shard(&config(16, 0));
    let [first, second] = [10, 10].map(|deadline| scheduler.schedule(deadline, "pair").expect("open"));
    let late = scheduler.schedule(90, "late").expect("open");
    for fired in advancer.advance(10) {
        let other = if fired.key == first { second } else { first };
        scheduler.reschedule(other, 20).expect("due, but not taken");
        scheduler.reschedule(late, 11).expect("pending");
    }
    assert_eq!(drain(&mut advancer, 19), [(11, "late")]);
    assert_eq!(drain(&mut advancer, 20), [(20, "pair")]);
}
