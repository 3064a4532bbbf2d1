//! Threads that use one key, and few keys, while entries expire. Each value ends once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::Timer;
use shardwheel_compat::{ExpiringMap, Expiry};

const PATIENCE: Duration = Duration::from_secs(60);
const CALLS: u64 = 20_000;

/// Counts of values.
#[derive(Default)]
struct Ledger {
    inserted: AtomicU64,
    replaced: AtomicU64,
    removed: AtomicU64,
    expired: AtomicU64,
    drained: AtomicU64,
    /// Dropped by the map itself: what `retain` and `clear` take out.
    discarded: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
}

struct Value {
    ledger: Arc<Ledger>,
    earliest: Instant,
    /// Whether a call has got it as the entry's end.
    has_ended: AtomicBool,
}

impl Value {
    fn new(ledger: &Arc<Ledger>, ttl: Duration) -> Self {
        let (ledger, has_ended) = (Arc::clone(ledger), AtomicBool::new(false));
        Self { ledger, earliest: Instant::now() + ttl, has_ended }
    }

    fn end(&self, count: &AtomicU64) {
        assert!(!self.has_ended.swap(true, Ordering::AcqRel), "it ends once");
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        if !*self.has_ended.get_mut() {
            self.ledger.discarded.fetch_add(1, Ordering::Relaxed);
        }
        self.ledger.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

type Map = ExpiringMap<u64, Value>;

/// A cheap random number.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn insert(map: &Map, ledger: &Arc<Ledger>, key: u64, expiry: Expiry, earliest: Duration) {
    match map.insert(key, Value::new(ledger, earliest), expiry) {
        Ok(replaced) => {
            ledger.inserted.fetch_add(1, Ordering::Relaxed);
            replaced.into_iter().for_each(|value| value.end(&ledger.replaced));
        }
        Err(refused) => refused.into_entry().1.end(&ledger.refused),
    }
}

fn write(map: &Map, ledger: &Arc<Ledger>, keys: u64, seed: u64) {
    let mut state = seed;
    for _ in 0..CALLS {
        let (key, micros) = (draw(&mut state) % keys, draw(&mut state) % 3_000);
        let ttl = Duration::from_micros(micros);
        match draw(&mut state) % 100 {
            0..25 => insert(map, ledger, key, ttl.into(), ttl),
            25..40 => insert(map, ledger, key, Expiry::time_to_idle(ttl / 3).within(ttl), ttl / 3),
            40..50 => _ = map.extend(&key, ttl),
            50..60 => _ = map.get_and_extend(&key, ttl),
            60..70 => _ = map.get(&key),
            70..78 => map.remove(&key).into_iter().for_each(|value| value.end(&ledger.removed)),
            78 => map.drain().for_each(|(_, value, _)| value.end(&ledger.drained)),
            79 => map.drain().take(1).for_each(|(_, value, _)| value.end(&ledger.drained)),
            80 => map.retain(|kept, _| *kept != key),
            81 => map.clear(),
            82..90 => thread::yield_now(),
            _ => thread::sleep(Duration::from_micros(micros / 20)),
        }
    }
}

/// A value that has ended is not seen again.
fn read(map: &Map, keys: u64, is_over: &AtomicBool) {
    let mut last = (0..keys).map(|_| None::<Arc<Value>>).collect::<Vec<_>>();
    while !is_over.load(Ordering::Relaxed) {
        assert!(map.iter().count() <= keys as usize, "a key is shown twice");
        for (key, last) in (0..).zip(&mut last) {
            let had_ended = last.as_ref().is_some_and(|value| value.has_ended.load(Ordering::Acquire));
            let seen = map.peek(&key);
            if let (true, Some(last), Some(seen)) = (had_ended, &last, &seen) {
                assert!(!Arc::ptr_eq(last, seen), "it was seen after its end");
            }
            *last = seen;
        }
    }
}

fn hammer(keys: u64, limit: usize) {
    let (timer, ledger) = (Timer::builder().shards(2).build().unwrap(), Arc::new(Ledger::default()));
    let of_map = Arc::clone(&ledger);
    let map = Map::new(&timer, limit, move |_, _, value| {
        assert!(Instant::now() >= value.earliest, "early");
        value.end(&of_map.expired);
    });
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| read(&map, keys, &is_over));
        let writers = [1, 2, 3].map(|seed| {
            scope.spawn({
                let (map, ledger) = (&map, &ledger);
                move || write(map, ledger, keys, seed)
            })
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        insert(&map, &ledger, 0, Duration::from_millis(1).into(), Duration::ZERO); // and nothing follows it
        let begin = Instant::now();
        while !(map.is_empty() && timer.stats().pending == 0) {
            assert!(begin.elapsed() < PATIENCE, "{map:?} {:?}", timer.stats());
            thread::sleep(Duration::from_millis(1));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    settle(&ledger);
    assert!(ledger.expired.load(Ordering::Relaxed) > 0);
    assert!((ledger.refused.load(Ordering::Relaxed) > 0) == (limit < keys as usize));
    assert_eq!(timer.stats().panics, 0);
}

/// Each value has ended once, and has been dropped.
fn settle(ledger: &Ledger) {
    let [inserted, refused, dropped] =
        [&ledger.inserted, &ledger.refused, &ledger.dropped].map(|count| count.load(Ordering::Relaxed));
    // The last report is counted before its value is dropped.
    let begin = Instant::now();
    while ledger.dropped.load(Ordering::Relaxed) < inserted + refused {
        assert!(begin.elapsed() < PATIENCE, "a value is kept: {dropped} of {inserted} + {refused} dropped");
        thread::yield_now();
    }
    let ends = [&ledger.replaced, &ledger.removed, &ledger.expired, &ledger.drained, &ledger.discarded]
        .map(|count| count.load(Ordering::Relaxed));
    println!(
        "{inserted} inserted, {refused} refused; replaced, removed, expired, drained, discarded: {ends:?}"
    );
    assert_eq!(inserted, ends.iter().sum::<u64>());
    assert_eq!(ledger.dropped.load(Ordering::Relaxed), inserted + refused);
}

#[test]
fn each_value_of_one_key_ends_once() {
    hammer(1, 1);
}

#[test]
fn each_value_of_few_keys_ends_once_beside_a_bound() {
    hammer(8, 4);
}

/// What the timer has not reported by then, and only that, is in the map after it.
#[test]
fn a_shutdown_amid_all_calls_leaves_each_value_to_one_of_them() {
    for round in 0..20 {
        let (timer, ledger) = (Timer::builder().shards(2).build().unwrap(), Arc::new(Ledger::default()));
        let of_map = Arc::clone(&ledger);
        let map = Map::new(&timer, 64, move |_, _, value| value.end(&of_map.expired));
        thread::scope(|scope| {
            for seed in [1, 2, 3] {
                let (map, ledger) = (&map, &ledger);
                scope.spawn(move || {
                    let mut state = seed + round * 10;
                    for _ in 0..2_000 {
                        let (key, micros) = (draw(&mut state) % 100, draw(&mut state) % 2_000);
                        insert(map, ledger, key, Duration::from_micros(micros).into(), Duration::ZERO);
                        _ = map.get_and_extend(&(micros % 100), Duration::from_micros(100));
                    }
                });
            }
            thread::sleep(Duration::from_micros(round * 200));
            drop(timer.shutdown());
        });
        let left = map.len();
        let drained = map.drain().map(|(_, value, _)| value.end(&ledger.drained)).count();
        assert_eq!((drained, map.len()), (left, 0));
        settle(&ledger);
        assert_eq!(ledger.discarded.load(Ordering::Relaxed), 0);
    }
}
