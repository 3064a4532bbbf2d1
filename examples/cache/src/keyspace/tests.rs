use super::*;
use crate::clock::Clock;

struct Setting {
    keys: Keyspace,
    advancer: shardwheel::Advancer<Due>,
}

impl Setting {
    fn new() -> Self {
        let (scheduler, advancer) = timers();
        let time = Time::new(Clock::start_now());
        let mut keys = Keyspace::new(time, scheduler, Placement::new(1), Arc::default());
        keys.events.wanted = Class::EXPIRED;
        Self { keys, advancer }
    }

    fn hash(&self, key: &str) -> u64 {
        self.keys.store.placement.hash(key.as_bytes())
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
        it.keys.clock_was_set();
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

#[test]
fn a_key_that_is_looked_at_late_is_gone_before_its_timer() {
    let mut it = Setting::new();
    let deadline = it.keys.time.after(100);
    it.set("key", deadline);
    it.keys.time.skip(101);
    assert!(!it.has("key"));
    it.pass(1);
    assert_eq!(it.counts(), (0, 1));
}
