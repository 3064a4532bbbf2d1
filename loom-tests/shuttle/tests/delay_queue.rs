//! Delay queues with several consumers, of both kinds.

#![cfg(shardwheel_shuttle)]
#![allow(missing_docs)]

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use shardwheel::{DelayQueue, ManualClock, Placement};
use shardwheel_shuttle_tests::{VirtualClock, explore, explore_both, millis, timer};
use shuttle::sync::Mutex;
use shuttle::{future, thread};

const VALUES: u64 = 4;

/// Two threads and a task take values, and a second task leaves while it waits. One value is moved
/// to an earlier time, and one is removed at about the time when it expires. The shutdown wakes all
/// that wait. Each value comes out once, and none too early.
#[test]
fn consumers_of_both_kinds_and_a_shutdown() {
    explore_both("consumers of both kinds and a shutdown", || {
        let timer = timer().shards(2).placement(Placement::RoundRobin).build().expect("it starts");
        let queue = Arc::new(DelayQueue::new(&timer));
        let taken = Arc::new(Mutex::new(Vec::new()));
        let consumer = |blocks: bool| {
            let (queue, taken) = (Arc::clone(&queue), Arc::clone(&taken));
            thread::spawn(move || {
                while let Some(expired) =
                    if blocks { queue.blocking_recv() } else { future::block_on(queue.next()) }
                {
                    let (number, due) = expired.value;
                    assert!(VirtualClock::now() >= due, "value {number} is early");
                    taken.lock().expect("no consumer panics").push(number);
                }
            })
        };
        let consumers = [true, true, false].map(consumer);
        let leaving = Arc::clone(&queue);
        let leaves = thread::spawn(move || {
            let mut next = pin!(leaving.next());
            // It may take a value that has expired already.
            future::block_on(poll_fn(|context| match next.as_mut().poll(context) {
                Poll::Ready(expired) => Poll::Ready(expired.map(|expired| expired.value.0)),
                Poll::Pending => Poll::Ready(None),
            }))
        });
        let insert = |number, delay| {
            let due = VirtualClock::now() + millis(delay);
            queue.insert((number, due), millis(delay)).expect("it is open")
        };
        insert(0, 1);
        let removed = insert(1, 2);
        let due = VirtualClock::now() + millis(1);
        let moved = queue.insert((2, due), millis(1_000)).expect("it is open");
        insert(3, 2);
        assert!(queue.reset(&moved, millis(1)));
        let removed = queue.remove(&removed).map(|(number, _)| number);
        let left = leaves.join().expect("it does not panic");
        VirtualClock::sleep(millis(2));
        drop(timer.shutdown());
        for consumer in consumers {
            consumer.join().expect("it does not panic");
        }
        let mut all = taken.lock().expect("no consumer panics").clone();
        all.extend(removed.into_iter().chain(left));
        all.extend(queue.unexpired().map(|(_, (number, _))| number));
        all.sort_unstable();
        assert_eq!(all, (0..VALUES).collect::<Vec<_>>());
        assert!(queue.is_empty());
        removed.is_some()
    });
}

/// The consumers wait before a value comes, and nothing but the value wakes them: a wake-up that is
/// lost is a deadlock. Each takes one value, and leaves.
#[test]
fn each_consumer_gets_one_value() {
    explore("each consumer gets one value", || {
        let timer = timer().shards(1).build().expect("it starts");
        let queue = Arc::new(DelayQueue::new(&timer));
        let consumers = [true, false, true].map(|blocks| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let expired = if blocks { queue.blocking_recv() } else { future::block_on(queue.next()) };
                expired.expect("the timer has not ended").value
            })
        });
        for number in 0..3 {
            queue.insert(number, millis(1)).expect("it is open");
        }
        let mut taken = consumers.map(|consumer| consumer.join().expect("it does not panic"));
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2]);
    });
}

