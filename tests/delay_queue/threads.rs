//! Many threads at one queue, in real time, with the ledger: each value has one end.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{DelayQueue, QueueKey};

use crate::support::ledger::{End, Ledger, Payload};
use crate::support::{HOUR, in_time, is_balanced, ms, threads};

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

/// Each value comes out once, by the consumer, by a drain or by a removal, and by its own key; the
/// snapshot has it once meanwhile. Promise 2.
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
            for step in 0.. {
                if queue.is_empty() && workers.iter().all(|worker| worker.is_finished()) {
                    break;
                }
                if step % 100 == 99 {
                    let snapshot = queue.iter();
                    let (count, listed): (_, HashSet<_>) =
                        (snapshot.len(), snapshot.map(|(key, _)| key).collect());
                    assert_eq!(listed.len(), count, "a key is listed twice");
                    for (key, (payload, _)) in queue.drain().take(20) {
                        *seen.entry(key).or_default() += 1;
                        payload.end(End::HandedBack);
                    }
                }
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
        let ends = [End::Fired, End::Cancelled, End::HandedBack].map(|end| ledger.count(end));
        assert_eq!(ends.iter().sum::<usize>(), 3 * EACH);
        // On a busy machine this thread may come too late for a drain.
        assert!(ends[0] > 0 && ends[1] > 0, "{ends:?}");
        drop(queue);
        ledger.check_all_ended();
        is_balanced(&timer);
    });
}
