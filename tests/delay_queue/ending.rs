//! What becomes of the values when the timer is shut down, or the queue is dropped. Promise 8.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::task::Waker;
use std::thread;

use futures::FutureExt;
use futures::executor::block_on;
use futures::stream::StreamExt;
use shardwheel::{DelayQueue, ScheduleErrorKind, Timer};

use crate::support::{
    Acts, HOUR, after, both, hear, in_time, is_balanced, is_pending, manual, ms, pass, poll, ready, until,
};

/// A shutdown leaves what has expired to the stream, which ends after that, and the rest to
/// `unexpired`. It returns callbacks only.
#[test]
fn a_shutdown_loses_no_value() {
    for (timer, clock) in both() {
        let queue = DelayQueue::new(&timer);
        let soon = queue.insert("soon", ms(5)).expect("it is open");
        let late = queue.insert("late", HOUR).expect("it is open");
        let moved = queue.insert("moved", 2 * HOUR).expect("it is open");
        assert!(queue.reset(&moved, HOUR));
        after(&timer, HOUR, || ());
        pass(&clock, ms(5));
        until("it expires", || timer.stats().fired == 1);
        assert_eq!(queue.unexpired().count(), 0);
        assert_eq!(timer.shutdown().count(), 1);
        assert_eq!(block_on(queue.next()).map(|out| (out.value, out.key)), Some(("soon", soon)));
        assert_eq!(block_on(queue.next()), None);
        assert_eq!((queue.blocking_recv(), queue.len()), (None, 2));
        assert!(queue.remove(&late).is_none() && !queue.reset(&late, ms(1)));
        let mut rest: Vec<_> = queue.unexpired().collect();
        rest.sort_unstable_by_key(|&(_, value)| value);
        assert_eq!(rest, [(late, "late"), (moved, "moved")]);
        assert!(queue.is_empty());
        let refused = queue.insert("more", ms(1)).expect_err("the timer is shut down");
        assert!(refused.is_shut_down());
        assert_eq!((refused.into_payload(), queue.len()), ("more", 0));
    }
}

/// A consumer that waits is woken by the shutdown, also if the queue is empty; a queue that is made
/// afterwards has ended.
#[test]
fn a_shutdown_ends_the_consumers_wait() {
    for inserts in [false, true] {
        let timer = Timer::new().expect("the defaults are valid");
        let queue = Arc::new(DelayQueue::new(&timer));
        if inserts {
            queue.insert(1, HOUR).expect("it is open");
        }
        let (sender, receiver) = mpsc::channel();
        let waiting = Arc::clone(&queue);
        thread::spawn(move || sender.send(waiting.blocking_recv()).expect("the test waits"));
        thread::sleep(ms(20));
        drop(timer.shutdown());
        assert_eq!(hear(&receiver), None);
        assert_eq!(queue.unexpired().count(), usize::from(inserts));
        assert_eq!(DelayQueue::<u8>::new(&timer).blocking_recv(), None);
    }
}

/// A shutdown that waits for a callback still takes values. A queue that is made meanwhile has not
/// ended: what it took comes out when it has. Promise 8.
#[test]
fn a_queue_that_is_made_during_a_shutdown_ends_with_it() {
    in_time(|| {
        let timer = Timer::new().expect("the defaults are valid");
        let ((is_in, inside), (sender, receiver)) = (mpsc::channel(), mpsc::channel());
        let weak = timer.downgrade();
        after(&timer, ms(1), move || {
            is_in.send(()).expect("the test waits");
            thread::sleep(ms(30)); // the shutdown has begun, and waits for this callback
            let queue = DelayQueue::new(&weak.upgrade().expect("the test has a handle"));
            let is_taken = queue.insert(5, HOUR).is_ok();
            let has_ended = queue.next().now_or_never().is_some();
            sender.send((queue, is_taken, has_ended)).expect("the test waits");
        });
        hear(&inside);
        drop(timer.shutdown());
        let (queue, is_taken, has_ended) = hear(&receiver);
        assert!(!(is_taken && has_ended));
        assert_eq!((queue.blocking_recv(), queue.unexpired().count()), (None, usize::from(is_taken)));
    });
}

/// A queue keeps its timer; dropped, it drops all its values at once.
#[test]
fn a_dropped_queue_drops_its_values() {
    let (timer, clock) = manual();
    let held = Arc::new(());
    let queue = DelayQueue::new(&timer);
    let keys = [ms(5), ms(6), ms(20), HOUR, HOUR].map(|delay| {
        let inserted = queue.insert(Arc::clone(&held), delay);
        inserted.expect("it is open")
    });
    assert!(queue.reset(&keys[4], ms(30)));
    clock.advance(ms(10));
    assert!(queue.try_recv().is_some());
    assert_eq!(Arc::strong_count(&held), 5);
    drop(queue);
    assert_eq!((Arc::strong_count(&held), timer.stats().pending), (1, 0));
    is_balanced(&timer);
    assert_eq!(timer.shutdown().count(), 0);
    assert_eq!(Arc::strong_count(&held), 1);
    // The last handle is the queue's.
    let (timer, clock) = manual();
    let (weak, queue) = (timer.downgrade(), DelayQueue::new(&timer));
    queue.insert(Arc::clone(&held), ms(5)).expect("it is open");
    drop(timer);
    clock.advance(ms(5));
    assert!(queue.try_recv().is_some() && weak.upgrade().is_some());
    drop(queue);
    assert!(weak.upgrade().is_none());
}

