//! The calls about all values: when the next one is due, which ones wait, and taking all out.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use shardwheel::{DelayQueue, ManualClock, Timer};

use crate::support::ledger::{End, Ledger};
use crate::support::{Built, HOUR, in_time, is_balanced, manual, ms, threads, until};

/// The next deadline is that of the value which comes out next: it follows resets and removals, and
/// stays until the value is received. Promise 1.
#[test]
fn the_next_deadline_is_that_of_the_next_value() {
    let (timer, clock) = manual();
    let (queue, start) = (DelayQueue::new(&timer), timer.now());
    let at = |delay| Some(start + ms(delay));
    assert_eq!(queue.peek_deadline(), None);
    queue.insert("never", Duration::MAX).expect("it is open");
    assert_eq!(queue.peek_deadline(), None);
    let [a, b] = [50, 30].map(|delay| queue.insert("some time", ms(delay)).expect("it is open"));
    assert_eq!(queue.peek_deadline(), at(30));
    assert!(queue.reset(&a, ms(10)));
    assert_eq!(queue.peek_deadline(), at(10));
    assert!(queue.reset(&a, ms(70)));
    assert_eq!(queue.peek_deadline(), at(30));
    assert!(queue.remove(&b).is_some());
    assert_eq!(queue.peek_deadline(), at(70));

    queue.insert("later", ms(80)).expect("it is open");
    clock.advance(ms(90));
    for delay in [70, 80] {
        assert_eq!(queue.peek_deadline(), at(delay));
        assert_eq!(queue.try_recv().map(|expired| expired.deadline), at(delay));
    }
    assert_eq!((queue.peek_deadline(), queue.len()), (None, 1));
    drop(timer.shutdown());
    assert_eq!(queue.peek_deadline(), None);
}

/// A deadline within a tick is shown rounded up: the value does not come out before. Promise 1.
#[test]
fn a_waiting_values_deadline_is_rounded_up_to_a_tick() {
    let (timer, clock) = manual();
    let (queue, start) = (DelayQueue::new(&timer), timer.now());
    queue.insert((), Duration::from_micros(4_300)).expect("it is open");
    assert_eq!(queue.peek_deadline(), Some(start + ms(5)));
    clock.advance(ms(5));
    assert_eq!(queue.peek_deadline(), Some(start + Duration::from_micros(4_300)));
}

/// The snapshot has each value that waits, once, with its key and its present deadline.
#[test]
fn the_snapshot_has_what_waits() {
    let (timer, clock) = manual();
    let (queue, start) = (DelayQueue::new(&timer), timer.now());
    let mut expected = HashMap::new();
    for i in 0..2_000_u64 {
        let key = queue.insert(i, ms(100 + i)).expect("it is open");
        match i % 5 {
            0 => _ = queue.remove(&key),
            1 => {
                assert!(queue.reset(&key, ms(5_000 + i)));
                expected.insert(key, Some(start + ms(5_000 + i)));
            }
            // Earlier: its timer moves to another node. Some do so twice.
            2 => {
                assert!(queue.reset(&key, ms(60)) && (i % 2 == 0 || queue.reset(&key, ms(50))));
                expected.insert(key, Some(start + ms(if i % 2 == 0 { 60 } else { 50 })));
            }
            _ => _ = expected.insert(key, Some(start + ms(100 + i))),
        }
    }
    expected.insert(queue.insert(0, Duration::MAX).expect("it is open"), None);
    let snapshot = queue.iter();
    assert_eq!(snapshot.len(), expected.len());
    assert_eq!(snapshot.collect::<HashMap<_, _>>(), expected);
    assert_eq!(queue.iter().collect::<HashMap<_, _>>(), expected, "a second look finds the same");

    clock.advance(ms(999));
    let now = timer.now();
    expected.retain(|_, due| due.is_none_or(|due| due > now));
    assert_eq!(queue.iter().collect::<HashMap<_, _>>(), expected);
    assert!(queue.iter().all(|(key, _)| queue.remove(&key).is_some()), "a key of it is good for a removal");
    assert_eq!(queue.iter().len(), 0);
}

