//! Random calls beside a model that is a list of entries.

use std::time::Duration;

use proptest::prelude::*;
use shardwheel::{ScheduleErrorKind, Timer};
use shardwheel_compat::{Expiry, InsertErrorKind};

use super::Scene;

const LIMIT: usize = 3;
const TICK: Duration = Duration::from_millis(1);
/// No clock comes here.
const NEVER: Duration = Duration::from_nanos(u64::MAX);

#[derive(Clone, Copy, Debug)]
enum Call {
    Insert(u32, Duration),
    /// With a time to idle, and a time to live.
    InsertIdle(u32, Duration, Duration),
    Extend(u32, Duration),
    GetAndExtend(u32, Duration),
    Remove(u32),
    Get(u32),
    /// All that are alive.
    Iter,
    /// Keeps the keys whose bits are set.
    Retain(u32),
    /// Takes out so many.
    Drain(usize),
    Clear,
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
        3 => (key(), time(), time()).prop_map(|(key, idle, ttl)| Call::InsertIdle(key, idle, ttl)),
        2 => (key(), time()).prop_map(|(key, ttl)| Call::Extend(key, ttl)),
        2 => (key(), time()).prop_map(|(key, ttl)| Call::GetAndExtend(key, ttl)),
        1 => key().prop_map(Call::Remove),
        4 => key().prop_map(Call::Get),
        1 => Just(Call::Iter),
        1 => (0_u32..32).prop_map(Call::Retain),
        1 => (0_usize..4).prop_map(Call::Drain),
        1 => Just(Call::Clear),
        5 => time().prop_map(|by| Call::Advance(by.min(Duration::from_secs(30_000)))),
    ]
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u32,
    value: u32,
    deadline: Duration,
    /// What a use extends it by, and until when.
    idle: Duration,
    last: Duration,
}

impl Entry {
    /// The tick at which it is reported.
    fn reported(&self) -> Duration {
        tick_for(self.deadline)
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
    fn insert(&mut self, key: u32, value: u32, ttl: Duration, idle: Duration) -> Result<Option<u32>, ()> {
        let replaced = self.take(key);
        if replaced.is_none() && self.entries.len() == LIMIT {
            return Err(());
        }
        let (deadline, last) = (self.deadline(ttl.min(idle)), self.deadline(ttl));
        self.entries.push(Entry { key, value, deadline, idle, last });
        Ok(replaced)
    }

    fn extend(&mut self, key: u32, ttl: Duration) -> bool {
        let deadline = self.deadline(ttl);
        self.seen(key).map(|entry| entry.deadline = entry.deadline.max(deadline)).is_some()
    }

    fn get(&mut self, key: u32) -> Option<u32> {
        let now = self.now;
        let entry = self.seen(key)?;
        let end = now.saturating_add(entry.idle).min(entry.last);
        entry.deadline = entry.deadline.max(end);
        Some(entry.value)
    }

    fn all_seen(&self) -> Vec<(u32, u32)> {
        let seen = self.entries.iter().filter(|entry| entry.deadline > self.now);
        let mut seen: Vec<_> = seen.map(|entry| (entry.key, entry.value)).collect();
        seen.sort_unstable();
        seen
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
        Call::Insert(key, ttl) => insert_both(scene, model, (key, value), ttl, Duration::MAX),
        Call::InsertIdle(key, idle, ttl) => insert_both(scene, model, (key, value), ttl, idle),
        Call::Extend(key, ttl) => assert_eq!(map.extend(&key, ttl), model.extend(key, ttl)),
        Call::GetAndExtend(key, ttl) => {
            let expected = model.get(key);
            model.extend(key, ttl);
            assert_eq!(map.get_and_extend(&key, ttl).map(|value| *value), expected);
        }
        Call::Remove(key) => {
            let expected = if model.seen(key).is_some() { model.take(key) } else { None };
            assert_eq!(map.remove(&key).map(|old| *old), expected);
        }
        Call::Get(key) => {
            let seen = model.seen(key).map(|entry| entry.value);
            assert_eq!((map.peek(&key).map(|value| *value), model.get(key)), (seen, seen));
            assert_eq!(map.get(&key).map(|value| *value), seen);
            check_deadline(scene, model, key);
        }
        Call::Advance(by) => {
            scene.clock.advance(by);
            model.advance(by);
        }
        Call::Iter | Call::Retain(_) | Call::Drain(_) | Call::Clear => all_both(scene, model, call),
    }
}

fn insert_both(scene: &Scene, model: &mut Model, entry: (u32, u32), ttl: Duration, idle: Duration) {
    let (key, value) = entry;
    let expiry = if idle == Duration::MAX { ttl.into() } else { Expiry::time_to_idle(idle).within(ttl) };
    match scene.map.insert(key, value, expiry) {
        Ok(replaced) => assert_eq!(Ok(replaced.map(|old| *old)), model.insert(key, value, ttl, idle)),
        Err(refused) => {
            assert_eq!(refused.kind(), InsertErrorKind::Full { limit: LIMIT });
            assert_eq!(refused.into_entry(), (key, value));
            assert_eq!(model.insert(key, value, ttl, idle), Err(()));
        }
    }
}

fn check_deadline(scene: &Scene, model: &mut Model, key: u32) {
    let left = scene.map.deadline(&key).map(|deadline| deadline - scene.timer.now());
    let expected = model.seen(key).map(|entry| entry.deadline).map(|deadline| deadline - model.now);
    // A time to live that never ends does not count from the clock's start.
    assert!(left == expected || expected.is_some_and(|left| left > NEVER / 2), "{left:?} {expected:?}");
}

/// The calls that go over all entries.
fn all_both(scene: &Scene, model: &mut Model, call: Call) {
    let map = &scene.map;
    match call {
        Call::Retain(kept) => {
            map.retain(|key, _| kept >> key & 1 == 1);
            let now = model.now;
            model.entries.retain(|entry| entry.deadline <= now || kept >> entry.key & 1 == 1);
        }
        Call::Drain(count) => {
            let expected = count.min(model.entries.len());
            let taken = map.drain().take(count).map(|(key, value, left)| {
                let entry = *model.entries.iter().find(|entry| entry.key == key).expect("it is there");
                let expected = entry.deadline.saturating_sub(model.now);
                assert!(left == expected || expected > NEVER / 2, "{left:?} {expected:?}");
                assert_eq!(model.take(key), Some(*value));
            });
            assert_eq!(taken.count(), expected);
        }
        Call::Clear => {
            map.clear();
            model.entries.clear();
        }
        _ => {
            let mut shown: Vec<_> = map.iter().map(|(key, value)| (key, *value)).collect();
            shown.sort_unstable();
            assert_eq!(shown, model.all_seen());
            let mut keys: Vec<_> = map.keys().collect();
            keys.sort_unstable();
            assert!(keys.into_iter().eq(shown.into_iter().map(|(key, _)| key)));
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
