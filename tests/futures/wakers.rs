//! The wakers of a sleep: the last waker is woken once, no waker is kept, and a panicking waker
//! affects no other.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use shardwheel::{CallbackPanic, Timer, global};

use crate::support::{
    Acts, Bell, Built, HOUR, by_hand, drop_panics, is_balanced, is_pending, manual, ms, panics, poll, ready,
    survives, threads, until, while_unwinding,
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

/// The deadline stays the same when the waker is replaced, and is that of the reset after a reset.
/// Promise 1.
#[test]
fn a_replaced_waker_keeps_the_deadline() {
    let (timer, clock) = manual();
    let (first, second) = (Bell::new(), Bell::new());
    let (mut sleep, start) = (timer.sleep(ms(10)), timer.now());
    is_pending(&mut sleep, &first.1);
    clock.advance(ms(5));
    sleep.reset(start + ms(20));
    is_pending(&mut sleep, &second.1);
    clock.advance(ms(14));
    is_pending(&mut sleep, &second.1);
    clock.advance(ms(1));
    assert_eq!((first.0.rings(), second.0.rings()), (0, 1));
    assert_eq!(ready(&mut sleep), Ok(()));
}

/// The waker is replaced while the sleep fires, in real time: the old waker is woken and the poll
/// is ready, or the new waker is woken. Promise 2.
#[test]
fn a_waker_replaced_while_the_sleep_fires_is_not_lost() {
    let timer = Timer::builder().tick(Duration::from_micros(100)).shards(1).built();
    for _ in 0..200 {
        let mut sleep = timer.sleep(Duration::from_micros(500));
        let (mut bells, mut polls) = (Vec::new(), 0);
        loop {
            let (bell, waker) = Bell::new();
            polls += 1;
            match poll(&mut sleep, &waker) {
                Poll::Ready(ended) => break ended.expect("the timer is open"),
                Poll::Pending => bells.push(bell),
            }
        }
        let rings: usize = bells.iter().map(|bell| bell.rings()).sum();
        assert!(rings <= 1 && bells.len() + 1 == polls);
        until("no waker is kept", || bells.iter().all(|bell| Arc::strong_count(bell) == 1));
    }
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

/// Panics when its last handle is dropped.
struct PanicsInDrop;

impl Wake for PanicsInDrop {
    fn wake(self: Arc<Self>) {}
}

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("a drop panics");
    }
}

/// A poll replaces a waker whose drop panics: the caller of the poll gets the panic, the sleep goes
/// on, and it is not over early. Promises 1 and 7.
#[test]
fn a_panic_in_the_drop_of_a_replaced_waker_is_the_callers() {
    let (timer, clock) = manual();
    let (bell, waker) = Bell::new();
    let mut sleep = timer.sleep(ms(5));
    is_pending(&mut sleep, &Waker::from(Arc::new(PanicsInDrop)));
    panics(|| assert!(poll(&mut sleep, &waker).is_pending()));
    is_pending(&mut sleep, &waker);
    assert_eq!(timer.stats().pending, 1);
    clock.advance(ms(5));
    assert_eq!((bell.rings(), ready(&mut sleep)), (1, Ok(())));
    is_balanced(&timer);
}

/// A waker's drop panics when its sleep is dropped, or after it was woken. Promise 7.
#[test]
fn a_panic_in_the_drop_of_a_waker_is_the_callers_or_counted() {
    let (timer, clock) = manual();
    let mut sleep = timer.sleep(ms(5));
    is_pending(&mut sleep, &Waker::from(Arc::new(PanicsInDrop)));
    panics(|| drop(sleep));
    let stats = timer.stats();
    assert_eq!((stats.pending, stats.cancelled, stats.panics), (0, 1, 0));

    let mut sleep = timer.sleep(ms(5));
    is_pending(&mut sleep, &Waker::from(Arc::new(PanicsInDrop)));
    clock.advance(ms(5));
    assert_eq!((timer.stats().panics, ready(&mut sleep)), (1, Ok(())));
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