/// A drain takes out what waits and what has expired, each value by its own key. Promise 2.
#[test]
fn a_drain_takes_all() {
    let (timer, clock) = manual();
    let (queue, other) = (DelayQueue::new(&timer), DelayQueue::new(&timer));
    other.insert(7, HOUR).expect("it is open");
    let mut keys: HashMap<_, _> =
        (0..1_000).map(|i| (queue.insert(i, ms(i)).expect("it is open"), i)).collect();
    clock.advance(ms(300));
    let received = queue.try_recv().expect("it has expired");
    keys.remove(&received.key);
    keys.iter().filter(|&(_, &i)| i > 900).for_each(|(key, _)| assert!(queue.reset(key, ms(1))));

    assert_eq!(queue.drain().collect::<HashMap<_, _>>(), keys);
    assert_eq!((queue.len(), queue.peek_deadline(), queue.iter().len()), (0, None, 0));
    let key = queue.insert(5_000, ms(1)).expect("it is open");
    assert!(keys.keys().all(|key| queue.remove(key).is_none() && !queue.reset(key, ms(1))));
    clock.advance(HOUR);
    assert_eq!(queue.try_recv().map(|expired| expired.key), Some(key));
    assert_eq!((queue.try_recv(), other.len()), (None, 1));
    assert_eq!(queue.drain().count(), 0);
    is_balanced(&timer);
}

/// What a drain that is dropped early has not yielded stays in the queue. Promise 8.
#[test]
fn a_drain_that_is_dropped_leaves_the_rest() {
    let (timer, clock) = manual();
    let (queue, ledger) = (DelayQueue::new(&timer), Ledger::default());
    for i in 0..100 {
        queue.insert(ledger.payload(), ms(i)).unwrap_or_else(|_| panic!("it is open"));
    }
    clock.advance(ms(20));
    queue.drain().take(90).for_each(|(_, payload)| payload.end(End::Cancelled));
    assert_eq!((queue.len(), ledger.count(End::Cancelled)), (10, 90));
    let mut drained = queue.drain();
    clock.advance(HOUR);
    queue.insert(ledger.payload(), ms(0)).unwrap_or_else(|_| panic!("it is open"));
    drained.by_ref().take(4).for_each(|(_, payload)| payload.end(End::Cancelled));
    drop(drained);
    while let Some(expired) = queue.try_recv() {
        expired.value.end(End::Fired);
    }
    clock.advance(ms(1));
    queue.try_recv().expect("it has expired").value.end(End::Fired);
    assert_eq!((queue.len(), ledger.count(End::Cancelled), ledger.count(End::Fired)), (0, 94, 7));
    ledger.check_all_ended();
}

/// A panic of the caller's between two values of a drain leaves the others in the queue.
#[test]
fn a_panic_during_a_drain_loses_nothing_else() {
    let (timer, clock) = manual();
    let (queue, ledger) = (DelayQueue::new(&timer), Ledger::default());
    for i in 0..20 {
        queue.insert(ledger.payload(), ms(i)).unwrap_or_else(|_| panic!("it is open"));
    }
    clock.advance(ms(10));
    let drained = std::panic::catch_unwind(|| {
        for (i, (_, payload)) in queue.drain().enumerate() {
            payload.end(End::Cancelled);
            assert!(i < 4, "on purpose");
        }
    });
    assert!(drained.is_err());
    assert_eq!((queue.len(), queue.iter().len()), (15, 4));
    queue.drain().for_each(|(_, payload)| payload.end(End::Fired));
    ledger.check_all_ended();
}

/// After a shutdown, a drain takes what had expired; `unexpired` has the rest. Promise 8.
#[test]
fn a_drain_after_the_end_leaves_what_has_not_expired() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).built();
    let queue = DelayQueue::new(&timer);
    for delay in [1, 2, 50, 60] {
        queue.insert(delay, ms(delay)).expect("it is open");
    }
    clock.advance(ms(10));
    drop(timer.shutdown());
    assert_eq!(queue.iter().len(), 0);
    assert_eq!(queue.drain().map(|(_, value)| value).sum::<u64>(), 3);
    assert_eq!(queue.unexpired().map(|(_, value)| value).sum::<u64>(), 110);
}

