//! Bounds, and the ends of entries, of the map and of the timer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use shardwheel::{Clock, ManualClock, Timer};
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

/// A clock that shows what it is set to, in seconds, earlier times as well.
#[derive(Clone)]
struct SetClock(Instant, Arc<AtomicU64>);

impl Clock for SetClock {
    fn now(&self) -> Instant {
        self.0 + Duration::from_millis(self.1.load(Ordering::SeqCst))
    }
}

impl SetClock {
    fn set(&self, millis: u64) {
        self.1.store(millis, Ordering::SeqCst);
    }
}

/// The timer's tick is an hour: the shard's time is far behind the clock that the calls read.
#[test]
fn what_was_found_expired_stays_so_when_the_clock_goes_back() {
    let clock = SetClock(Instant::now(), Arc::default());
    let timer = Timer::builder().shards(1).tick(HOUR).clock(clock.clone()).build().unwrap();
    let reports = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reports);
    let map = ExpiringMap::new(&timer, 1_000, move |_, _: u64, _: Arc<u64>| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let mut seen_again = 0;
    for round in 0..200_u64 {
        let begin = round * 10_000;
        clock.set(begin + 2_000);
        map.insert(round, round, SECOND).unwrap();
        assert!(map.get(&round).is_some());
        clock.set(begin + 3_000);
        match round % 4 {
            0 => assert!(map.get(&round).is_none()),
            1 => assert!(map.deadline(&round).is_none()),
            2 => assert!(!map.extend(&round, SECOND)),
            _ => assert!(map.remove(&round).is_none()),
        }
        clock.set(begin + 2_400); // back by 600 ms
        let seen = [map.get(&round).is_some(), map.deadline(&round).is_some(), map.extend(&round, HOUR)];
        seen_again += usize::from(seen.contains(&true) || map.remove(&round).is_some());
    }
    assert_eq!(seen_again, 0, "of 200");
    // A new entry counts from there as well.
    clock.set(1_000_000);
    map.insert(0, 0, SECOND).unwrap();
    clock.set(1_994_500);
    assert_eq!(map.get(&0), None);
    clock.set(8 * 3_600_000);
    let begin = Instant::now();
    while reports.load(Ordering::SeqCst) < 200 && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!((reports.load(Ordering::SeqCst), map.len()), (200, 0));
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
