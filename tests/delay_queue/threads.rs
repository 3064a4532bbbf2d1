//! Many threads at one queue, in real time, with the ledger: each value has one end.

use std::collections::HashMap;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{DelayQueue, QueueKey};

use crate::support::ledger::{End, Ledger, Payload};
use crate::support::{HOUR, in_time, is_balanced, ms, threads, until};

/// Values that each thread inserts.
const EACH: usize = 3_000;

/// Inserts, resets and removes at random: what another thread inserted, too.
fn use_queue(
    queue: &DelayQueue<(Payload, Instant)>,
    keys: &Mutex<Vec<QueueKey>>,
    ledger: &Ledger,
    seed: u64,
) {
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..EACH {
        let delay = Duration::from_micros(random.u64(..20_000));
        let due = Instant::now() + delay;
        let far = if random.bool() { delay } else { HOUR };
        let value = (ledger.payload(), if far == HOUR { due - delay } else { due });
        let key = queue.insert(value, far).unwrap_or_else(|_| panic!("it is open"));
        // An hour is brought forward; the others are put off, moved back and forth, or removed.
        assert!(far != HOUR || queue.reset(&key, delay));
        let other = {
            let mut keys = keys.lock().expect("no panic");
            keys.push(key);
            keys[random.usize(..keys.len())]
        };
        match random.u8(..4) {
            0 => _ = queue.reset(&other, HOUR) && queue.reset(&other, ms(30)),
            1 => _ = queue.reset(&other, ms(25)),
            2 => queue.remove(&other).into_iter().for_each(|(payload, _)| payload.end(End::Cancelled)),
            _ => {}
        }
    }
}

/// Each value comes out once, by the consumer or by a removal, and by its own key. Promise 2.
#[test]
fn each_value_comes_out_once_in_real_time() {
    in_time(|| {
        let (timer, ledger, keys) = (threads(2), Ledger::default(), Mutex::new(Vec::new()));
        let queue = DelayQueue::new(&timer);
        thread::scope(|scope| {
            let workers: Vec<_> = (0..3)
                .map(|seed| {
                    let (queue, keys, ledger) = (&queue, &keys, &ledger);
                    scope.spawn(move || use_queue(queue, keys, ledger, seed))
                })
                .collect();
            let mut seen: HashMap<QueueKey, usize> = HashMap::new();
            while !(queue.is_empty() && workers.iter().all(|worker| worker.is_finished())) {
                let Some(out) = queue.try_recv() else {
                    thread::yield_now();
                    continue;
                };
                assert!(out.deadline <= Instant::now(), "early");
                assert!(out.value.1 <= Instant::now(), "early");
                *seen.entry(out.key).or_default() += 1;
                out.value.0.end(End::Fired);
            }
            assert!(seen.values().all(|&times| times == 1));
        });
        assert_eq!(ledger.made(), 3 * EACH);
        assert_eq!(ledger.count(End::Fired) + ledger.count(End::Cancelled), 3 * EACH);
        assert!(ledger.count(End::Fired) > 0 && ledger.count(End::Cancelled) > 0);
        drop(queue);
        ledger.check_all_ended();
        is_balanced(&timer);
    });
}

/// A consumer that blocks misses no wake-up, however the pushes and its looks interleave.
/// Promise 2.
#[test]
fn a_blocked_consumer_misses_nothing_in_real_time() {
    in_time(|| {
        let timer = threads(2);
        let queue = DelayQueue::new(&timer);
        thread::scope(|scope| {
            for thread in 0..2_u64 {
                let queue = &queue;
                scope.spawn(move || {
                    for i in 0..400 {
                        queue.insert((), Duration::from_micros(700 * (thread + 1))).expect("it is open");
                        thread::sleep(Duration::from_micros(100 * (i % 5)));
                    }
                });
            }
            (0..800).for_each(|_| assert!(queue.blocking_recv().is_some()));
        });
        assert!(queue.is_empty());
    });
}

/// Threads that wait together: each value goes to one of them, and the shutdown ends all waits.
/// Promise 2.
#[test]
fn threads_that_wait_together_take_turns_in_real_time() {
    in_time(|| {
        let timer = threads(2);
        let queue = DelayQueue::new(&timer);
        let taken = thread::scope(|scope| {
            let consumers =
                [(); 3].map(|()| scope.spawn(|| std::iter::from_fn(|| queue.blocking_recv()).count()));
            for i in 0..600 {
                queue.insert((), Duration::from_micros(10 * i)).expect("it is open");
            }
            until("all are taken", || queue.is_empty());
            drop(timer.shutdown());
            consumers.map(|consumer| consumer.join().expect("no panic")).into_iter().sum::<usize>()
        });
        assert_eq!(taken, 600);
    });
}
