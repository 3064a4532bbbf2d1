//! Threads that use one key, and few keys, while entries expire. Each value ends once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::Timer;
use shardwheel_compat::ExpiringMap;

const PATIENCE: Duration = Duration::from_secs(60);
const CALLS: u64 = 20_000;

/// Counts of values.
#[derive(Default)]
struct Ledger {
    inserted: AtomicU64,
    replaced: AtomicU64,
    removed: AtomicU64,
    expired: AtomicU64,
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
        self.ledger.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

type Map = ExpiringMap<u64, Value>;

/// A cheap random number.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

fn insert(map: &Map, ledger: &Arc<Ledger>, key: u64, ttl: Duration) {
    match map.insert(key, Value::new(ledger, ttl), ttl) {
        Ok(replaced) => {
            ledger.inserted.fetch_add(1, Ordering::Relaxed);
            replaced.into_iter().for_each(|value| value.end(&ledger.replaced));
        }
        Err(refused) => {
            drop(refused.into_entry());
            ledger.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write(map: &Map, ledger: &Arc<Ledger>, keys: u64, seed: u64) {
    let mut state = seed;
    for _ in 0..CALLS {
        let (key, micros) = (draw(&mut state) % keys, draw(&mut state) % 3_000);
        let ttl = Duration::from_micros(micros);
        match draw(&mut state) % 10 {
            0..4 => insert(map, ledger, key, ttl),
            4..7 => _ = map.extend(&key, ttl),
            7 => map.remove(&key).into_iter().for_each(|value| value.end(&ledger.removed)),
            8 => thread::yield_now(),
            _ => thread::sleep(Duration::from_micros(micros / 20)),
        }
    }
}

/// A value that has ended is not seen again.
fn read(map: &Map, keys: u64, is_over: &AtomicBool) {
    let mut last = (0..keys).map(|_| None::<Arc<Value>>).collect::<Vec<_>>();
    while !is_over.load(Ordering::Relaxed) {
        for (key, last) in (0..).zip(&mut last) {
            let had_ended = last.as_ref().is_some_and(|value| value.has_ended.load(Ordering::Acquire));
            let seen = map.get(&key);
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
        insert(&map, &ledger, 0, Duration::from_millis(1)); // and nothing follows it
        let begin = Instant::now();
        while !(map.is_empty() && timer.stats().pending == 0) {
            assert!(begin.elapsed() < PATIENCE, "{map:?} {:?}", timer.stats());
            thread::sleep(Duration::from_millis(1));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let [inserted, replaced, removed, expired, refused] =
        [&ledger.inserted, &ledger.replaced, &ledger.removed, &ledger.expired, &ledger.refused]
            .map(|count| count.load(Ordering::Relaxed));
    println!(
        "{inserted} inserted, {replaced} replaced, {removed} removed, {expired} expired, {refused} refused"
    );
    assert_eq!(inserted, replaced + removed + expired);
    assert!(expired > 0 && (refused > 0) == (limit < keys as usize));
    // The last report is counted before its value is dropped.
    let begin = Instant::now();
    while ledger.dropped.load(Ordering::Relaxed) < inserted + refused {
        assert!(begin.elapsed() < PATIENCE, "a value is kept");
        thread::yield_now();
    }
    assert_eq!((ledger.dropped.load(Ordering::Relaxed), timer.stats().panics), (inserted + refused, 0));
}

#[test]
fn each_value_of_one_key_ends_once() {
    hammer(1, 1);
}

#[test]
fn each_value_of_few_keys_ends_once_beside_a_bound() {
    hammer(8, 4);
}

/// No thread touches the map, and the reports come.
#[test]
fn entries_expire_without_traffic() {
    let (sender, reports) = std::sync::mpsc::channel();
    let map = ExpiringMap::new(Timer::global(), 1_000, move |_, key: u32, _: Arc<()>| {
        sender.send((key, Instant::now())).unwrap();
    });
    let begin = Instant::now();
    (0..1_000).for_each(|key| _ = map.insert(key, (), Duration::from_micros(u64::from(key) * 50)).unwrap());
    for _ in 0..1_000 {
        let (key, at) = reports.recv_timeout(PATIENCE).unwrap();
        assert!(at - begin >= Duration::from_micros(u64::from(key) * 50), "early");
    }
    assert!(map.is_empty());
}
