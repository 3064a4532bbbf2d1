//! Consumers that wait side by side, and leave: tasks by `next` and by the stream, and threads.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::executor::block_on;
use futures::future::{Either, select};
use futures::stream::Stream;
use shardwheel::{DelayQueue, Timer};

use crate::poll_stream;
use crate::support::{
    Bell, HOUR, drop_panics, in_time, is_balanced, is_pending, manual, ms, ready, threads, until,
};

/// A poll that was abandoned keeps neither a value nor the end from a thread that waits. Promise 2.
#[test]
fn an_abandoned_poll_leaves_a_thread_its_wake() {
    for ends in [false, true] {
        in_time(move || {
            let (timer, clock) = manual();
            let queue = Arc::new(DelayQueue::new(&timer));
            queue.insert(7, ms(5)).expect("it is open");
            let waits = Arc::clone(&queue);
            let thread = thread::spawn(move || waits.blocking_recv().map(|out| out.value));
            thread::sleep(ms(20)); // the thread waits by now
            assert!(poll_stream(&queue, &Bell::new().1).is_pending());
            if ends {
                drop(timer.shutdown())
            } else {
                clock.advance(ms(5))
            }
            assert_eq!(thread.join().expect("no panic"), (!ends).then_some(7));
        });
    }
}

/// A task that has been woken and leaves keeps no value from the task that stays. Promise 2.
#[test]
fn a_woken_task_that_leaves_keeps_no_value() {
    let (timer, clock) = manual();
    let queue = DelayQueue::new(&timer);
    let (bell, waker) = Bell::new();
    let (mut stays, mut leaves) = (queue.next(), queue.next());
    queue.insert(7, ms(5)).expect("it is open");
    is_pending(&mut stays, &waker);
    is_pending(&mut leaves, Waker::noop());
    clock.advance(ms(5));
    drop(leaves);
    assert_eq!((bell.rings(), ready(&mut stays).map(|out| out.value)), (1, Some(7)));
    is_pending(&mut stays, &waker);
    drop(timer.shutdown());
    assert_eq!((bell.rings(), ready(&mut stays)), (2, None));
}

/// A future that is dropped takes its own waker out: not that of another future of the same task,
/// nor that of the task's stream. A drop that panics is counted. Promise 7.
#[test]
fn a_dropped_future_takes_out_its_own_waker() {
    let (timer, clock) = manual();
    let queue = DelayQueue::new(&timer);
    let (bell, waker) = Bell::new();
    let (mut one, mut other) = (queue.next(), queue.next());
    for _ in 0..3 {
        is_pending(&mut one, &waker);
        is_pending(&mut other, &waker);
    }
    assert_eq!(Arc::strong_count(&bell), 4); // with the bell and the waker here
    drop(one);
    assert_eq!(Arc::strong_count(&bell), 3);
    let (mut panics, hooked) = (queue.next(), drop_panics());
    is_pending(&mut panics, &hooked);
    drop(panics);
    assert_eq!(timer.stats().panics, 1);
    queue.insert(7, ms(5)).expect("it is open");
    clock.advance(ms(5));
    assert_eq!((bell.rings(), Arc::strong_count(&bell)), (1, 2));
    assert!(ready(&mut other).is_some());
}

/// The waker of a stream that was abandoned goes with the queue, though a value still waits.
#[test]
fn a_dropped_queue_drops_its_wakers() {
    let (timer, _clock) = manual();
    let queue = DelayQueue::new(&timer);
    queue.insert(7, HOUR).expect("it is open");
    let (bell, waker) = Bell::new();
    assert!(poll_stream(&queue, &waker).is_pending());
    drop((queue, waker));
    assert_eq!((bell.rings(), Arc::strong_count(&bell)), (0, 1));
}

/// A limit ends the wait, a value comes within a limit, and so does the end.
#[test]
fn a_thread_waits_within_a_limit_in_real_time() {
    let timer = Timer::new().expect("the defaults are valid");
    let queue = DelayQueue::new(&timer);
    let begin = Instant::now();
    assert!(queue.recv_timeout(ms(10)).is_err());
    assert!(begin.elapsed() >= ms(10));
    queue.insert(7, ms(5)).expect("it is open");
    let value = queue.recv_timeout(Duration::MAX).expect("it comes");
    assert_eq!(value.map(|out| out.value), Some(7));
    assert!(queue.recv_timeout(Duration::ZERO).is_err());
    drop(timer.shutdown());
    assert_eq!(queue.recv_timeout(Duration::ZERO), Ok(None));
}

/// Values that a thread takes until the end, giving up again and again.
fn take_with_limits(queue: &DelayQueue<u64>) -> usize {
    let mut taken = 0;
    loop {
        match queue.recv_timeout(Duration::from_micros(300)) {
            Ok(None) => return taken,
            received => taken += usize::from(received.is_ok()),
        }
    }
}

/// Values that tasks take until the end: by `next`, dropped again and again, and by the stream,
/// abandoned again and again.
fn take_as_tasks(queue: &DelayQueue<u64>) -> usize {
    let mut taken = 0;
    loop {
        match block_on(select(queue.next(), shardwheel::sleep(ms(1)))) {
            Either::Left((None, _)) => return taken,
            Either::Left((Some(_), _)) => taken += 1,
            Either::Right(_) => {
                taken += usize::from(matches!(poll_stream(queue, Waker::noop()), Poll::Ready(Some(_))));
            }
        }
    }
}

/// Threads and tasks of each kind wait and leave again and again: each value goes to one of them,
/// none stays behind, and the shutdown ends all waits. Promises 2 and 8.
#[test]
fn consumers_of_all_kinds_come_and_go_in_real_time() {
    const VALUES: u64 = 600;
    in_time(|| {
        let timer = threads(2);
        let queue = DelayQueue::new(&timer);
        let taken = thread::scope(|scope| {
            let consumers = [
                scope.spawn(|| std::iter::from_fn(|| queue.blocking_recv()).count()),
                scope.spawn(|| take_with_limits(&queue)),
                scope.spawn(|| take_as_tasks(&queue)),
            ];
            for i in 0..VALUES {
                queue.insert(i, Duration::from_micros(10 * i)).expect("it is open");
            }
            until("all are taken", || queue.is_empty());
            drop(timer.shutdown());
            consumers.map(|consumer| consumer.join().expect("no panic")).into_iter().sum::<usize>()
        });
        assert_eq!(taken as u64, VALUES);
        assert_eq!(queue.next().now_or_never(), Some(None));
        is_balanced(&timer);
    });
}

/// The queue as a stream has one task, whose newest waker is kept; the drop of a former one that
/// panics is counted. Promise 7.
#[test]
fn the_queue_as_a_stream_keeps_one_waker() {
    let (timer, clock) = manual();
    let mut queue = DelayQueue::new(&timer);
    let (bell, waker) = Bell::new();
    let mut poll = |waker: &Waker| Pin::new(&mut queue).poll_next(&mut Context::from_waker(waker));
    assert!(poll(&waker).is_pending());
    drop(waker);
    assert_eq!(Arc::strong_count(&bell), 2);
    assert!(poll(&drop_panics()).is_pending());
    assert_eq!((Arc::strong_count(&bell), timer.stats().panics), (1, 0));
    let (bell, waker) = Bell::new();
    assert!(poll(&waker).is_pending());
    assert_eq!(timer.stats().panics, 1);
    queue.insert(7, ms(5)).expect("it is open");
    clock.advance(ms(5));
    assert_eq!(bell.rings(), 1);
}
