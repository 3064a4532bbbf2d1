//! When overflow wheels are given back, on one thread.

use super::*;
use crate::shard::Scheduler;
use crate::shard::support::small;

/// Ticks from the clock to a deadline in the finest wheel that is given back, with wheels of 4
/// buckets.
const FAR: Tick = 40;

/// Schedules a timer that is so far ahead that it is in a coarse wheel, and lets it fire.
fn use_coarse_wheel(scheduler: &Scheduler<u32>, advancer: &mut Advancer<u32>) {
    scheduler.schedule(advancer.now + FAR, 0).expect("open");
    let deadline = advancer.now + FAR;
    assert_eq!(advancer.advance(deadline).count(), 1);
}

/// Makes the advancer look for idle wheels that many times in turn.
fn look(advancer: &mut Advancer<u32>, times: u32) {
    for _ in 0..times {
        let next = advancer.idle.next_look;
        drop(advancer.advance(next - 1));
        assert_eq!(advancer.idle.next_look, next, "it is not yet time to");
        drop(advancer.advance(next));
        assert_eq!(advancer.idle.next_look, next + LOOK_EVERY);
    }
}

#[test]
fn a_coarse_wheel_goes_after_it_was_found_idle_again_and_again() {
    let (scheduler, mut advancer) = small();
    assert_eq!(scheduler.stats().wheels, 1);
    use_coarse_wheel(&scheduler, &mut advancer);
    assert!(scheduler.stats().wheels == 2 && advancer.wheel(FIRST_TO_GO).is_some());
    look(&mut advancer, LOOKS - 1);
    assert!(scheduler.stats().wheels == 2 && !advancer.needs_maintenance());
    look(&mut advancer, 1);
    assert!(scheduler.stats().wheels == 1 && advancer.needs_maintenance());
    // It waits for readers, and is then freed.
    let mut calls = 0;
    while advancer.needs_maintenance() {
        advancer.maintain();
        calls += 1;
        assert!((1..100).contains(&calls));
    }
}

#[test]
fn a_wheel_that_is_used_between_stays() {
    let (scheduler, mut advancer) = small();
    for _ in 0..2 {
        use_coarse_wheel(&scheduler, &mut advancer);
        look(&mut advancer, LOOKS - 1);
    }
    assert_eq!(scheduler.stats().wheels, 2);
}

#[test]
fn the_finest_overflow_wheel_stays() {
    let (scheduler, mut advancer) = small();
    let deadline = advancer.now + 6;
    scheduler.schedule(deadline, 0).expect("open");
    assert_eq!(scheduler.stats().wheels, 2);
    assert_eq!(advancer.advance(deadline).count(), 1);
    look(&mut advancer, 2 * LOOKS);
    assert_eq!(scheduler.stats().wheels, 2);
}

/// A wheel whose buckets span many ticks stays for the span of two of them, however often it was
/// found idle.
#[test]
fn a_very_coarse_wheel_stays_for_the_time_of_two_buckets() {
    let (scheduler, mut advancer) = small();
    let levels = advancer.shared.geometry.levels();
    let level = (0..levels)
        .find(|&level| advancer.shared.geometry.span(level) > 16 * LOOK_EVERY)
        .expect("there is one");
    let span = advancer.shared.geometry.span(level);
    let key = scheduler.schedule(2 * span, 0).expect("open");
    assert!(advancer.wheel(level).is_some() && scheduler.cancel(key).is_some());
    // The dead node is freed at the bucket's expiration.
    drop(advancer.advance(2 * span));
    let since = advancer.idle.levels[level].since;
    while advancer.now < since + 2 * span - LOOK_EVERY {
        look(&mut advancer, 1);
        assert!(advancer.wheel(level).is_some(), "at {}", advancer.now);
    }
    look(&mut advancer, 2);
    assert!(advancer.wheel(level).is_none());
}
