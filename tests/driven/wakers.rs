//! When the loop's waker is woken.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use shardwheel::{DelayQueue, QueueKey, Timer};

use crate::by_hand;
use crate::support::{Bell, HOUR, To, hooked, in_time};

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
}

/// One registration serves for the loop's whole life.
#[test]
fn it_is_registered_once() {
    let (_, timer, mut driver) = by_hand();
    let (wakes, waker) = Bell::new();
    driver.register_waker(&waker);
    for round in 1..=12 {
        driver.next_deadline();
        timer.schedule_after(HOUR / (1 << round), || ()).unwrap();
        assert_eq!(wakes.rings(), round);
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

/// Panics when it is woken.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker that panics");
    }
}

/// The panic counts. Promise 7.
#[test]
fn a_waker_that_panics_harms_no_producer() {
    let (clock, timer, mut driver) = by_hand();
    driver.register_waker(&Waker::from(Arc::new(Panics)));
    driver.next_deadline();
    timer.schedule_after(Duration::from_millis(1), || ()).unwrap();
    assert_eq!(timer.stats().panics, 1);
    clock.advance(Duration::from_millis(1));
    assert_eq!(driver.turn(), 1);
}

/// Schedules when it is woken.
struct Schedules(Timer);

impl Wake for Schedules {
    fn wake(self: Arc<Self>) {
        self.0.schedule_after(Duration::from_millis(1), || ()).unwrap();
    }
}

#[test]
fn a_waker_may_schedule() {
    let (clock, timer, mut driver) = by_hand();
    driver.register_waker(&Waker::from(Arc::new(Schedules(timer.clone()))));
    driver.next_deadline();
    timer.schedule_after(Duration::from_millis(2), || ()).unwrap();
    clock.advance(Duration::from_millis(2));
    assert_eq!(driver.turn(), 2);
}

/// Removes a value from a queue when it is woken.
struct Removes(OnceLock<(Arc<DelayQueue<u32>>, QueueKey)>, AtomicBool);

impl Wake for Removes {
    fn wake(self: Arc<Self>) {
        let (queue, key) = self.0.get().expect("it is set before the wake");
        self.1.store(queue.remove(key) == Some(2), Ordering::SeqCst);
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
        let removes = Arc::new(Removes(OnceLock::new(), AtomicBool::new(false)));
        assert!(removes.0.set((Arc::clone(&queue), second)).is_ok());
        driver.register_waker(&Waker::from(Arc::clone(&removes)));
        driver.next_deadline();
        assert!(queue.reset(&first, Duration::from_millis(5)));
        assert!(removes.1.load(Ordering::SeqCst) && queue.len() == 1);
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
