//! Entries that last from use to use.

use std::sync::Arc;
use std::time::Duration;

use shardwheel::{ManualClock, Timer};
use shardwheel_compat::{ExpiringMap, Expiry};

use super::{HOUR, SECOND, Scene};

fn idle(time: Duration) -> Expiry {
    Expiry::time_to_idle(time)
}

#[test]
fn an_idle_entry_ends_a_given_time_after_its_last_get() {
    let scene = Scene::new(10);
    scene.map.insert(1, 10, idle(SECOND)).unwrap();
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

/// A million gets in one time to idle cost one look of the timer.
#[test]
fn a_use_is_no_timer_operation() {
    let scene = Scene::new(10);
    scene.map.insert(1, 10, idle(HOUR)).unwrap();
    let before = scene.timer.stats();
    for _ in 0..1_000_000 {
        assert!(scene.map.get(&1).is_some());
    }
    scene.clock.advance(SECOND);
    assert!(scene.map.get(&1).is_some());
    let after = scene.timer.stats();
    assert_eq!((after.scheduled, after.cancelled), (before.scheduled, before.cancelled));
    scene.clock.advance(2 * HOUR);
    assert_eq!(scene.reports(), [(HOUR + SECOND, 1, 10)]);
    assert_eq!(scene.timer.stats().fired - before.fired, 2, "at the first end, and at the last");
}

#[test]
fn an_idle_entry_that_nothing_uses_ends() {
    let Scene { map, clock, reports, .. } = Scene::new(10);
    map.insert(1, 10, idle(2 * SECOND)).unwrap();
    clock.advance(SECOND);
    // None of these is a use.
    assert!(map.peek(&1).is_some() && map.deadline(&1).is_some() && map.extend(&1, SECOND / 2));
    assert_eq!((map.iter().count(), map.keys().count(), map.is_empty()), (1, 1, false));
    map.retain(|_, _| true);
    clock.advance(SECOND);
    assert_eq!((map.get(&1), map.peek(&1), reports.lock().unwrap().len()), (None, None, 1));
}

#[test]
fn the_first_of_both_times_ends_an_entry() {
    let scene = Scene::new(10);
    scene.map.insert(1, 10, idle(4 * SECOND).within(10 * SECOND)).unwrap();
    scene.map.insert(2, 20, idle(4 * SECOND).within(10 * SECOND)).unwrap();
    scene.map.insert(3, 30, idle(4 * SECOND).within(2 * SECOND)).unwrap();
    for _ in 0..3 {
        scene.clock.advance(3 * SECOND);
        assert_eq!((scene.map.get(&1).as_deref(), scene.map.get(&3)), (Some(&10), None));
    }
    assert_eq!(scene.map.deadline(&1), Some(scene.timer.now() + SECOND), "not four");
    scene.clock.advance(HOUR);
    assert_eq!(scene.reports(), [(2 * SECOND, 3, 30), (4 * SECOND, 2, 20), (10 * SECOND, 1, 10)]);
}

#[test]
fn an_extension_goes_beyond_a_time_to_live_and_a_use_does_not_take_it_back() {
    let scene = Scene::new(10);
    scene.map.insert(1, 10, idle(SECOND).within(2 * SECOND)).unwrap();
    assert!(scene.map.extend(&1, HOUR));
    scene.clock.advance(HOUR - SECOND / 2);
    assert_eq!(scene.map.get(&1).as_deref(), Some(&10));
    assert_eq!(scene.map.deadline(&1), Some(scene.timer.now() + SECOND / 2));
    assert!(scene.map.get_and_extend(&1, SECOND).is_some());
    scene.clock.advance(HOUR);
    assert_eq!(scene.reports(), [(HOUR + SECOND / 2, 1, 10)]);
}

#[test]
fn a_get_never_shortens_an_idle_entry() {
    let Scene { map, clock, timer, .. } = Scene::new(10);
    map.insert(1, 10, idle(SECOND)).unwrap();
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
    map.insert(2, 20, idle(2 * SECOND)).unwrap();
    clock.advance(SECOND);
    assert_eq!(map.get_and_extend(&2, SECOND).as_deref(), Some(&20));
    assert_eq!(map.deadline(&2), Some(timer.now() + 2 * SECOND), "it is a use as well");
    clock.advance(HOUR);
    assert_eq!((map.get_and_extend(&1, HOUR), map.get_and_extend(&2, HOUR), map.len()), (None, None, 0));
}

#[test]
fn times_without_end_and_of_nothing() {
    let Scene { map, clock, .. } = Scene::new(10);
    map.insert(1, 10, idle(Duration::MAX)).unwrap();
    map.insert(2, 20, idle(HOUR).within(Duration::MAX)).unwrap();
    assert!(map.get(&1).is_some() && map.get_and_extend(&2, Duration::MAX).is_some());
    clock.advance(1_000_000 * HOUR);
    assert!(map.get(&1).is_some() && map.get(&2).is_some());
    let [none, all] = [Duration::ZERO, Duration::MAX];
    for (key, expiry) in [(3, idle(none)), (4, idle(all).within(none)), (5, idle(none).within(none))] {
        map.insert(key, 0, expiry).unwrap();
        assert_eq!(
            (map.get(&key), map.get_and_extend(&key, HOUR), map.extend(&key, HOUR)),
            (None, None, false)
        );
    }
    clock.advance(SECOND);
    assert_eq!(map.len(), 2);
}

/// In a scope the map goes by the time of the scope, and no call needs a clock of the program.
#[test]
fn a_map_in_a_scope_goes_by_its_time() {
    let clock = ManualClock::new();
    let ((), _waiting) = clock.scope(|| {
        let map = ExpiringMap::new(Timer::global(), 10, |_, _: u32, _: Arc<u32>| ());
        map.insert(1, 10, idle(10 * SECOND)).unwrap();
        clock.advance(9 * SECOND);
        assert!(map.get(&1).is_some());
        clock.advance(9 * SECOND);
        let left: Vec<_> = map.drain().map(|(key, value, left)| (key, *value, left)).collect();
        assert_eq!((left, map.len()), (vec![(1, 10, SECOND)], 0));
    });
}
