//! When the loop's waker is woken.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use shardwheel::DelayQueue;

use crate::by_hand;
use crate::support::{Acts, Bell, HOUR, To, hooked, in_time};

#[test]
fn an_earlier_timer_wakes_a_later_one_does_not() {
    let (_, timer, mut driver) = by_hand();
    let (wakes, waker) = Bell::new();
    driver.register_waker(&waker);
    timer.schedule_after(HOUR, || ()).unwrap();
    let before = driver.next_deadline().unwrap();
    let woken = wakes.rings();
    thread::scope(|scope| drop(scope.spawn(|| timer.schedule_after(2 * HOUR, || ()).unwrap())));
    assert_eq!(wakes.rings(), woken);
    thread::scope(|scope| drop(scope.spawn(|| timer.schedule_after(HOUR / 2, || ()).unwrap())));
    assert_eq!(wakes.rings(), woken + 1);
    assert!(driver.next_deadline().unwrap() < before);
    // One registration serves for the loop's whole life.
    for round in 2..=12 {
        timer.schedule_after(HOUR / (1 << round), || ()).unwrap();
        assert_eq!(wakes.rings(), woken + round);
        driver.next_deadline();
    }
}

/// A timer that comes after `next_deadline`, but before there is a waker.
#[test]
fn a_waker_that_comes_late_is_woken_at_once() {
    let (_, timer, mut driver) = by_hand();
    assert_eq!(driver.next_deadline(), None);
    timer.schedule_after(HOUR, || ()).unwrap();
    let (wakes, waker) = Bell::new();
    driver.register_waker(&waker);
    assert_eq!(wakes.rings(), 1);
}

#[test]
fn the_last_waker_counts() {
    let (_, timer, mut driver) = by_hand();
    let [(first, one), (second, other)] = [Bell::new(), Bell::new()];
    driver.register_waker(&one);
    driver.register_waker(&other);
    driver.next_deadline();
    timer.schedule_after(HOUR, || ()).unwrap();
    assert_eq!((first.rings(), second.rings()), (0, 1));
}

/// The panic counts, and harms no producer; another waker may schedule. Promise 7.
#[test]
fn a_waker_may_panic_or_schedule() {
    let (clock, timer, mut driver) = by_hand();
    let inner = timer.clone();
    let schedules = Acts::waker(move || _ = inner.schedule_after(Duration::from_millis(1), || ()).unwrap());
    let panics = hooked(|to| assert!(to != To::Wake, "a waker that panics"));
    for (waker, fired, panics) in [(panics, 1, 1), (schedules, 2, 1)] {
        driver.register_waker(&waker);
        driver.next_deadline();
        timer.schedule_after(Duration::from_millis(2), || ()).unwrap();
        assert_eq!(timer.stats().panics, panics);
        driver.register_waker(Waker::noop());
        clock.advance(Duration::from_millis(2));
        assert_eq!(driver.turn(), fired);
    }
}

/// A reset moves a value and wakes the loop, whose waker uses the queue: also the values that were
/// moved. Promise 7.
#[test]
fn a_waker_may_use_the_queue_whose_reset_wakes_it() {
    in_time(|| {
        let (_clock, timer, mut driver) = by_hand();
        let queue = Arc::new(DelayQueue::new(&timer));
        let [first, second] = [1, 2].map(|value| queue.insert(value, HOUR).unwrap());
        assert!(queue.reset(&second, HOUR / 2));
        let (inner, removed) = (Arc::clone(&queue), Arc::new(AtomicBool::new(false)));
        let has_removed = Arc::clone(&removed);
        let removes = move || has_removed.store(inner.remove(&second) == Some(2), Ordering::SeqCst);
        driver.register_waker(&Acts::waker(removes));
        driver.next_deadline();
        assert!(queue.reset(&first, Duration::from_millis(5)));
        assert!(removed.load(Ordering::SeqCst) && queue.len() == 1);
    });
}

/// A panic in the clone or in the drop of a waker leaves the driver able to wake. That
/// in the drop counts. Promise 7.
#[test]
fn a_waker_that_panics_otherwise_leaves_the_driver_able_to_wake() {
    for panics_in in [To::Clone, To::Drop] {
        let (_, timer, mut driver) = by_hand();
        let armed = Arc::new(AtomicBool::new(false));
        let arms = Arc::clone(&armed);
        let panics = hooked(move |to| {
            assert!(to != panics_in || !arms.load(Ordering::SeqCst), "the waker panics");
        });
        let (wakes, waker) = Bell::new();
        armed.store(panics_in == To::Clone, Ordering::SeqCst);
        let registered = catch_unwind(AssertUnwindSafe(|| driver.register_waker(&panics)));
        assert_eq!(registered.is_err(), panics_in == To::Clone);
        armed.store(panics_in == To::Drop, Ordering::SeqCst);
        driver.register_waker(&waker);
        armed.store(false, Ordering::SeqCst);
        driver.next_deadline();
        timer.schedule_after(HOUR, || ()).unwrap();
        assert_eq!(wakes.rings(), 1);
        assert_eq!(timer.stats().panics, u64::from(panics_in == To::Drop));
    }
}
