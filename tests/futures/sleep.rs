//! A sleep polled by hand: when it is ready, is reset, and is dropped.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use shardwheel::Timer;

use crate::support::{Bell, HOUR, by_hand, is_balanced, is_pending, manual, ms, ready, secs, threads};

/// A sleep is pending until its tick, is woken once there, and is then ready at every poll.
/// Promises 1 and 2.
#[test]
fn a_sleep_is_ready_at_its_tick() {
    let (timer, clock) = manual();
    let (bell, waker) = Bell::new();
    let mut sleep = timer.sleep(ms(20));
    assert_eq!((sleep.deadline(), sleep.is_elapsed()), (Some(timer.now() + ms(20)), false));
    is_pending(&mut sleep, &waker);
    clock.advance(ms(19));
    is_pending(&mut sleep, &waker);
    assert_eq!((bell.rings(), sleep.is_elapsed()), (0, false));
    clock.advance(ms(1));
    assert_eq!((bell.rings(), sleep.is_elapsed()), (1, true));
    for _ in 0..3 {
        assert_eq!(ready(&mut sleep), Ok(()));
    }
    clock.advance(HOUR);
    assert_eq!(bell.rings(), 1);
    is_balanced(&timer);
}

/// A sleep is not ready a nanosecond before its deadline, and at its deadline it is, within a tick.
/// Promise 1.
#[test]
fn the_first_poll_goes_by_the_nanosecond() {
    let (timer, clock) = manual();
    let length = Duration::from_nanos(500);
    let (mut early, mut exact) = (timer.sleep(length), timer.sleep(length));
    clock.advance(Duration::from_nanos(499));
    is_pending(&mut early, Waker::noop());
    clock.advance(Duration::from_nanos(1));
    assert_eq!(ready(&mut exact), Ok(()));
    // The timer decides for a sleep that waits: it fires at a tick.
    is_pending(&mut early, Waker::noop());
    clock.advance(ms(1));
    assert_eq!(ready(&mut early), Ok(()));
    is_balanced(&timer);
}

/// A tick is long, so the sleep's timer is pending although both deadlines have passed. Promise 1.
#[test]
fn a_reset_to_the_past_is_ready_before_the_tick_ends() {
    let (timer, clock) = by_hand(Timer::builder().tick(secs(1)));
    let start = timer.now();
    let mut sleeps = [400, 500, 800].map(|deadline| (timer.sleep_until(start + ms(500)), deadline));
    sleeps.iter_mut().for_each(|(sleep, _)| is_pending(sleep, Waker::noop()));
    clock.advance(ms(900));
    for (sleep, deadline) in &mut sleeps {
        sleep.reset(start + ms(*deadline));
        assert!(sleep.is_elapsed(), "{deadline} ms");
        assert_eq!(ready(sleep), Ok(()), "{deadline} ms");
    }
    is_balanced(&timer);
}

/// The longest sleep does not wrap, has no deadline that an `Instant` can represent, and can be
/// dropped. Promise 4.
#[test]
fn the_longest_sleep_does_not_wrap() {
    let (timer, clock) = manual();
    let mut sleep = timer.sleep(Duration::MAX);
    assert_eq!(sleep.deadline(), None);
    is_pending(&mut sleep, Waker::noop());
    clock.advance(400 * 365 * 24 * HOUR);
    is_pending(&mut sleep, Waker::noop());
    sleep.reset(timer.now() + ms(5));
    clock.advance(ms(5));
    assert_eq!(ready(&mut sleep), Ok(()));
    is_balanced(&timer);
}

/// A dropped sleep is cancelled: it is no longer pending, and its waker is dropped at once and
/// never woken. Promises 2 and 5.
#[test]
fn a_dropped_sleep_is_cancelled_and_its_waker_dropped() {
    for (timer, clock) in [(manual()), (threads(1), shardwheel::ManualClock::new())] {
        let (bell, waker) = Bell::new();
        let mut sleep = timer.sleep(HOUR);
        is_pending(&mut sleep, &waker);
        drop(waker);
        assert_eq!((timer.stats().pending, Arc::strong_count(&bell)), (1, 2));
        drop(sleep);
        assert_eq!((timer.stats().pending, Arc::strong_count(&bell)), (0, 1));
        clock.advance(2 * HOUR);
        assert_eq!((bell.rings(), timer.stats().cancelled), (0, 1));
        is_balanced(&timer);
    }
}

/// A reset to later or earlier needs no poll; the waker is woken once, at the last deadline.
/// Promises 1 and 2.
#[test]
fn a_reset_moves_the_deadline_either_way() {
    let (timer, clock) = manual();
    let (bell, waker) = Bell::new();
    let (mut sleep, start) = (timer.sleep(ms(50)), timer.now());
    is_pending(&mut sleep, &waker);
    for deadline in [100, 400, 70, 300, 20, 30].map(ms) {
        sleep.reset(start + deadline);
        assert_eq!((sleep.deadline(), timer.stats().pending), (Some(start + deadline), 1));
    }
    clock.advance(ms(29));
    is_pending(&mut sleep, &waker);
    assert_eq!(bell.rings(), 0);
    clock.advance(ms(1));
    assert_eq!((bell.rings(), ready(&mut sleep)), (1, Ok(())));
    clock.advance(HOUR);
    assert_eq!(bell.rings(), 1);
    // One that has fired and was not polled waits again.
    for round in 2..=3 {
        sleep.reset(timer.now() + ms(5));
        is_pending(&mut sleep, &waker);
        clock.advance(ms(5));
        assert_eq!(bell.rings(), round);
    }
    is_balanced(&timer);
}

/// A sleep that is reset to the past still wakes the task that polled it, by the next tick. It may
/// be reset to the future before that, or dropped. Promises 2 and 4.
#[test]
fn a_reset_to_the_past_wakes_the_task() {
    let (timer, clock) = manual();
    let ((bell, waker), (unwoken, other)) = (Bell::new(), Bell::new());
    let (mut sleep, mut again, mut dropped) = (timer.sleep(HOUR), timer.sleep(HOUR), timer.sleep(HOUR));
    is_pending(&mut sleep, &waker);
    is_pending(&mut again, &other);
    is_pending(&mut dropped, &other);
    for sleep in [&mut sleep, &mut again, &mut dropped] {
        sleep.reset(timer.now());
    }
    again.reset(timer.now() + ms(20));
    drop(dropped);
    is_pending(&mut again, &other);
    clock.advance(ms(1));
    assert_eq!((bell.rings(), unwoken.rings()), (1, 0));
    assert_eq!(ready(&mut sleep), Ok(()));
    clock.advance(ms(19));
    assert_eq!((bell.rings(), unwoken.rings(), ready(&mut again)), (1, 1, Ok(())));
    is_balanced(&timer);
}
