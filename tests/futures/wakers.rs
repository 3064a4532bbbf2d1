//! The wakers of a sleep: the last waker is woken once, no waker is kept, and a panicking waker
//! affects no other.

use std::sync::{Arc, Mutex};
use std::task::Context;
use std::time::Duration;

use shardwheel::{CallbackPanic, Timer, global};

use crate::support::{
    Acts, Bell, HOUR, by_hand, drop_panics, is_balanced, is_pending, manual, ms, panics, poll, ready,
    survives, threads, while_unwinding,
};

/// A waker that another replaces is dropped and not woken; only the last waker is woken. Promises 2
/// and 5.
#[test]
fn only_the_last_waker_is_woken() {
    let (timer, clock) = manual();
    let bells: Vec<_> = (0..10).map(|_| Bell::new()).collect();
    let mut sleep = timer.sleep(ms(10));
    for (bell, waker) in &bells {
        is_pending(&mut sleep, waker);
        assert_eq!(Arc::strong_count(bell), 3, "the test's two, and the timer's");
        assert_eq!(timer.stats().pending, 1);
    }
    let (last, replaced) = bells.split_last().expect("there are ten");
    assert!(replaced.iter().all(|(bell, _)| Arc::strong_count(bell) == 2));
    clock.advance(ms(10));
    assert!(replaced.iter().all(|(bell, _)| bell.rings() == 0));
    assert_eq!((last.0.rings(), Arc::strong_count(&last.0)), (1, 2));
    assert_eq!(ready(&mut sleep), Ok(()));
    is_balanced(&timer);
}

/// A waker that panics is caught, counted and reported without a key; later wakers are woken.
/// Promise 7.
#[test]
fn a_panicking_waker_is_reported_and_later_ones_are_woken() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let entries = Arc::clone(&reports);
    let hook = move |panic: &CallbackPanic<'_>| {
        let message = panic.message().map(str::to_owned);
        entries.lock().expect("the hook does not panic").push((panic.key(), message));
    };
    let (timer, clock) = by_hand(Timer::builder().on_panic(hook));
    let (bell, waker) = Bell::new();
    let [mut before, mut panics, mut after] = [5, 5, 6].map(|delay| timer.sleep(ms(delay)));
    is_pending(&mut before, &waker);
    is_pending(&mut panics, &Acts::waker(|| panic!("a waker panics")));
    is_pending(&mut after, &waker);
    clock.advance(ms(6));
    assert_eq!((bell.rings(), timer.stats().panics), (2, 1));
    assert_eq!([ready(&mut before), ready(&mut panics), ready(&mut after)], [Ok(()); 3]);
    assert_eq!(
        *reports.lock().expect("the hook does not panic"),
        [(None, Some("a waker panics".to_owned()))]
    );
    is_balanced(&timer);
}

/// A waker's drop panics where a poll replaces it, or where its sleep is dropped: the caller gets the
/// panic, and the sleep goes on. Promises 1 and 7.
#[test]
fn a_panic_in_the_drop_of_a_waker_is_the_callers() {
    let ((timer, clock), panicking) = (manual(), drop_panics());
    let (bell, waker) = Bell::new();
    let mut sleep = timer.sleep(ms(5));
    is_pending(&mut sleep, &panicking);
    panics(|| assert!(poll(&mut sleep, &waker).is_pending()));
    is_pending(&mut sleep, &waker);
    assert_eq!(timer.stats().pending, 1);
    clock.advance(ms(5));
    assert_eq!((bell.rings(), ready(&mut sleep)), (1, Ok(())));

    let mut sleep = timer.sleep(ms(5));
    is_pending(&mut sleep, &panicking);
    panics(|| drop(sleep));
    assert_eq!((timer.stats().pending, timer.stats().panics), (0, 0));
    is_balanced(&timer);
}

/// Sleeps are polled and dropped many times: nothing is kept. Promise 5.
#[test]
fn dropped_sleeps_hold_no_memory() {
    let timer = threads(1);
    let (bell, waker) = Bell::new();
    for _ in 0..100_000 {
        is_pending(&mut timer.sleep(Duration::from_secs(300)), &waker);
    }
    assert_eq!((Arc::strong_count(&bell), timer.stats().pending), (2, 0));
    assert!(timer.stats().node_capacity <= 65_536, "{:?}", timer.stats());
    is_balanced(&timer);
}

/// Futures whose wakers' drops panic are dropped by an unwind: the process does not abort, and each
/// panic counts. Without an unwind the panic is the caller's. Promise 7.
#[test]
fn futures_whose_wakers_drops_panic_may_be_dropped_by_an_unwind() {
    survives(|| {
        let waker = drop_panics();
        let (timer, _clock) = manual();
        for on in [timer.clone(), Timer::global().clone()] {
            let before = on.stats().panics;
            while_unwinding(|| {
                let mut sleeps = [on.sleep(HOUR), on.sleep(2 * HOUR)];
                sleeps.iter_mut().for_each(|sleep| is_pending(sleep, &waker));
                let mut timeout = on.timeout(HOUR, std::future::pending::<()>());
                is_pending(&mut timeout, &waker);
                let mut interval = on.interval_at(on.now() + HOUR, HOUR);
                assert!(interval.poll_tick(&mut Context::from_waker(&waker)).is_pending());
            });
            assert_eq!(on.stats().panics - before, 4);
        }
        let before = Timer::global().stats().panics;
        while_unwinding(|| {
            let mut sleep = global::sleep(HOUR);
            is_pending(&mut sleep, &waker);
            let mut timeout = global::timeout(HOUR, std::future::pending::<()>());
            is_pending(&mut timeout, &waker);
            let mut interval = global::interval_at(Timer::global().now() + HOUR, HOUR);
            assert!(interval.poll_tick(&mut Context::from_waker(&waker)).is_pending());
        });
        assert_eq!(Timer::global().stats().panics - before, 3);
        let mut sleep = timer.sleep(HOUR);
        is_pending(&mut sleep, &waker);
        assert_eq!(panics(|| drop(sleep)), "a waker's drop panics");
        is_balanced(&timer);
    });
}
