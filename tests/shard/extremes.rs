//! Extreme deadlines: cases from Akka, Caffeine, folly, timeout.c and ratas.

use std::ops::RangeInclusive;
use std::sync::Arc;

use shardwheel::{Tick, shard};

use crate::rig::{Rig, WHEEL_SIZES, config, drain};

/// All timers are cancelled, and then the clock jumps to the last tick: nothing fires. The test
/// ends, so the jump does not visit all 2^64 ticks. Promises 2 and 4.
#[test]
fn cancelled_timers_do_not_fire_at_the_end_of_time() {
    for size in WHEEL_SIZES {
        let mut rig = Rig::new(size, 0);
        let far = (0..64).map(|bit| 1 << bit).chain([0, Tick::MAX - 1, Tick::MAX]).collect::<Vec<Tick>>();
        for key in rig.set_all(&far) {
            assert!(rig.scheduler.cancel(key).is_some());
        }
        assert_eq!(rig.at(Tick::MAX), []);
        assert_eq!(rig.advancer.next_expiration(), None);
    }
}

/// The same with all timers pending: one jump to the last tick fires all, in order. Promise 4.
#[test]
fn all_timers_fire_by_the_end_of_time() {
    for size in WHEEL_SIZES {
        let mut rig = Rig::new(size, 0);
        let far = (0..64).map(|bit| 1 << bit).chain([Tick::MAX - 1, Tick::MAX]).collect::<Vec<Tick>>();
        rig.set_all(&far);
        assert_eq!(rig.at(Tick::MAX), far);
        rig.set_all(&[0, 17, Tick::MAX]);
        assert_eq!(rig.at(Tick::MAX).len(), 3, "at the end of time everything is due");
    }
}

/// Schedules within `window`, and checks that the timer does not fire at the tick before, fires at
/// the last tick at the latest, or at once if that has passed, and has a deadline within the window.
fn fires_within(wheel_size: usize, start: Tick, window: &RangeInclusive<Tick>) {
    let (scheduler, mut advancer) = shard(&config(wheel_size, start));
    scheduler.schedule_within(window.clone(), "windowed").expect("the shard is open, the window not empty");
    if *window.start() > start {
        assert_eq!(drain(&mut advancer, window.start() - 1), [], "{window:?}");
    }
    let fired = drain(&mut advancer, *window.end());
    assert!(
        matches!(&fired[..], [(deadline, "windowed")] if window.contains(deadline)),
        "{window:?}: {fired:?}"
    );
}

/// A timer that may fire anywhere in a window fires within it; if the window has begun too, and at
/// once if it has passed. Promises 1 and 4.
#[test]
fn a_windowed_timer_fires_within_its_window() {
    let ahead = [281..=290, 1_023..=1_279, 1_025..=1_280, 5..=5, 1..=Tick::MAX, Tick::MAX..=Tick::MAX];
    let begun = [0..=120, 100..=100, 100..=101, 50..=100, 0..=99, 0..=0];
    for size in WHEEL_SIZES {
        ahead.iter().for_each(|window| fires_within(size, 0, window));
        begun.iter().for_each(|window| fires_within(size, 100, window));
    }
}

/// A cancel before the timer fires returns the payload at once: the shard keeps no share of it until
/// the deadline. A second cancel returns nothing, nor does one from the loop that has just taken the
/// timer. Promises 2 and 5.
#[test]
fn cancel_returns_the_payload_once() {
    let (scheduler, mut advancer) = shard(&config(16, 0));
    let payload = Arc::new("held");
    for deadline in [1, 20, 5_000, Tick::MAX] {
        let key = scheduler.schedule(deadline, Arc::clone(&payload)).expect("the shard is open");
        drop(scheduler.cancel(key).expect("the timer is pending"));
        assert_eq!(Arc::strong_count(&payload), 1, "cancelled, {deadline} not yet reached");
        assert_eq!((scheduler.cancel(key), scheduler.reschedule(key, deadline)), (None, None));
    }
    for deadline in [3, 3, 4] {
        scheduler.schedule(deadline, Arc::clone(&payload)).expect("the shard is open");
    }
    for fired in advancer.advance(4) {
        assert_eq!((scheduler.cancel(fired.key), scheduler.reschedule(fired.key, 9)), (None, None));
    }
    assert_eq!(drain(&mut advancer, Tick::MAX), []);
}
