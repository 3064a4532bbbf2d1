//! A sleep polled by hand: when it is ready, is reset, and is dropped.

use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use shardwheel::Timer;

use crate::support::{
    Bell, Built, HOUR, by_hand, in_time, is_balanced, is_pending, manual, ms, poll, ready, secs, threads,
    until,
};

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

/// A sleep that begins within a tick rounds up. Promise 1.
#[test]
fn a_sleep_from_within_a_tick_rounds_up() {
    let (timer, clock) = manual();
    clock.advance(Duration::from_nanos(1));
    let mut sleep = timer.sleep(ms(5));
    is_pending(&mut sleep, Waker::noop());
    clock.advance(ms(5));
    is_pending(&mut sleep, Waker::noop());
    clock.advance(ms(1));
    assert_eq!(ready(&mut sleep), Ok(()));
}

/// A sleep whose deadline has passed at its first poll is ready at that poll, although the shard has
/// not moved, and needs no timer. Promise 1.
#[test]
fn a_sleep_polled_after_its_deadline_is_ready_at_once() {
    let (timer, clock) = manual();
    for begin in [ms(0), Duration::from_nanos(1), ms(1), ms(300)] {
        let mut sleep = timer.sleep(begin);
        clock.advance(begin);
        assert_eq!(ready(&mut sleep), Ok(()));
    }
    for past in [timer.now(), timer.now().checked_sub(ms(100)).unwrap_or(timer.now())] {
        assert_eq!(ready(&mut timer.sleep_until(past)), Ok(()));
    }
    assert_eq!(timer.stats().scheduled, 0);
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

/// Once `is_elapsed` is true it stays true: before the first poll, after it, and after a reset to
/// the past. Promise 1.
#[test]
fn is_elapsed_never_goes_back_to_false() {
    let (timer, clock) = manual();
    let mut sleep = timer.sleep(ms(5));
    assert!(!sleep.is_elapsed());
    clock.advance(ms(10));
    assert!(sleep.is_elapsed());
    assert_eq!(ready(&mut sleep), Ok(()));
    assert!(sleep.is_elapsed());
    sleep.reset(timer.now() + HOUR);
    assert!(!sleep.is_elapsed());
    is_pending(&mut sleep, Waker::noop());
    sleep.reset(timer.now());
    assert!(sleep.is_elapsed());
    assert_eq!(ready(&mut sleep), Ok(()));
    assert!(sleep.is_elapsed());
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

/// Spurious polls change nothing: the sleep is scheduled once. Promise 2.
#[test]
fn spurious_polls_schedule_once() {
    let (timer, clock) = manual();
    let (bell, waker) = Bell::new();
    let mut sleep = timer.sleep(ms(10));
    for _ in 0..100 {
        is_pending(&mut sleep, &waker);
        is_pending(&mut sleep, &waker.clone());
    }
    let stats = timer.stats();
    assert_eq!((stats.scheduled, stats.pending, Arc::strong_count(&bell)), (1, 1, 3));
    clock.advance(ms(10));
    assert_eq!((bell.rings(), ready(&mut sleep)), (1, Ok(())));
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

/// A sleep that was never polled is unknown to the timer; a sleep that is dropped after it was
/// ready is not cancelled. Promise 2.
#[test]
fn a_sleep_dropped_unpolled_or_ready_is_not_cancelled() {
    let (timer, clock) = manual();
    drop(timer.sleep(HOUR));
    assert_eq!(timer.stats().scheduled, 0);
    let (bell, waker) = Bell::new();
    let mut sleep = timer.sleep(ms(1));
    is_pending(&mut sleep, &waker);
    clock.advance(ms(1));
    drop((sleep, waker));
    assert_eq!((bell.rings(), Arc::strong_count(&bell)), (1, 1));
    let stats = timer.stats();
    assert_eq!((stats.fired, stats.cancelled, stats.pending), (1, 0, 0));
    is_balanced(&timer);
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
    is_balanced(&timer);
}

/// A sleep that is reset before its first poll goes by the new deadline. Promise 1.
#[test]
fn a_reset_before_the_first_poll_sets_the_deadline() {
    let (timer, clock) = manual();
    let mut sleep = timer.sleep(HOUR);
    sleep.reset(timer.now() + ms(5));
    is_pending(&mut sleep, Waker::noop());
    clock.advance(ms(5));
    assert_eq!(ready(&mut sleep), Ok(()));
    assert_eq!(timer.stats().extended, 0);
}

/// A sleep that is reset after it was ready waits again, any number of times; likewise if it had
/// fired and was not polled. Promises 1 and 2.
#[test]
fn a_reset_after_it_was_ready_waits_again() {
    let (timer, clock) = manual();
    let (bell, waker) = Bell::new();
    let mut sleep = timer.sleep(ms(5));
    for round in 1..=10 {
        is_pending(&mut sleep, &waker);
        clock.advance(ms(5));
        assert_eq!(bell.rings(), round);
        if round % 2 == 0 {
            assert_eq!(ready(&mut sleep), Ok(()));
        }
        sleep.reset(timer.now() + ms(5));
        assert!(!sleep.is_elapsed());
    }
    is_balanced(&timer);
}

/// A sleep that is reset to the past is ready at the next poll, whichever task polls it; its timer
/// is cancelled there. Promise 4.
#[test]
fn a_reset_to_the_past_is_ready_at_the_next_poll() {
    let (timer, clock) = manual();
    clock.advance(ms(100));
    let past = timer.now().checked_sub(ms(50)).unwrap_or(timer.now());
    for deadline in [past, timer.now()] {
        let (bell, waker) = Bell::new();
        let mut sleep = timer.sleep(HOUR);
        is_pending(&mut sleep, &waker);
        sleep.reset(deadline);
        assert_eq!(ready(&mut sleep), Ok(()));
        drop(waker);
        assert_eq!((Arc::strong_count(&bell), timer.stats().pending), (1, 0));
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

/// A sleep is reset while it fires, in real time: it had fired, or is woken for the new deadline,
/// and is never ready before that. Promises 1 and 2.
#[test]
fn a_sleep_reset_while_it_fires_keeps_the_new_deadline() {
    let timer = Timer::builder().tick(Duration::from_micros(100)).shards(1).built();
    in_time(move || {
        let mut sleep = timer.sleep(ms(1));
        for round in 0..300 {
            let (bell, waker) = Bell::new();
            let _ = poll(&mut sleep, &waker);
            let fires = Instant::now() + Duration::from_micros(900 + 2 * round);
            while Instant::now() < fires {
                std::hint::spin_loop();
            }
            let deadline = Instant::now() + Duration::from_micros(1500);
            sleep.reset(deadline);
            let mut seen = bell.rings();
            while poll(&mut sleep, &waker).is_pending() {
                until("the waker is woken", || {
                    bell.rings() > seen || Instant::now() > deadline && sleep.is_elapsed()
                });
                seen = bell.rings();
            }
            assert!(Instant::now() >= deadline, "early in round {round}");
            sleep.reset(Instant::now() + ms(1));
        }
        drop(sleep);
        assert_eq!(timer.stats().pending, 0);
        is_balanced(&timer);
    });
}

/// A sleep is dropped while it fires, in real time: the waker is woken or not, and is dropped.
/// Promises 2 and 5.
#[test]
fn a_sleep_dropped_while_it_fires_drops_its_waker() {
    let timer = Timer::builder().tick(Duration::from_micros(100)).shards(1).built();
    let mut woken = 0;
    for round in 0..300 {
        let (bell, waker) = Bell::new();
        let mut sleep = timer.sleep(Duration::from_micros(300));
        let _ = poll(&mut sleep, &waker);
        let fires = Instant::now() + Duration::from_micros(200 + 2 * round);
        while Instant::now() < fires {
            std::hint::spin_loop();
        }
        drop((sleep, waker));
        until("the waker is dropped", || Arc::strong_count(&bell) == 1);
        woken += bell.rings() as u64;
    }
    until("no timer is pending", || timer.stats().pending == 0);
    let stats = timer.stats();
    assert_eq!(stats.fired, woken);
    is_balanced(&timer);
}

/// A full timer gives an error at the poll; when there is room, a reset lets the sleep try again.
/// Promises 5 and 8.
#[test]
fn a_refused_sleep_tries_again_after_a_reset() {
    let (timer, clock) = by_hand(Timer::builder().max_pending(1));
    let (mut first, mut second) = (timer.sleep(ms(10)), timer.sleep(ms(20)));
    is_pending(&mut first, Waker::noop());
    for _ in 0..2 {
        let error = ready(&mut second).expect_err("no room for two");
        assert!(error.is_full() && !error.is_shut_down());
        assert!(error.to_string().contains('1'), "{error}");
    }
    clock.advance(ms(10));
    assert_eq!(ready(&mut first), Ok(()));
    second.reset(timer.now() + ms(5));
    is_pending(&mut second, Waker::noop());
    clock.advance(ms(5));
    assert_eq!(ready(&mut second), Ok(()));
    is_balanced(&timer);
}
