//! Bounds, and the ends of entries, of the map and of the timer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shardwheel::{ManualClock, Timer};
use shardwheel_compat::{ExpiringMap, InsertErrorKind};

use super::{HOUR, SECOND, Scene};

#[test]
fn a_map_without_room_refuses_everything() {
    let scene = Scene::new(0);
    let refused = scene.map.insert(1, 10, SECOND).unwrap_err();
    assert_eq!(refused.kind(), InsertErrorKind::Full { limit: 0 });
    assert_eq!(refused.to_string(), "there is no room: the map has 0 entries, which is its limit");
    assert!(scene.map.is_empty() && scene.pending() == 0);
}

#[test]
fn no_time_to_live_is_over_at_once() {
    let Scene { map, clock, reports, .. } = Scene::new(2);
    for key in [1, 2] {
        map.insert(key, 10, Duration::ZERO).unwrap();
        assert_eq!((map.get(&key), map.len()), (None, 1));
        clock.advance(Duration::from_millis(1));
        assert_eq!((map.len(), reports.lock().unwrap().len()), (0, key as usize));
    }
}

#[test]
fn nothing_is_kept_of_an_entry_that_has_ended() {
    let clock = ManualClock::new();
    let timer = Timer::builder().shards(1).clock(clock.clone()).build().unwrap();
    let map = ExpiringMap::new(&timer, 10, |_, key: Arc<u32>, value: Arc<Arc<u32>>| {
        // The map has given up both.
        assert_eq!((Arc::strong_count(&key), Arc::strong_count(&value)), (3, 1));
    });
    let [key, value] = [7, 70].map(Arc::new);
    let insert = || map.insert(Arc::clone(&key), Arc::clone(&value), SECOND).unwrap();
    insert();
    assert!(map.remove(&7).is_some_and(|value| Arc::into_inner(value).is_some()));
    assert_eq!((Arc::strong_count(&key), Arc::strong_count(&value)), (1, 1), "removed");
    insert();
    assert!(insert().is_some_and(|value| Arc::into_inner(value).is_some()));
    assert_eq!((Arc::strong_count(&key), Arc::strong_count(&value)), (3, 2), "replaced");
    clock.advance(SECOND);
    assert_eq!((Arc::strong_count(&key), Arc::strong_count(&value)), (1, 1), "expired");
    assert_eq!((map.len(), timer.stats().pending, timer.stats().panics), (0, 0, 0));
}

/// Counts its drop, and may panic in it.
struct Dropped(Arc<AtomicUsize>, bool);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        assert!(!self.1 || std::thread::panicking(), "a drop");
    }
}

#[test]
fn a_map_that_is_dropped_cancels_its_timers_and_drops_each_value() {
    for panics in [false, true] {
        let (timer, drops) = (Timer::new().unwrap(), Arc::new(AtomicUsize::new(0)));
        let map = ExpiringMap::new(&timer, 1_000, |_, _: u32, _| unreachable!("an hour early"));
        for key in 0..1_000 {
            map.insert(key, Dropped(Arc::clone(&drops), panics && key % 400 == 0), HOUR).unwrap();
        }
        let clone = map.clone();
        drop(map);
        assert_eq!((drops.load(Ordering::Relaxed), timer.stats().pending), (0, 1_000));
        assert_eq!(catch_unwind(AssertUnwindSafe(|| drop(clone))).is_err(), panics);
        assert_eq!((drops.load(Ordering::Relaxed), timer.stats().pending), (1_000, 0));
        assert_eq!(timer.stats().panics, 0);
    }
}

#[test]
fn a_map_may_end_in_its_own_report() {
    let clock = ManualClock::new();
    let timer = Timer::builder().shards(1).clock(clock.clone()).build().unwrap();
    let (last, drops) = (Arc::new(std::sync::Mutex::new(None)), Arc::new(AtomicUsize::new(0)));
    let handle = Arc::clone(&last);
    let map = ExpiringMap::new(&timer, 10, move |_, _: u32, _| drop(handle.lock().unwrap().take()));
    (0..10).for_each(|key| _ = map.insert(key, Dropped(Arc::clone(&drops), true), SECOND).unwrap());
    *last.lock().unwrap() = Some(map);
    clock.advance(SECOND);
    assert_eq!((drops.load(Ordering::Relaxed), timer.stats().pending), (10, 0));
    assert!(timer.stats().panics > 0, "it has reported the drops that panicked");
}

/// It is on the timer itself, not a member of the group.
#[test]
fn a_map_outlives_the_group_that_it_was_made_with() {
    let (clock, reports) = (ManualClock::new(), Arc::new(AtomicUsize::new(0)));
    let timer = Timer::builder().clock(clock.clone()).build().unwrap();
    let (group, count) = (timer.group(), Arc::clone(&reports));
    let map = ExpiringMap::new(&group, 10, move |_, _: u32, _: Arc<u32>| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    map.insert(1, 10, SECOND).unwrap();
    assert!(group.is_empty());
    group.cancel_all();
    drop(group);
    map.insert(2, 20, SECOND).unwrap();
    assert_eq!((map.get(&1).as_deref(), map.len()), (Some(&10), 2));
    clock.advance(SECOND);
    assert_eq!((reports.load(Ordering::Relaxed), map.len()), (2, 0));
}

#[test]
fn the_map_keeps_its_timer() {
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).build().unwrap();
    let (reports, weak) = (Arc::new(AtomicUsize::new(0)), timer.downgrade());
    let count = Arc::clone(&reports);
    let map = ExpiringMap::new(&timer, 10, move |_, _: u32, _: Arc<u32>| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    drop(timer);
    map.insert(1, 10, SECOND).unwrap();
    clock.advance(SECOND);
    assert_eq!(reports.load(Ordering::Relaxed), 1);
    drop(map);
    assert!(weak.upgrade().is_none());
}
