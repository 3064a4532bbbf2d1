//! The end of a timer wakes its futures, and they return an error.

use std::future;
use std::sync::Arc;
use std::task::Waker;
use std::thread;

use shardwheel::{SleepError, TimeoutError, Timer};

use crate::support::{
    Acts, Bell, HOUR, after, by_hand, in_time, is_balanced, is_pending, manual, ms, poll, ready, threads,
};

/// Shutdown wakes each sleep once; the sleep then returns an error at every poll. Sleeps are not
/// among what `shutdown` returns. Promise 8.
#[test]
fn shutdown_wakes_each_sleep_once() {
    for timer in [manual().0, threads(2)] {
        let (bell, waker) = Bell::new();
        let mut sleeps: Vec<_> = (0..100).map(|_| timer.sleep(HOUR)).collect();
        sleeps.iter_mut().for_each(|sleep| is_pending(sleep, &waker));
        after(&timer, HOUR, || ());
        assert_eq!(timer.shutdown().len(), 1);
        assert_eq!((bell.rings(), Arc::strong_count(&bell)), (100, 2));
        for sleep in &mut sleeps {
            for _ in 0..2 {
                assert!(ready(sleep).expect_err("the timer is shut down").is_shut_down());
            }
        }
        assert_eq!((timer.stats().handed_back, timer.stats().pending), (101, 0));
        is_balanced(&timer);
    }
}

/// The same when the last handle is dropped. Promise 8.
#[test]
fn dropping_the_last_handle_wakes_each_sleep() {
    for timer in [manual().0, threads(2)] {
        let (bell, waker) = Bell::new();
        let mut sleep = timer.sleep(HOUR);
        is_pending(&mut sleep, &waker);
        drop(timer);
        assert_eq!(bell.rings(), 1);
        let error = ready(&mut sleep).expect_err("the timer is shut down");
        assert!(error.is_shut_down() && !error.is_full());
        sleep.reset(std::time::Instant::now() + HOUR);
        assert!(ready(&mut sleep).expect_err("the timer is still shut down").is_shut_down());
    }
}

/// A sleep that was over before the shutdown returns success, whether or not it was polled; a sleep
/// that is made after it is refused. Promises 1 and 8.
#[test]
fn a_sleep_that_was_over_before_shutdown_succeeds() {
    let (timer, clock) = manual();
    let [mut polled, mut unpolled, mut short, mut long] = [5, 5, 5, 50].map(|delay| timer.sleep(ms(delay)));
    is_pending(&mut polled, Waker::noop());
    is_pending(&mut short, Waker::noop());
    is_pending(&mut long, Waker::noop());
    clock.advance(ms(5));
    assert_eq!(ready(&mut short), Ok(()));
    assert!(timer.shutdown().is_empty());
    assert_eq!([ready(&mut polled), ready(&mut unpolled), ready(&mut short)], [Ok(()); 3]);
    assert!(ready(&mut long).is_err_and(|error| error.is_shut_down()));
    assert!(ready(&mut timer.sleep(ms(5))).is_err_and(|error| error.is_shut_down()));
    assert!(ready(&mut timer.timeout(ms(5), future::pending::<()>())).is_err());
    is_balanced(&timer);
}

/// After the shutdown a sleep is dropped, reset, or polled with another waker. Promises 7 and 8.
#[test]
fn a_sleep_may_be_dropped_reset_or_polled_after_shutdown() {
    let (timer, _clock) = manual();
    let [mut dropped, mut reset, mut polled] = [(); 3].map(|()| timer.sleep(HOUR));
    let (bell, waker) = Bell::new();
    for sleep in [&mut dropped, &mut reset, &mut polled] {
        is_pending(sleep, &waker);
    }
    drop(timer.shutdown());
    drop(dropped);
    reset.reset(timer.now() + ms(1));
    assert!(ready(&mut reset).is_err_and(|error| error.is_shut_down()));
    let (other, another) = Bell::new();
    assert!(poll(&mut polled, &another).is_ready());
    assert_eq!((bell.rings(), other.rings(), Arc::strong_count(&other)), (3, 0, 2));
    is_balanced(&timer);
}

/// Threads make, poll, reset and drop sleeps while the timer is shut down: each sleep ends. Promise
/// 8.
#[test]
fn each_sleep_ends_when_shutdown_races_its_users() {
    for round in 0..10 {
        in_time(move || {
            let timer = threads(2);
            let spin = |timer: Timer| -> Result<(), SleepError> {
                for i in 0.. {
                    let mut sleep = timer.sleep(ms(i % 3));
                    if i % 5 == 0 {
                        let _ = poll(&mut sleep, Waker::noop());
                        sleep.reset(timer.now() + ms(i % 7));
                    }
                    futures_lite::future::block_on(sleep)?;
                    futures_lite::future::block_on(async { timer.timeout(ms(0), timer.sleep(HOUR)).await })
                        .or_else(|error| match error {
                            TimeoutError::Sleep(error) => Err(error),
                            _ => Ok(Ok(())),
                        })??;
                }
                Ok(())
            };
            let threads: Vec<_> =
                (0..3).map(|_| timer.clone()).map(|timer| thread::spawn(move || spin(timer))).collect();
            thread::sleep(ms(5 + round));
            assert!(timer.shutdown().is_empty());
            for thread in threads {
                assert!(
                    thread
                        .join()
                        .expect("the thread does not panic")
                        .is_err_and(|error| error.is_shut_down())
                );
            }
            assert_eq!(timer.stats().pending, 0);
            is_balanced(&timer);
        });
    }
}

/// A waker that panics when shutdown wakes it is caught and counted: the others are woken, and what
/// has not fired comes back. Promises 7 and 8.
#[test]
fn a_waker_that_panics_at_shutdown_is_counted() {
    let (timer, _clock) = by_hand(Timer::builder().shards(2));
    let (bell, waker) = Bell::new();
    let mut sleeps: Vec<_> = (0..10).map(|_| timer.sleep(HOUR)).collect();
    for (i, sleep) in sleeps.iter_mut().enumerate() {
        let panics = Acts::waker(|| panic!("a waker panics"));
        is_pending(sleep, if i % 2 == 0 { &panics } else { &waker });
    }
    after(&timer, HOUR, || ());
    assert_eq!(timer.shutdown().len(), 1);
    assert_eq!((bell.rings(), timer.stats().panics), (5, 5));
    assert!(sleeps.iter_mut().all(|sleep| ready(sleep).is_err()));
    is_balanced(&timer);
}
