//! The calls that go over all entries: what they show, what they take out, and what may happen between
//! two entries.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use shardwheel::{ManualClock, ScheduleErrorKind, Timer};
use shardwheel_compat::{ExpiringMap, InsertErrorKind};

use super::{HOUR, SECOND, Scene};

fn filled(keys: u32) -> Scene {
    let scene = Scene::new(100);
    (0..keys).for_each(|key| _ = scene.map.insert(key, key * 10, HOUR).unwrap());
    scene
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort();
    items
}

#[test]
fn after_a_shutdown_all_that_is_left_can_be_saved_and_restored() {
    let Scene { map, clock, reports, timer } = filled(50);
    map.insert(50, 500, SECOND).unwrap();
    drop(timer.shutdown());
    clock.advance(2 * SECOND);
    let refused = map.insert(51, 510, SECOND).unwrap_err();
    assert_eq!(refused.kind(), InsertErrorKind::Timer(ScheduleErrorKind::ShutDown));
    assert_eq!(refused.into_entry(), (51, 510));
    assert_eq!((map.iter().count(), map.len()), (50, 51), "nothing reports the one that has expired");
    let saved = sorted(map.drain().map(|(key, value, left)| (key, *value, left)));
    assert_eq!((saved.len(), saved[50]), (51, (50, 500, Duration::ZERO)));
    assert!(saved[..50].iter().all(|(_, _, left)| *left == HOUR - 2 * SECOND));
    assert!(map.is_empty() && reports.lock().unwrap().is_empty());

    let next = Scene::new(100);
    for (key, value, left) in saved {
        next.map.insert(key, value, left).unwrap();
    }
    next.clock.advance(HOUR);
    assert_eq!((next.reports().len(), next.reports()[0].1), (51, 50));
}

#[test]
fn an_iterator_meets_what_was_done_before_it_comes_to_an_entry() {
    let Scene { map, clock, reports, timer } = filled(10);
    let mut left = map.iter();
    let (first, _) = left.next().unwrap();
    map.retain(|key, _| *key == first || key % 2 == 0);
    map.insert(first, 1, HOUR).unwrap(); // has been shown
    for key in (0..10).filter(|key| key % 2 == 0 && *key != first) {
        map.insert(key, 7, if key == 4 { SECOND } else { HOUR }).unwrap();
    }
    map.insert(99, 7, HOUR).unwrap();
    clock.advance(SECOND);
    let left = sorted(left.map(|(key, value)| (key, *value)).filter(|(key, _)| *key != 99));
    let expected = (0..10).filter(|key| key % 2 == 0 && *key != first && *key != 4);
    assert_eq!(left, expected.map(|key| (key, 7)).collect::<Vec<_>>());
    assert_eq!(reports.lock().unwrap().len(), usize::from(first != 4));
    assert_eq!(map.len(), timer.stats().pending);
}

/// A new entry of the key, and an expired one, are not the entry that `keep` was asked about.
#[test]
fn retain_removes_no_other_entry_than_that_which_it_has_shown() {
    let Scene { map, clock, reports, .. } = filled(1);
    map.retain(|key, _| {
        map.insert(*key, 1, SECOND).unwrap();
        false
    });
    assert_eq!(map.get(&0).as_deref(), Some(&1));
    map.retain(|_, _| {
        clock.advance(SECOND);
        false
    });
    assert_eq!((map.len(), &*reports.lock().unwrap()), (0, &vec![(SECOND, 0, 1)]));
    // Expired, and not reported yet.
    let micros = Duration::from_micros(1_500);
    map.insert(2, 20, micros).unwrap();
    map.retain(|_, _| {
        clock.advance(micros);
        false
    });
    assert_eq!((map.len(), map.peek(&2)), (1, None));
    clock.advance(SECOND);
    assert_eq!((map.len(), reports.lock().unwrap().len()), (0, 2));
}

#[test]
fn a_loop_and_a_predicate_may_use_the_map_in_any_way() {
    let scene = filled(20);
    let map = &scene.map;
    for (key, value) in map.iter() {
        map.insert(key, *value + 1, HOUR).unwrap();
        map.insert(key + 40, 0, HOUR).unwrap();
        assert!(map.remove(&(key + 40)).is_some() && map.extend(&key, 2 * HOUR));
    }
    assert_eq!(map.iter().filter(|(_, value)| **value % 10 == 1).count(), 20);
    map.retain(|key, _| {
        map.retain(|inner, _| inner != key);
        map.len() > 5 // each was removed by the inner call
    });
    assert_eq!((map.len(), scene.pending()), (0, 0));
    (0..20).for_each(|key| _ = map.insert(key, 0, HOUR).unwrap());
    for _entry in map.drain() {
        map.clear();
    }
    assert_eq!((map.len(), scene.pending()), (0, 0));
}

