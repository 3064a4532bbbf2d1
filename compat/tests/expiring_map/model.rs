//! Random calls beside a model that is a list of entries.

use std::time::Duration;

use proptest::prelude::*;
use shardwheel::{ScheduleErrorKind, Timer};
use shardwheel_compat::InsertErrorKind;

use super::Scene;

const LIMIT: usize = 3;
const TICK: Duration = Duration::from_millis(1);
/// No clock comes here.
const NEVER: Duration = Duration::from_nanos(u64::MAX);

#[derive(Clone, Copy, Debug)]
enum Call {
    Insert(u32, Duration),
    Extend(u32, Duration),
    Remove(u32),
    Get(u32),
    Advance(Duration),
}

/// More than zero: where that is due depends on what the timer has done last, in this tick or the next.
fn time() -> impl Strategy<Value = Duration> {
    prop_oneof![
        8 => (1_u64..5_000).prop_map(Duration::from_micros),
        2 => (1_u64..5).prop_map(Duration::from_millis),
        2 => (1_u64..20_000).prop_map(Duration::from_secs),
        1 => Just(Duration::MAX),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let key = || 0_u32..5;
    prop_oneof![
        5 => (key(), time()).prop_map(|(key, ttl)| Call::Insert(key, ttl)),
        3 => (key(), time()).prop_map(|(key, ttl)| Call::Extend(key, ttl)),
        1 => key().prop_map(Call::Remove),
        2 => key().prop_map(Call::Get),
        5 => time().prop_map(|by| Call::Advance(by.min(Duration::from_secs(30_000)))),
    ]
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u32,
    value: u32,
    deadline: Duration,
    /// When the alarm looks, at the earliest.
    alarm: Duration,
}

impl Entry {
    /// The tick at which it is reported.
    fn reported(&self) -> Duration {
        tick_for(self.deadline).max(self.alarm)
    }
}

fn tick_for(time: Duration) -> Duration {
    let ticks = time.as_nanos().div_ceil(TICK.as_nanos());
    Duration::from_nanos(u64::try_from(ticks * TICK.as_nanos()).unwrap_or(u64::MAX))
}

#[derive(Default)]
struct Model {
    now: Duration,
    entries: Vec<Entry>,
    reports: Vec<(Duration, u32, u32)>,
}

impl Model {
    fn deadline(&self, ttl: Duration) -> Duration {
        self.now.saturating_add(ttl).min(NEVER)
    }

    fn seen(&mut self, key: u32) -> Option<&mut Entry> {
        let now = self.now;
        self.entries.iter_mut().find(|entry| entry.key == key && entry.deadline > now)
    }

    fn take(&mut self, key: u32) -> Option<u32> {
        let place = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.swap_remove(place).value)
    }

    /// `Err` if the map is full.
    fn insert(&mut self, key: u32, value: u32, ttl: Duration) -> Result<Option<u32>, ()> {
        let replaced = self.take(key);
        if replaced.is_none() && self.entries.len() == LIMIT {
            return Err(());
        }
        let deadline = self.deadline(ttl);
        self.entries.push(Entry { key, value, deadline, alarm: tick_for(deadline) });
        Ok(replaced)
    }

    fn extend(&mut self, key: u32, ttl: Duration) -> bool {
        let deadline = self.deadline(ttl);
        self.seen(key).map(|entry| entry.deadline = entry.deadline.max(deadline)).is_some()
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
        let now = self.now;
        let over = self.entries.extract_if(.., |entry| entry.reported() <= now);
        self.reports.extend(over.map(|entry| (entry.reported(), entry.key, entry.value)));
    }
}

fn call_both(scene: &Scene, model: &mut Model, call: Call, value: u32) {
    let map = &scene.map;
    match call {
        Call::Insert(key, ttl) => match map.insert(key, value, ttl) {
            Ok(replaced) => assert_eq!(Ok(replaced.map(|old| *old)), model.insert(key, value, ttl)),
            Err(refused) => {
                assert_eq!(refused.kind(), InsertErrorKind::Full { limit: LIMIT });
                assert_eq!(refused.into_entry(), (key, value));
                assert_eq!(model.insert(key, value, ttl), Err(()));
            }
        },
        Call::Extend(key, ttl) => assert_eq!(map.extend(&key, ttl), model.extend(key, ttl)),
        Call::Remove(key) => {
            let expected = if model.seen(key).is_some() { model.take(key) } else { None };
            assert_eq!(map.remove(&key).map(|old| *old), expected);
        }
        Call::Get(key) => {
            let seen = model.seen(key).map(|entry| (entry.value, entry.deadline));
            assert_eq!(map.get(&key).map(|value| *value), seen.map(|(value, _)| value));
            let left = map.deadline(&key).map(|deadline| deadline - scene.timer.now());
            let expected = seen.map(|(_, deadline)| deadline - model.now);
            // A time to live that never ends does not count from the clock's start.
            assert!(
                left == expected || expected.is_some_and(|left| left > NEVER / 2),
                "{left:?} {expected:?}"
            );
        }
        Call::Advance(by) => {
            scene.clock.advance(by);
            model.advance(by);
        }
    }
}

fn check(scene: &Scene, model: &mut Model) {
    assert_eq!(scene.map.len(), model.entries.len());
    assert_eq!(scene.pending(), model.entries.len(), "an alarm for each entry");
    let mut reports = scene.reports();
    assert!(reports.is_sorted_by_key(|report| report.0));
    reports.sort_unstable();
    model.reports.sort_unstable();
    assert_eq!(reports, model.reports);
}

proptest! {
    #[test]
    fn the_map_agrees_with_a_list(calls in prop::collection::vec(call(), 1..60)) {
        let (scene, mut model) = (Scene::new(LIMIT), Model::default());
        for (value, call) in (0..).zip(calls) {
            call_both(&scene, &mut model, call, value);
            check(&scene, &mut model);
        }
    }
}

#[test]
fn a_refusal_of_the_timer_changes_nothing() {
    let timer = Timer::builder().max_pending(1).build().unwrap();
    let map = shardwheel_compat::ExpiringMap::new(&timer, 9, |_, _: u32, _: std::sync::Arc<u32>| ());
    map.insert(1, 10, super::HOUR).unwrap();
    // A replacement needs a second timer for a moment.
    for key in [1, 2] {
        let refused = map.insert(key, 20, super::HOUR).unwrap_err();
        assert_eq!(refused.kind(), InsertErrorKind::Timer(ScheduleErrorKind::Full { limit: 1 }));
        assert!(refused.to_string().contains("1 timers are pending"), "{refused}");
        assert_eq!(refused.into_entry(), (key, 20));
    }
    assert_eq!((map.get(&1).as_deref(), map.get(&2), map.len()), (Some(&10), None, 1));
}
