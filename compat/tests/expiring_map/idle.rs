//! Entries that last from use to use: what `model.rs` does not count.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use shardwheel::{ManualClock, Timer};
use shardwheel_compat::{ExpiringMap, Expiry};

use super::{HOUR, SECOND, Scene};

fn idle(time: Duration) -> Expiry {
    Expiry::time_to_idle(time)
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

/// A timer with a slack: an entry is not seen after its deadline, and reported within the slack.
#[test]
fn a_map_with_a_slack() {
    let clock = ManualClock::new();
    let timer = Timer::builder().slack(60 * SECOND).clock(clock.clone()).build().unwrap();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let (log, time) = (Arc::clone(&reports), clock.clone());
    let map =
        ExpiringMap::new(&timer, 10, move |_, _: u32, _: Arc<u32>| log.lock().unwrap().push(time.elapsed()));
    map.insert(1, 10, 601 * SECOND).unwrap();
    clock.advance(601 * SECOND);
    assert_eq!(map.get(&1), None);
    clock.advance(HOUR);
    let [at] = reports.lock().unwrap()[..] else { panic!("it has ended once") };
    assert!(at >= 601 * SECOND && at <= 662 * SECOND, "{at:?}");
}
