//! The stream and its consumer's waker.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use futures::executor::block_on;
use futures::stream::{Stream, StreamExt};
use shardwheel::DelayQueue;
use shardwheel::delay_queue::Expired;

use crate::support::{Acts, Bell, HOUR, To, drop_panics, hooked, is_balanced, manual, ms, threads};

fn poll<T: Send>(queue: &DelayQueue<T>, waker: &Waker) -> Poll<Option<Expired<T>>> {
    let mut queue = queue;
    Pin::new(&mut queue).poll_next(&mut Context::from_waker(waker))
}

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

/// All tasks that wait are woken, each once. Of wakers that panic, each panic counts.
#[test]
fn all_wakers_are_woken() {
    let (timer, clock) = manual();
    let queue = DelayQueue::new(&timer);
    let ((first, one), (second, other)) = (Bell::new(), Bell::new());
    let panics = || hooked(|to| assert!(to != To::Wake, "the waker panics"));
    queue.insert((), ms(5)).expect("it is open");
    for waker in [&panics(), &one, &panics(), &one, &other] {
        assert!(poll(&queue, waker).is_pending());
    }
    clock.advance(ms(5));
    assert_eq!((first.rings(), second.rings(), timer.stats().panics), (1, 1, 2));
}

/// A waker that panics is counted, and the value is there. A waker may use the queue. Promise 7.
#[test]
fn a_waker_may_panic_or_use_the_queue() {
    let (timer, clock) = manual();
    let queue = Arc::new(DelayQueue::new(&timer));
    queue.insert(1, ms(5)).expect("it is open");
    let panics = hooked(|to| assert!(to != To::Wake, "the waker panics"));
    assert!(poll(&*queue, &panics).is_pending());
    clock.advance(ms(5));
    assert_eq!(timer.stats().panics, 1);
    assert_eq!(queue.try_recv().map(|out| out.value), Some(1));
    let (inner, took) = (Arc::clone(&queue), Arc::new(AtomicBool::new(false)));
    let taken = Arc::clone(&took);
    let acts = Acts::waker(move || {
        taken.store(inner.try_recv().is_some_and(|out| out.value == 2), Ordering::SeqCst);
        inner.insert(3, ms(5)).expect("it is open");
    });
    queue.insert(2, ms(5)).expect("it is open");
    assert!(poll(&*queue, &acts).is_pending());
    clock.advance(ms(20));
    assert!(took.load(Ordering::SeqCst));
    assert_eq!(queue.try_recv().map(|out| out.value), Some(3));
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

/// On an executor, in real time, from another thread and across two shards.
#[test]
fn a_stream_yields_all_in_real_time() {
    let timer = threads(2);
    let queue = DelayQueue::new(&timer);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let queue = &queue;
            scope.spawn(move || {
                for i in 0..250 {
                    queue.insert(thread * 250 + i, ms(i % 20)).expect("it is open");
                }
            });
        }
        let mut values: Vec<_> = block_on((&queue).take(1_000).map(|out| out.value).collect());
        values.sort_unstable();
        assert!(values.iter().copied().eq(0..1_000));
    });
    assert!(queue.is_empty());
    is_balanced(&timer);
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