/// Drops that panic: the others are dropped, and the shard goes on. One panic is the caller's, the
/// others count; during an unwind all do. Promise 7.
#[test]
fn values_may_panic_when_they_are_dropped() {
    struct Bomb(Arc<()>);
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("one of {} values panics", Arc::strong_count(&self.0));
        }
    }
    for (unwinds, counts) in [(false, 4), (true, 5)] {
        let (timer, clock) = manual();
        let held = Arc::new(());
        let queue = DelayQueue::new(&timer);
        for delay in [1, 1, 1, 50, 50] {
            queue.insert(Bomb(Arc::clone(&held)), ms(delay)).map_err(|_| ()).expect("it is open");
        }
        clock.advance(ms(1));
        let dropped = catch_unwind(AssertUnwindSafe(|| {
            let _queue = queue;
            assert!(!unwinds, "the owner panics");
        }));
        assert!(dropped.is_err());
        assert_eq!((Arc::strong_count(&held), timer.stats().panics), (1, counts));
        is_balanced(&timer);
    }
}

/// A queue that is closed refuses values, hands out what it has when it is due, and then ends, for
/// each kind of consumer. What waits can be removed and reset.
#[test]
fn a_closed_queue_ends_when_all_is_taken() {
    for (timer, clock) in both() {
        let mut queue = DelayQueue::new(&timer);
        let soon = queue.insert("soon", HOUR).expect("it is open");
        let late = queue.insert("late", HOUR).expect("it is open");
        let removed = queue.insert("removed", HOUR).expect("it is open");
        queue.close();
        queue.close();
        for refused in [queue.insert("more", ms(1)), queue.insert_at("more", timer.now())] {
            let refused = refused.expect_err("it is closed");
            assert_eq!((refused.kind(), refused.is_shut_down()), (ScheduleErrorKind::QueueClosed, false));
            assert_eq!(refused.into_payload(), "more");
        }
        assert_eq!((queue.len(), queue.try_recv()), (3, None));
        assert!(queue.next().now_or_never().is_none(), "values wait");
        assert_eq!(queue.remove(&removed), Some("removed"));
        assert!(queue.reset(&soon, ms(5)) && queue.reset(&late, ms(6)));
        pass(&clock, ms(6));
        assert_eq!(block_on(queue.next()).map(|out| (out.value, out.key)), Some(("soon", soon)));
        assert_eq!(queue.blocking_recv().map(|out| (out.value, out.key)), Some(("late", late)));
        assert_eq!((block_on(queue.next()), queue.blocking_recv(), queue.try_recv()), (None, None, None));
        assert_eq!((queue.recv_timeout(HOUR), block_on(StreamExt::next(&mut queue))), (Ok(None), None));
        assert!(queue.is_empty() && queue.unexpired().count() == 0);
        is_balanced(&timer);
    }
}

/// Consumers that wait are woken by the close of an empty queue, by the removal of the last value,
/// by a drain, and by another consumer that takes the last value.
#[test]
fn the_consumers_of_a_closed_queue_are_woken_at_its_end() {
    fn close(queue: &DelayQueue<u8>) {
        queue.close();
        thread::sleep(ms(5));
    }
    let ends: [fn(&DelayQueue<u8>, &shardwheel::QueueKey); 4] = [
        |queue, key| {
            assert_eq!(queue.remove(key), Some(1));
            close(queue);
        },
        |queue, key| {
            close(queue);
            assert_eq!(queue.remove(key), Some(1));
        },
        |queue, _| {
            close(queue);
            assert_eq!(queue.drain().count(), 1);
        },
        |queue, key| {
            close(queue);
            queue.reset(key, ms(1));
        },
    ];
    for (end, is_taken) in ends.into_iter().zip([0, 0, 0, 1]) {
        in_time(move || {
            let queue = Arc::new(DelayQueue::new(&Timer::new().expect("the defaults are valid")));
            let key = queue.insert(1, HOUR).expect("it is open");
            let consumers = [false, true, true].map(|blocks| {
                let queue = Arc::clone(&queue);
                let next = move || if blocks { queue.blocking_recv() } else { block_on(queue.next()) };
                thread::spawn(move || std::iter::from_fn(next).count())
            });
            thread::sleep(ms(5));
            end(&queue, &key);
            let taken = consumers.map(|consumer| consumer.join().expect("no panic"));
            assert_eq!(taken.iter().sum::<usize>(), is_taken);
        });
    }
}

/// The waker of a consumer that the close wakes may use the queue. Promise 7.
#[test]
fn a_waker_that_the_close_wakes_may_use_the_queue() {
    in_time(|| {
        let (timer, _clock) = manual();
        let queue = Arc::new(DelayQueue::new(&timer));
        let again = Arc::clone(&queue);
        let waker = Acts::waker(move || {
            again.close();
            assert!(again.insert(1, HOUR).is_err() && again.drain().count() == 0);
            assert!(poll(&mut again.next(), Waker::noop()).is_ready());
        });
        let mut next = queue.next();
        is_pending(&mut next, &waker);
        queue.close();
        assert_eq!((ready(&mut next), timer.stats().panics), (None, 0));
    });
}