/// Drains, snapshots, consumers, removals and resets at once: each value comes out once. Promise 2.
#[test]
fn a_value_is_drained_received_or_removed_once_in_real_time() {
    const EACH: usize = 4_000;
    const LAST: usize = 100;
    in_time(|| {
        let (timer, ledger, done) = (threads(2), Ledger::default(), AtomicBool::new(false));
        let queue = DelayQueue::new(&timer);
        thread::scope(|scope| {
            let producers: Vec<_> = (0..2)
                .map(|seed| {
                    let (queue, ledger) = (&queue, &ledger);
                    scope.spawn(move || {
                        let mut random = fastrand::Rng::with_seed(seed);
                        for _ in 0..EACH {
                            let delay = Duration::from_micros(random.u64(..10_000));
                            let key = queue.insert(ledger.payload(), delay);
                            let key = key.unwrap_or_else(|_| panic!("it is open"));
                            match random.u8(..4) {
                                0 => _ = queue.reset(&key, ms(1)),
                                // Most of these are left to the drain.
                                1 => _ = queue.reset(&key, HOUR),
                                2 => queue.remove(&key).into_iter().for_each(|p| p.end(End::Cancelled)),
                                _ => {}
                            }
                        }
                    })
                })
                .collect();
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        if let Ok(Some(out)) = queue.recv_timeout(ms(1)) {
                            out.value.end(End::Fired);
                        }
                    }
                });
            }
            while !(queue.is_empty() && producers.iter().all(|producer| producer.is_finished())) {
                queue.drain().for_each(|(_, payload)| payload.end(End::HandedBack));
                let snapshot = queue.iter();
                let (count, keys): (_, HashSet<_>) = (snapshot.len(), snapshot.map(|(key, _)| key).collect());
                assert_eq!(keys.len(), count, "a key is listed twice");
                _ = queue.peek_deadline();
                thread::sleep(ms(1));
            }
            // The consumers may have come too late for all others.
            for _ in 0..LAST {
                queue.insert(ledger.payload(), ms(1)).unwrap_or_else(|_| panic!("it is open"));
            }
            until("the shards have passed all on", || queue.is_empty());
            done.store(true, Ordering::Relaxed);
        });
        let ends = [End::Fired, End::Cancelled, End::HandedBack].map(|end| ledger.count(end));
        assert_eq!(ends.iter().sum::<usize>(), 2 * EACH + LAST);
        assert!(ends.iter().all(|&count| count > 0), "{ends:?}");
        drop(queue);
        ledger.check_all_ended();
        is_balanced(&timer);
    });
}

/// The next deadline is right after each step of a random sequence: of inserts, resets to earlier and
/// later times, removals, receives and expiries, among values that stay. Promise 1.
#[test]
fn the_next_deadline_is_that_of_an_oracle() {
    for seed in 0..20 {
        let (timer, clock) = manual();
        let (queue, mut random) = (DelayQueue::new(&timer), fastrand::Rng::with_seed(seed));
        let mut waiting = BTreeMap::new();
        let mut keys = Vec::new();
        for step in 0..3_000_u64 {
            let at = timer.now() + ms(1 + random.u64(..2_000));
            match random.u8(..10) {
                0..=3 => {
                    let key = queue.insert_at(step, at).expect("it is open");
                    waiting.insert(step, at);
                    keys.push((step, key));
                }
                4..=6 if !keys.is_empty() => {
                    let (number, key) = keys[random.usize(..keys.len())];
                    assert_eq!(queue.reset_at(&key, at), waiting.contains_key(&number));
                    waiting.entry(number).and_modify(|due| *due = at);
                }
                7 if !keys.is_empty() => {
                    let (number, key) = keys.swap_remove(random.usize(..keys.len()));
                    assert_eq!(queue.remove(&key).is_some(), waiting.remove(&number).is_some());
                }
                8 => {
                    clock.advance(ms(random.u64(..40)));
                    while let Some(expired) = queue.try_recv() {
                        let due = waiting.remove(&expired.value).expect("it comes out once");
                        assert!(due <= timer.now() && expired.deadline == due);
                    }
                }
                _ => {}
            }
            // Not at each step, so that the queue has several changes to take in.
            if random.bool() {
                assert_eq!(
                    queue.peek_deadline(),
                    waiting.values().min().copied(),
                    "seed {seed}, step {step}"
                );
            }
        }
    }
}

/// While one thread inserts, resets and removes far values, another one always finds a near one that
/// is there all the time, or the earlier time that this is moved to.
#[test]
fn the_next_deadline_is_right_beside_other_threads() {
    let (timer, _clock) = manual();
    let (queue, start, done) = (DelayQueue::new(&timer), timer.now(), AtomicBool::new(false));
    let mut near = 500_000;
    let key = queue.insert(0, ms(near)).expect("it is open");
    thread::scope(|scope| {
        let others: Vec<_> = (0..2)
            .map(|seed| {
                let (queue, done) = (&queue, &done);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    let mut far = || HOUR + ms(random.u64(..100_000));
                    while !done.load(Ordering::Relaxed) {
                        let keys = [(); 8].map(|()| queue.insert(1, far()).expect("it is open"));
                        keys.iter().for_each(|key| assert!(queue.reset(key, far())));
                        keys.iter().for_each(|key| assert!(queue.remove(key).is_some()));
                    }
                })
            })
            .collect();
        for _ in 0..2_000 {
            assert_eq!(queue.peek_deadline(), Some(start + ms(near)));
            near -= 100;
            assert!(queue.reset(&key, ms(near)));
            assert_eq!(queue.peek_deadline(), Some(start + ms(near)));
            assert!(queue.remove(&queue.insert(2, ms(near - 50)).expect("it is open")).is_some());
        }
        done.store(true, Ordering::Relaxed);
        others.into_iter().for_each(|other| other.join().expect("it does not panic"));
    });
}
