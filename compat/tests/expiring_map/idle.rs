//! Entries that last from use to use.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use shardwheel::{Clock, ManualClock, Timer};
use shardwheel_compat::ExpiringMap;

use super::{HOUR, SECOND, Scene};

#[test]
fn an_idle_entry_ends_a_given_time_after_its_last_get() {
    let scene = Scene::new(10);
    scene.map.insert_idle(1, 10, SECOND).unwrap();
    scene.map.insert(2, 20, SECOND).unwrap();
    for _ in 0..10 {
        scene.clock.advance(SECOND * 9 / 10);
        assert_eq!(scene.map.get(&1).as_deref(), Some(&10));
        _ = scene.map.get(&2); // does not extend
    }
    assert_eq!(scene.map.deadline(&1), Some(scene.timer.now() + SECOND));
    scene.clock.advance(HOUR);
    assert_eq!(scene.reports(), [(SECOND, 2, 20), (10 * SECOND, 1, 10)]);
    assert_eq!((scene.map.len(), scene.pending()), (0, 0));
}

#[test]
fn an_idle_entry_that_nothing_gets_ends() {
    let Scene { map, clock, reports, .. } = Scene::new(10);
    map.insert_idle(1, 10, 2 * SECOND).unwrap();
    clock.advance(SECOND);
    // None of these is a use.
    assert!(map.deadline(&1).is_some() && map.iter().count() == 1 && map.keys().count() == 1);
    map.retain(|_, _| true);
    assert!(!map.is_empty());
    clock.advance(SECOND);
    assert_eq!((map.get(&1), reports.lock().unwrap().len()), (None, 1));
}

#[test]
fn a_get_never_shortens_an_idle_entry() {
    let Scene { map, clock, timer, .. } = Scene::new(10);
    map.insert_idle(1, 10, SECOND).unwrap();
    assert!(map.extend(&1, HOUR) && map.get(&1).is_some());
    assert_eq!(map.deadline(&1), Some(timer.now() + HOUR));
    clock.advance(HOUR - SECOND / 2);
    assert!(map.get(&1).is_some());
    assert_eq!(map.deadline(&1), Some(timer.now() + SECOND));
    // An insert replaces the time to idle as well.
    map.insert(1, 11, SECOND).unwrap();
    clock.advance(SECOND / 2);
    assert_eq!(map.get(&1).as_deref(), Some(&11));
    clock.advance(SECOND / 2);
    assert_eq!(map.get(&1), None);
}

#[test]
fn get_and_extend_returns_what_it_extends() {
    let Scene { map, clock, timer, .. } = Scene::new(10);
    map.insert(1, 10, SECOND).unwrap();
    assert_eq!(map.get_and_extend(&1, HOUR).as_deref(), Some(&10));
    assert_eq!(map.get_and_extend(&1, SECOND).as_deref(), Some(&10));
    assert_eq!(map.deadline(&1), Some(timer.now() + HOUR), "it is not shortened");
    assert_eq!(map.get_and_extend(&2, HOUR), None);
    clock.advance(HOUR);
    assert_eq!((map.get_and_extend(&1, HOUR), map.len()), (None, 0));
    map.insert_idle(3, 30, Duration::MAX).unwrap();
    assert!(map.get(&3).is_some() && map.get_and_extend(&3, Duration::MAX).is_some());
    clock.advance(1_000_000 * HOUR);
    assert!(map.get(&3).is_some());
    map.insert_idle(4, 40, Duration::ZERO).unwrap();
    assert_eq!((map.get(&4), map.get_and_extend(&4, HOUR)), (None, None));
}

/// A clock that runs code between its reading and its return, once, when it is armed.
#[derive(Clone)]
struct Stalls {
    time: Arc<Mutex<Instant>>,
    meanwhile: Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>,
}

impl Clock for Stalls {
    fn now(&self) -> Instant {
        let read = *self.time.lock().unwrap();
        // The lock is free while the code runs, which reads the clock.
        let meanwhile = self.meanwhile.try_lock().ok().and_then(|mut code| code.take());
        meanwhile.into_iter().for_each(|code| code());
        read
    }
}

type Map = ExpiringMap<u32, u32>;

/// A call reads the time, and is stopped before it looks at the entry. Meanwhile the entry expires,
/// and another call finds it so.
fn call_with_a_late_look(insert: impl Fn(&Map), call: impl Fn(&Map) -> bool) {
    let clock = Stalls { time: Arc::new(Mutex::new(Instant::now())), meanwhile: Arc::default() };
    // The driver never turns: no alarm takes the entry out.
    let (timer, _driver) = Timer::builder().shards(1).clock(clock.clone()).build_driven().unwrap();
    let map = Map::new(&timer, 10, |_, _, _| ());
    insert(&map);
    assert!(map.deadline(&1).is_some());
    let (time, of_map, was_gone) = (Arc::clone(&clock.time), map.clone(), Arc::new(OnceLock::new()));
    let seen = Arc::clone(&was_gone);
    *clock.meanwhile.lock().unwrap() = Some(Box::new(move || {
        *time.lock().unwrap() += HOUR;
        seen.set(of_map.deadline(&1).is_none()).unwrap();
    }));
    let was_seen = call(&map);
    assert_eq!(was_gone.get(), Some(&true), "it was found expired");
    assert!(!was_seen, "a call shows it after that");
    assert_eq!((map.get(&1), map.deadline(&1), map.iter().count()), (None, None, 0), "it lives again");
}

#[test]
fn no_call_revives_what_another_has_found_expired() {
    let plain = |map: &Map| drop(map.insert(1, 10, SECOND).unwrap());
    let idle = |map: &Map| drop(map.insert_idle(1, 10, SECOND).unwrap());
    call_with_a_late_look(plain, |map| map.extend(&1, 2 * HOUR));
    call_with_a_late_look(plain, |map| map.get_and_extend(&1, 2 * HOUR).is_some());
    call_with_a_late_look(plain, |map| map.get(&1).is_some());
    call_with_a_late_look(plain, |map| map.deadline(&1).is_some());
    call_with_a_late_look(plain, |map| map.remove(&1).is_some());
    call_with_a_late_look(plain, |map| map.iter().count() > 0);
    call_with_a_late_look(plain, |map| {
        let mut shown = 0;
        map.retain(|_, _| {
            shown += 1;
            true
        });
        shown > 0
    });
    call_with_a_late_look(idle, |map| map.get(&1).is_some());
}

/// In a scope the map goes by the time of the scope, and no call needs a clock of the program.
#[test]
fn a_map_in_a_scope_goes_by_its_time() {
    let clock = ManualClock::new();
    let ((), _waiting) = clock.scope(|| {
        let map = ExpiringMap::new(Timer::global(), 10, |_, _: u32, _: Arc<u32>| ());
        map.insert_idle(1, 10, 10 * SECOND).unwrap();
        clock.advance(9 * SECOND);
        assert_eq!(map.iter().map(|entry| entry.remaining).collect::<Vec<_>>(), [SECOND]);
        assert!(map.get(&1).is_some());
        clock.advance(9 * SECOND);
        let left: Vec<_> = map.drain().map(|entry| (entry.key, *entry.value, entry.remaining)).collect();
        assert_eq!((left, map.len()), (vec![(1, 10, SECOND)], 0));
    });
}
