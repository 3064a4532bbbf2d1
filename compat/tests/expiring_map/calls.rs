//! What user code may do while the map calls it.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use shardwheel::{ManualClock, Timer};
use shardwheel_compat::ExpiringMap;

use super::{HOUR, SECOND, Scene};

#[test]
fn a_report_may_use_the_map() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).build().unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&log);
    // Each key comes back twice, removes its neighbour and extends key 0. The map has room for no more.
    let map = ExpiringMap::new(&timer, 3, move |map, key: u32, lives: Arc<u32>| {
        assert_eq!(map.get(&key), None);
        seen.lock().unwrap().push((key, *lives));
        if *lives > 0 {
            assert_eq!(map.insert(key, *lives - 1, SECOND).unwrap(), None);
        }
        map.remove(&(key + 1));
        map.extend(&0, HOUR);
    });
    map.insert(0, 0, 5 * SECOND).unwrap();
    map.insert(1, 2, SECOND).unwrap();
    map.insert(2, 0, 2 * SECOND).unwrap();
    clock.advance(10 * SECOND);
    assert_eq!(*log.lock().unwrap(), [(1, 2), (1, 1), (1, 0)]);
    assert_eq!((map.len(), map.get(&0).as_deref()), (1, Some(&0)));
    clock.advance(HOUR);
    assert_eq!((map.len(), timer.stats().pending, timer.stats().panics), (0, 0, 0));
    assert_eq!(log.lock().unwrap().len(), 4);
}

#[test]
fn a_report_that_panics_ends_its_entry_alone() {
    let clock = ManualClock::new();
    let timer = Timer::builder().shards(1).clock(clock.clone()).build().unwrap();
    let reports = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reports);
    let map = ExpiringMap::new(&timer, 10, move |_, key: u32, _: Arc<()>| {
        count.fetch_add(1, Ordering::Relaxed);
        assert_ne!(key % 2, 0, "an even key");
    });
    (0..10).for_each(|key| _ = map.insert(key, (), SECOND).unwrap());
    clock.advance(HOUR);
    assert_eq!((reports.load(Ordering::Relaxed), timer.stats().panics), (10, 5));
    assert_eq!((map.len(), timer.stats().pending), (0, 0));
    map.insert(1, (), SECOND).unwrap();
    clock.advance(SECOND);
    assert_eq!(reports.load(Ordering::Relaxed), 11);
}

/// A key whose hash lets time pass, once it is armed; it may also panic.
#[derive(Clone)]
struct Slow {
    clock: ManualClock,
    armed: Arc<AtomicBool>,
    panics: bool,
}

impl PartialEq for Slow {
    fn eq(&self, other: &Self) -> bool {
        assert!(!self.panics && !other.panics, "an equality");
        true
    }
}

impl Eq for Slow {}

impl Hash for Slow {
    /// The table hashes a key before it takes a lock.
    fn hash<H: Hasher>(&self, _state: &mut H) {
        if self.armed.swap(false, Ordering::Relaxed) {
            self.clock.advance(10 * SECOND);
        }
    }
}

#[test]
fn an_alarm_that_fires_before_its_entry_is_placed_looks_again() {
    let clock = ManualClock::new();
    let timer = Timer::builder().shards(1).clock(clock.clone()).build().unwrap();
    let (reports, armed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let count = Arc::clone(&reports);
    let map = ExpiringMap::new(&timer, 10, move |_, _: Slow, _: Arc<u32>| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let key = Slow { clock: clock.clone(), armed: Arc::clone(&armed), panics: false };
    armed.store(true, Ordering::Relaxed);
    map.insert(key.clone(), 1, SECOND).unwrap();
    assert_eq!((clock.elapsed(), map.len()), (10 * SECOND, 1));
    assert_eq!((map.get(&key), reports.load(Ordering::Relaxed)), (None, 0));
    clock.advance(20 * SECOND);
    assert_eq!((map.len(), reports.load(Ordering::Relaxed), timer.stats().pending), (0, 1, 0));
    // About as often as the time could be doubled.
    assert!(timer.stats().fired < 30, "{}", timer.stats().fired);
}

#[test]
fn an_equality_that_panics_leaves_no_alarm() {
    let clock = ManualClock::new();
    let timer = Timer::builder().shards(1).clock(clock.clone()).build().unwrap();
    let map = ExpiringMap::new(&timer, 10, |_, _: Slow, _: Arc<u32>| ());
    let key = |panics| Slow { clock: clock.clone(), armed: Arc::default(), panics };
    map.insert(key(false), 1, SECOND).unwrap();
    let insert = std::panic::AssertUnwindSafe(|| map.insert(key(true), 2, SECOND).map(drop));
    assert!(std::panic::catch_unwind(insert).is_err());
    assert_eq!((map.len(), timer.stats().pending), (1, 1));
    clock.advance(SECOND);
    assert_eq!((map.len(), timer.stats().pending, timer.stats().panics), (0, 0, 0));
}

#[test]
fn an_extended_entry_is_reported_at_its_last_deadline() {
    let scene = Scene::new(10);
    scene.map.insert(1, 10, SECOND).unwrap();
    for _ in 0..100 {
        scene.clock.advance(SECOND / 2);
        assert!(scene.map.extend(&1, SECOND));
        assert!(scene.map.extend(&1, SECOND / 4), "it is seen, and keeps its deadline");
    }
    scene.clock.advance(HOUR);
    assert_eq!(scene.reports(), [(51 * SECOND, 1, 10)]);
    assert!(scene.timer.stats().fired <= 101, "one look in each time to live");
}
