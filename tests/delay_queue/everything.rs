//! The calls about all values: when the next one is due, which ones wait, and taking all out.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use shardwheel::{DelayQueue, ManualClock, Timer};

use crate::support::ledger::{End, Ledger};
use crate::support::{Built, HOUR, is_balanced, manual, ms, panics};

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

/// What a drain that is dropped early has not yielded stays in the queue, also if the caller's loop
/// panics. Promise 8.
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
    panics(move || {
        let _drained = drained;
        panic!("the loop panics");
    });
    while let Some(expired) = queue.try_recv() {
        expired.value.end(End::Fired);
    }
    clock.advance(ms(1));
    queue.try_recv().expect("it has expired").value.end(End::Fired);
    assert_eq!((queue.len(), ledger.count(End::Cancelled), ledger.count(End::Fired)), (0, 94, 7));
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

/// The next deadline is right after each step of a random sequence: of inserts, resets to earlier and
/// later times, removals, receives and expiries, among values that stay and one that never comes; and
/// none after a shutdown. Promise 1.
#[test]
fn the_next_deadline_is_that_of_an_oracle() {
    for seed in 0..20 {
        let (timer, clock) = manual();
        let (queue, mut random) = (DelayQueue::new(&timer), fastrand::Rng::with_seed(seed));
        let (mut waiting, mut keys) = (BTreeMap::new(), Vec::new());
        queue.insert(0, Duration::MAX).expect("it is open");
        assert_eq!(queue.peek_deadline(), None);
        for step in 1..3_000_u64 {
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
                    assert_eq!(queue.peek_deadline(), waiting.values().min().copied(), "not yet received");
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
        queue.insert_at(0, timer.now() + ms(1)).expect("it is open");
        drop(timer.shutdown());
        assert_eq!(queue.peek_deadline(), None);
    }
}
