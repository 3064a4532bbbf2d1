//! The stream and its consumer's waker.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, RawWaker, RawWakerVTable, Waker};

use shardwheel::DelayQueue;

use crate::poll_stream as poll;
use crate::support::{Acts, Bell, Count, HOUR, To, drop_panics, hooked, is_balanced, manual, ms};

/// The stream waits, also while the queue is empty, and the consumer is woken when a value expires.
#[test]
fn the_consumer_is_woken_when_a_value_expires() {
    let (timer, clock) = manual();
    let queue = DelayQueue::new(&timer);
    let (bell, waker) = Bell::new();
    assert!(poll(&queue, &waker).is_pending());
    queue.insert(1, ms(5)).expect("it is open");
    queue.insert(2, ms(5)).expect("it is open");
    assert!(poll(&queue, &waker).is_pending());
    clock.advance(ms(4));
    assert_eq!(bell.rings(), 0);
    clock.advance(ms(1));
    assert_eq!(bell.rings(), 1);
    for value in 1..=2 {
        assert!(matches!(poll(&queue, &waker), Poll::Ready(Some(out)) if out.value == value));
    }
    assert!(poll(&queue, &waker).is_pending());
    drop(queue);
    clock.advance(HOUR);
    drop(waker);
    assert_eq!((bell.rings(), Arc::strong_count(&bell)), (1, 1));
    is_balanced(&timer);
}

/// All tasks that wait are woken, each once. Of wakers that panic, each panic counts, and the value is
/// there. A waker may use the queue. Promise 7.
#[test]
fn all_wakers_are_woken() {
    let (timer, clock) = manual();
    let queue = Arc::new(DelayQueue::new(&timer));
    let ((first, one), (second, other)) = (Bell::new(), Bell::new());
    let panics = || hooked(|to| assert!(to != To::Wake, "the waker panics"));
    let (inner, took) = (Arc::clone(&queue), Count::default());
    let taken = took.clone();
    let acts = Acts::waker(move || {
        assert!(inner.try_recv().is_some_and(|out| out.value == 1));
        inner.insert(3, ms(5)).expect("it is open");
        taken.one();
    });
    queue.insert(1, ms(5)).expect("it is open");
    queue.insert(2, ms(5)).expect("it is open");
    for waker in [&panics(), &one, &acts, &panics(), &one, &other] {
        assert!(poll(&*queue, waker).is_pending());
    }
    clock.advance(ms(5));
    assert_eq!((first.rings(), second.rings(), took.get(), timer.stats().panics), (1, 1, 1, 2));
    clock.advance(ms(5));
    assert_eq!([(); 2].map(|()| queue.try_recv().map(|out| out.value)), [Some(2), Some(3)]);
    is_balanced(&timer);
}

/// A panic in the clone of a waker, or in the drop of the former one, leaves the queue able to wake.
/// Promise 7.
#[test]
fn a_waker_may_panic_when_it_is_cloned_or_dropped() {
    for panics_in in [To::Clone, To::Drop] {
        let (timer, clock) = manual();
        let queue = DelayQueue::new(&timer);
        queue.insert((), ms(5)).expect("it is open");
        let armed = Arc::new(AtomicBool::new(panics_in == To::Clone));
        let arms = Arc::clone(&armed);
        let panics = hooked(move |to| {
            assert!(to != panics_in || !arms.load(Ordering::SeqCst), "the waker panics");
        });
        let polled = catch_unwind(AssertUnwindSafe(|| poll(&queue, &panics).is_pending()));
        assert_eq!(polled.is_err(), panics_in == To::Clone);
        let (bell, waker) = Bell::new();
        armed.store(panics_in == To::Drop, Ordering::SeqCst);
        assert!(poll(&queue, &waker).is_pending());
        armed.store(false, Ordering::SeqCst);
        clock.advance(ms(5));
        assert_eq!(bell.rings(), 1);
    }
}

/// A panic in the drop of a waker counts, where another poll replaces it and where the queue is
/// dropped. Promise 7.
#[test]
fn a_waker_that_panics_in_its_drop_counts() {
    let (timer, _clock) = manual();
    let queue = DelayQueue::new(&timer);
    let panics = drop_panics();
    for replaced in 0..3 {
        assert!(poll::<()>(&queue, &panics).is_pending());
        assert_eq!(timer.stats().panics, replaced);
    }
    drop(queue);
    assert_eq!(timer.stats().panics, 3);
}

/// The waker of a poll may lie on the poll's stack, where the next task's lies later; its clone lies
/// elsewhere. Each task that waits is woken.
#[test]
fn tasks_whose_wakers_lie_at_one_place_are_all_woken() {
    static BORROWED: RawWakerVTable = RawWakerVTable::new(clone, |_| (), |_| (), |_| ());
    fn clone(place: *const ()) -> RawWaker {
        // SAFETY: the place holds a bell while a waker points to it.
        let bell = Arc::clone(unsafe { &*place.cast::<Arc<Bell>>() });
        let waker = std::mem::ManuallyDrop::new(Waker::from(bell));
        RawWaker::new(waker.data(), waker.vtable())
    }
    let (timer, clock) = manual();
    let queue = DelayQueue::new(&timer);
    let bells = [(); 3].map(|()| Bell::new().0);
    let mut place = Arc::clone(&bells[0]);
    for bell in &bells {
        place.clone_from(bell);
        let place: *const Arc<Bell> = &raw const place;
        // SAFETY: the functions keep the contract of a waker, and the bell outlives this one.
        let waker = unsafe { Waker::from_raw(RawWaker::new(place.cast(), &BORROWED)) };
        assert!(poll(&queue, &waker).is_pending());
    }
    queue.insert(1, ms(5)).expect("it is open");
    clock.advance(ms(5));
    assert!(bells.iter().all(|bell| bell.has_rung()));
}
