//! The end of a timer wakes its futures, and they return an error.

use std::sync::Arc;

use shardwheel::Timer;

use crate::support::{Acts, Bell, HOUR, after, by_hand, is_balanced, is_pending, manual, ready, threads};

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
