use super::*;
use crate::clock::Clock;

struct Setting {
    keys: Keyspace,
    advancer: shardwheel::Advancer<Due>,
}

impl Setting {
    fn new() -> Self {
        let (scheduler, advancer) = timers();
        let mut keys = Keyspace::new(Time::new(Clock::start_now()), scheduler, Placement::new(1));
        keys.events.wanted = Class::EXPIRED;
        Self { keys, advancer }
    }

    fn set(&mut self, key: &str, deadline: Option<Deadline>) -> u32 {
        let hash = self.keys.placement.hash(key.as_bytes());
        let place = self.keys.set_value(hash, key.as_bytes(), b"value", None);
        deadline.into_iter().for_each(|deadline| self.keys.set_deadline(place, deadline));
        place
    }

    fn pass(&mut self, milliseconds: u64) {
        self.keys.time.skip(milliseconds);
        while self.keys.step() {}
        let now = self.keys.time.tick();
        for fired in self.advancer.advance(now) {
            let Due::Key(place) = fired.payload else { panic!("no clients") };
            self.keys.fired(fired.key, place);
        }
        self.keys.check();
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
        it.keys.clock_was_set();
        it.pass(10);
        let has = |keys: &mut Keyspace, key: &str| {
            keys.find(keys.placement.hash(key.as_bytes()), key.as_bytes()).is_some()
        };
        assert_eq!(has(&mut it.keys, "date"), !expected.0, "step {step}");
        assert!(has(&mut it.keys, "duration"), "step {step}");
        it.pass(2_000);
        assert!(!has(&mut it.keys, "duration"));
        assert_eq!(has(&mut it.keys, "date"), expected.1);
        it.pass(10_000);
        assert_eq!((it.keys.store.slab.len(), it.keys.counts.expired), (0, 2));
    }
}

#[test]
fn a_timer_of_a_flushed_key_ends_no_other_key() {
    let mut it = Setting::new();
    let deadline = it.keys.time.after(100);
    let old = it.set("old", deadline);
    it.keys.flush();
    assert_eq!(it.set("new", None), old, "the same place");
    let now = it.keys.time.tick() + 200;
    it.keys.time.skip(200);
    for fired in it.advancer.advance(now) {
        it.keys.fired(fired.key, old);
    }
    assert_eq!(it.keys.store.slab.len(), 1);
    it.pass(1);
}

#[test]
fn a_key_that_is_looked_at_late_is_gone_before_its_timer() {
    let mut it = Setting::new();
    let deadline = it.keys.time.after(100);
    it.set("key", deadline);
    it.keys.time.skip(101);
    assert_eq!(it.keys.find(it.keys.placement.hash(b"key"), b"key"), None);
    it.pass(1);
    assert_eq!((it.keys.store.slab.len(), it.keys.counts.expired), (0, 1));
}