/// A key and a value that panic in the call of the user's code that is armed.
struct Trap(u32, &'static Armed);

#[derive(Default)]
struct Armed {
    hash: AtomicBool,
    eq: AtomicBool,
    clone: AtomicBool,
    drop: AtomicBool,
    drops: AtomicUsize,
}

fn spring(armed: &AtomicBool) {
    assert!(!armed.swap(false, Ordering::Relaxed), "a trap");
}

impl PartialEq for Trap {
    fn eq(&self, other: &Self) -> bool {
        spring(&self.1.eq);
        self.0 == other.0
    }
}

impl Eq for Trap {}

impl Hash for Trap {
    fn hash<H: Hasher>(&self, state: &mut H) {
        spring(&self.1.hash);
        self.0.hash(state);
    }
}

impl Clone for Trap {
    fn clone(&self) -> Self {
        spring(&self.1.clone);
        Self(self.0, self.1)
    }
}

struct Mine(&'static Armed);

impl Drop for Mine {
    fn drop(&mut self) {
        self.0.drops.fetch_add(1, Ordering::Relaxed);
        spring(&self.0.drop);
    }
}

type Trapped = ExpiringMap<Trap, Mine>;

fn is_panic(code: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(code)).is_err()
}

/// No lock is left, and no entry is lost or doubled: all 20 are dropped once in the end.
#[test]
fn user_code_that_panics_leaves_the_map_whole() {
    type Call = fn(&Trapped);
    let calls: [(&str, Call); 5] = [
        ("iter", |map| _ = map.iter().count()),
        ("keys", |map| _ = map.keys().count()),
        ("retain", |map| map.retain(|_, _| false)),
        ("drain", |map| map.drain().for_each(drop)),
        ("clear", |map| map.clear()),
    ];
    for (name, call) in calls {
        let traps: [fn(&Armed) -> &AtomicBool; 4] = [|a| &a.hash, |a| &a.eq, |a| &a.clone, |a| &a.drop];
        for trap in traps {
            let armed: &Armed = Box::leak(Box::default());
            let (clock, reports) = (ManualClock::new(), Arc::new(AtomicUsize::new(0)));
            let timer = Timer::builder().shards(1).clock(clock.clone()).build().unwrap();
            let count = Arc::clone(&reports);
            let map = Trapped::new(&timer, 20, move |_, _, _| _ = count.fetch_add(1, Ordering::Relaxed));
            for key in 0..20 {
                assert!(map.insert(Trap(key, armed), Mine(armed), HOUR).unwrap().is_none());
            }
            trap(armed).store(true, Ordering::Relaxed);
            let has_panicked = is_panic(|| call(&map));
            let is_reader = matches!(name, "iter" | "keys"); // drops no value
            assert_eq!(has_panicked, !trap(armed).load(Ordering::Relaxed));
            assert!(has_panicked || is_reader, "{name}");
            trap(armed).store(false, Ordering::Relaxed);
            let left = map.iter().count();
            assert_eq!((map.len(), timer.stats().pending), (left, left));
            assert_eq!(armed.drops.load(Ordering::Relaxed), 20 - left, "{name}");
            // Each part of the table is free.
            (0..20).filter(|key| map.remove(&Trap(*key, armed)).is_none()).for_each(|key| {
                map.insert(Trap(key, armed), Mine(armed), HOUR).unwrap();
                assert!(map.remove(&Trap(key, armed)).is_some());
            });
            clock.advance(2 * HOUR);
            assert_eq!((map.len(), timer.stats().pending, reports.load(Ordering::Relaxed)), (0, 0, 0));
        }
    }
}

#[test]
fn a_predicate_that_panics_keeps_the_entries_that_it_was_not_asked_about() {
    let scene = filled(10);
    let mut asked = Vec::new();
    assert!(is_panic(|| scene.map.retain(|key, _| {
        asked.push(*key);
        assert!(asked.len() < 4, "the fourth");
        false
    })));
    assert_eq!((scene.map.len(), scene.pending()), (7, 7));
    assert!(asked[..3].iter().all(|key| scene.map.get(key).is_none()));
    scene.clock.advance(HOUR);
    assert_eq!((scene.reports().len(), scene.map.len()), (7, 0));
}

#[test]
fn clear_drops_all_values_also_if_a_drop_panics() {
    let armed: &Armed = Box::leak(Box::default());
    let timer = Timer::new().unwrap();
    let map = ExpiringMap::new(&timer, 100, |_, _: u32, _: Arc<Mine>| ());
    (0..100).for_each(|key| assert!(map.insert(key, Mine(armed), HOUR).unwrap().is_none()));
    armed.drop.store(true, Ordering::Relaxed);
    assert!(is_panic(|| map.clear()));
    assert_eq!((map.len(), timer.stats().pending, armed.drops.load(Ordering::Relaxed)), (0, 0, 100));
}

/// A value whose drop uses the map.
struct Returns(u32, &'static OnceLock<ExpiringMap<u32, Returns>>);

impl Drop for Returns {
    fn drop(&mut self) {
        let map = self.1.get().unwrap();
        assert_eq!(map.iter().count(), map.keys().count());
        if self.0 > 0 {
            map.insert(self.0, Returns(self.0 - 1, self.1), HOUR).unwrap();
        }
    }
}

#[test]
fn the_drop_of_a_value_may_use_the_map() {
    let map: &'static OnceLock<_> = Box::leak(Box::new(OnceLock::new()));
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).build().unwrap();
    let map = (map.get_or_init(|| ExpiringMap::new(&timer, 100, |_, _, _| ())), map);
    let (map, home) = map;
    (0..50).for_each(|key| _ = map.insert(100 + key, Returns(1, home), HOUR).unwrap());
    map.clear(); // the drops bring key 1 back, each time
    assert_eq!((map.len(), timer.stats().pending), (1, 1));
    (0..50).for_each(|key| _ = map.insert(100 + key, Returns(2, home), HOUR).unwrap());
    map.retain(|key, _| *key < 100);
    assert_eq!(sorted(map.keys()), [1, 2]);
    map.drain().for_each(drop);
    map.clear();
    map.clear();
    assert_eq!((map.len(), timer.stats().pending), (0, 0));
}