/// A drain and a snapshot while values expire, one is moved to an earlier time and one is inserted.
/// Each value comes out once: of the drain, or of a consumer.
#[test]
fn a_drain_against_a_consumer() {
    explore_both("a drain against a consumer", || {
        let timer = timer().shards(1).build().expect("it starts");
        let queue = Arc::new(DelayQueue::new(&timer));
        let far = queue.insert(0, millis(1_000)).expect("it is open");
        queue.insert(1, millis(1)).expect("it is open");
        let own = Arc::clone(&queue);
        let consumer = thread::spawn(move || {
            std::iter::from_fn(|| own.blocking_recv()).map(|expired| expired.value).collect::<Vec<u64>>()
        });
        let own = Arc::clone(&queue);
        let producer = thread::spawn(move || {
            own.reset(&far, millis(1));
            own.insert(2, millis(1)).expect("it is open");
        });
        assert!(queue.iter().len() <= 3);
        let mut all: Vec<_> = queue.drain().map(|(_, value)| value).collect();
        let drained = all.len();
        producer.join().expect("it does not panic");
        drop(timer.shutdown());
        all.extend(consumer.join().expect("it does not panic"));
        all.extend(queue.unexpired().map(|(_, value)| value));
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
        assert!(queue.is_empty());
        drained < 3
    });
}

/// A close against an insert and a consumer, who ends without a shutdown. The insert is refused, or
/// its value comes out.
#[test]
fn a_close_against_an_insert_and_a_consumer() {
    explore_both("a close against an insert and a consumer", || {
        let timer = timer().shards(1).build().expect("it starts");
        let queue = Arc::new(DelayQueue::new(&timer));
        queue.insert(0, millis(1)).expect("it is open");
        let own = Arc::clone(&queue);
        let consumer = thread::spawn(move || {
            std::iter::from_fn(|| own.blocking_recv()).map(|expired| expired.value).collect::<Vec<u64>>()
        });
        let own = Arc::clone(&queue);
        let producer = thread::spawn(move || own.insert(1, millis(1)).is_ok());
        queue.close();
        let is_accepted = producer.join().expect("it does not panic");
        let mut all = consumer.join().expect("it does not panic");
        all.sort_unstable();
        assert_eq!(all, if is_accepted { vec![0, 1] } else { vec![0] });
        assert_eq!(queue.insert(2, millis(1)).map_err(|refused| refused.into_payload()), Err(2));
        is_accepted
    });
}

/// A queue is dropped while a value of it expires, one has been moved, and the timer is shut down.
/// Each value is dropped.
#[test]
fn the_drop_of_a_queue_against_an_expiry_and_a_shutdown() {
    explore("the drop of a queue against an expiry and a shutdown", || {
        let timer = timer().shards(1).build().expect("it starts");
        let (queue, value) = (DelayQueue::new(&timer), Arc::new(()));
        let insert = |delay| queue.insert(Arc::clone(&value), millis(delay)).expect("it is open");
        let (moved, _) = (insert(1_000), [1, 2, 1_000].map(insert));
        assert!(queue.reset(&moved, millis(2)));
        VirtualClock::sleep(millis(1));
        let shuts = thread::spawn(move || drop(timer.shutdown()));
        drop(queue);
        shuts.join().expect("it does not panic");
        assert_eq!(Arc::strong_count(&value), 1, "each value is dropped");
    });
}

/// A thread asks for the next deadline while another one moves values to earlier times and takes
/// one out. When both have ended, the answer is right. The time stands still: a value that expires
/// during the call may be missed.
#[test]
fn the_next_deadline_against_moves() {
    explore("the next deadline against moves", || {
        let timer = timer().shards(1).clock(ManualClock::new()).build().expect("it starts");
        let queue = Arc::new(DelayQueue::new(&timer));
        let keys = [500, 600, 700].map(|delay| queue.insert((), millis(delay)).expect("it is open"));
        let (own, start) = (Arc::clone(&queue), timer.now());
        let mover = thread::spawn(move || {
            assert!(own.reset_at(&keys[2], start + millis(300)));
            assert!(own.reset_at(&keys[1], start + millis(400)));
            assert!(own.reset_at(&keys[2], start + millis(200)));
            assert!(own.remove(&keys[0]).is_some());
        });
        for _ in 0..2 {
            let next = queue.peek_deadline().expect("they wait");
            assert!([500, 400, 300, 200].iter().any(|&delay| next == start + millis(delay)));
        }
        mover.join().expect("it does not panic");
        assert_eq!(queue.peek_deadline(), Some(start + millis(200)));
        assert!(queue.reset_at(&keys[2], start + millis(800)));
        assert_eq!(queue.peek_deadline(), Some(start + millis(400)));
    });
}
