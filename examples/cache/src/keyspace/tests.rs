use std::collections::HashMap;

use super::*;
use crate::clock::{Clock, Deadline};

struct Setting {
    keys: Keyspace,
    placement: Placement,
    advancer: shardwheel::Advancer<Due>,
}

impl Setting {
    fn new() -> Self {
        let (scheduler, advancer) = timers();
        let time = Time::new(Clock::start_now());
        let mut keys = Keyspace::new(time, scheduler, Arc::default());
        keys.events.wanted = Class::EXPIRED;
        Self { keys, placement: Placement::new(1, false), advancer }
    }

    fn hash(&self, key: &str) -> Hash {
        self.placement.of(key.as_bytes()).0
    }

    fn set(&mut self, key: &str, deadline: Option<Deadline>) -> Place {
        let place = self.keys.set_value(self.hash(key), key.as_bytes(), b"value", None);
        deadline.into_iter().for_each(|deadline| self.keys.set_deadline(place, deadline));
        place
    }

    fn has(&mut self, key: &str) -> bool {
        self.keys.find(self.hash(key), key.as_bytes()).is_some()
    }

    fn pass(&mut self, milliseconds: u64) {
        self.keys.time.skip(milliseconds);
        while self.keys.step() {}
        self.fire();
        self.keys.check();
    }

    fn fire(&mut self) {
        let now = self.keys.time.tick();
        for fired in self.advancer.advance(now) {
            let Due::Key(hash) = fired.payload else { panic!("no clients") };
            self.keys.fired(fired.key, hash);
        }
    }

    /// The number of keys, and of those that have expired.
    fn counts(&self) -> (usize, usize) {
        (self.keys.stats.get(Figure::Keys), self.keys.stats.get(Figure::Expired))
    }
}

#[test]
fn a_clock_that_is_set_moves_dates_and_not_durations() {
    for (step, expected) in [(5_000, (true, false)), (-5_000, (false, true))] {
        let mut it = Setting::new();
        let wall = it.keys.time.wall();
        it.set("date", Some(Deadline::at(wall + 2_000)));
        let duration = it.keys.time.after(2_000);
        it.set("duration", duration);
        it.keys.time.set_wall(wall + step);
        it.keys.recheck = 0;
        it.pass(10);
        assert_eq!(it.has("date"), !expected.0, "step {step}");
        assert!(it.has("duration"), "step {step}");
        it.pass(2_000);
        assert!(!it.has("duration"));
        assert_eq!(it.has("date"), expected.1);
        it.pass(10_000);
        assert_eq!(it.counts(), (0, 2));
    }
}

#[test]
fn a_timer_of_a_flushed_key_ends_no_other_key() {
    let mut it = Setting::new();
    let deadline = it.keys.time.after(100);
    it.set("key", deadline);
    it.keys.flush();
    it.set("key", None);
    it.keys.time.skip(200);
    it.fire();
    assert_eq!(it.counts(), (1, 0));
    it.pass(1);
}

/// Every operation beside a map; many keys, then few, so that tables grow and shrink.
#[test]
fn the_tables_agree_with_a_map() {
    let mut it = Setting::new();
    let mut model = HashMap::<String, Vec<u8>>::new();
    let mut seed = 1_u64;
    for step in 0..60_000_u64 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let growing = step / 15_000 % 2 == 0;
        let key = format!("key{}", (seed >> 33) % 9_000);
        let hash = it.hash(&key);
        let found = it.keys.find(hash, key.as_bytes());
        assert_eq!(found.map(|place| it.keys.get(place).value()), model.get(&key).map(|v| &v[..]));
        let value = vec![b'v'; (seed >> 20) as usize % 40];
        match found {
            Some(place) if !growing || step % 3 == 0 => {
                assert_eq!(it.keys.remove(place).key(), key.as_bytes());
                model.remove(&key);
            }
            None if !growing => {}
            found => {
                let place = it.keys.set_value(hash, key.as_bytes(), &value, found);
                assert_eq!(it.keys.get(place).value(), value);
                model.insert(key, value);
            }
        }
        assert_eq!(it.counts().0, model.len());
    }
    it.keys.check();
    let walked = (0..TABLES).map(|table| it.keys.living(table).count()).sum::<usize>();
    assert_eq!(walked, model.len());
    for key in model.keys() {
        let place = it.keys.find(it.hash(key), key.as_bytes()).expect("it is there");
        it.keys.remove(place);
    }
    assert_eq!((it.counts().0, it.keys.stats.get(Figure::KeyBytes)), (0, 0));
    assert!(it.keys.tables.iter().all(|table| table.capacity() == 0), "empty tables are given back");
}

/// Clients may flush, and set keys, as fast as they can.
#[test]
fn what_flushes_leave_does_not_grow() {
    let mut it = Setting::new();
    (0..100).for_each(|_| it.keys.flush());
    assert!(it.keys.discarded.is_empty(), "there were no keys");
    for round in 0..50 {
        for key in 0..10_000 {
            it.set(&format!("{round}-{key}"), None);
        }
        it.keys.step();
        it.keys.flush();
        let left: usize = it.keys.discarded.iter().map(|table| table.len()).sum();
        assert!((1..=20_000).contains(&left), "round {round}: {left} keys are left");
    }
    while it.keys.step() {}
    it.keys.check();
}
