//! Random operations against a model, and periods: cases from timeout.c, ratas and Akka.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use shardwheel::{Advancer, Key, Scheduler, Tick, shard};

use crate::rig::{WHEEL_SIZES, config, drain};

/// Operations in one random run.
const STEPS: usize = 2_000;

/// Keys of ended timers that a run keeps, to try them again.
const OLD_KEYS: usize = 64;

/// How far timers are set ahead, and how far the clock moves: both are random up to these, with all
/// orders of magnitude alike.
#[derive(Clone, Copy, Debug)]
struct Scale {
    delay: Tick,
    step: Tick,
}

/// The five scales of case 36, from within the finest wheel to years ahead.
const SCALES: [Scale; 5] = [
    Scale { delay: 100, step: 1 },
    Scale { delay: 10_000, step: 100 },
    Scale { delay: 1 << 24, step: 1 << 14 },
    Scale { delay: 1 << 36, step: 1 << 24 },
    Scale { delay: 1 << 50, step: 1 << 31 },
];

/// A shard and a model of its contents, which each operation compares.
struct Model {
    scheduler: Scheduler<u64>,
    advancer: Advancer<u64>,
    rng: Rng,
    scale: Scale,
    clock: Tick,
    /// What is pending, by payload.
    timers: BTreeMap<u64, (Tick, Key)>,
    /// The same, by deadline.
    order: BTreeSet<(Tick, u64)>,
    /// Keys of ended timers.
    old: Vec<Key>,
    next: u64,
}

impl Model {
    fn new(wheel_size: usize, start: Tick, scale: Scale, seed: u64) -> Self {
        let (scheduler, advancer) = shard(&config(wheel_size, start));
        let (timers, order, old) = Default::default();
        Self {
            scheduler,
            advancer,
            rng: Rng::with_seed(seed),
            scale,
            clock: start,
            timers,
            order,
            old,
            next: 0,
        }
    }

    fn step(&mut self) {
        match self.rng.u8(..16) {
            0..=6 => self.schedule(),
            7..=8 => self.cancel(),
            9..=11 => self.reschedule(),
            12 => self.use_old_key(),
            _ => {
                let now = self.clock + magnitude(&mut self.rng, self.scale.step);
                self.advance(now);
            }
        }
        self.check();
    }

    /// A random tick after the clock.
    fn ahead(&mut self) -> Tick {
        self.clock.saturating_add(magnitude(&mut self.rng, self.scale.delay))
    }

    fn insert(&mut self, id: u64, deadline: Tick, key: Key) {
        self.timers.insert(id, (deadline, key));
        self.order.insert((deadline, id));
    }

    fn remove(&mut self, id: u64) -> (Tick, Key) {
        let (deadline, key) = self.timers.remove(&id).expect("the shard named a timer that is not pending");
        self.order.remove(&(deadline, id));
        (deadline, key)
    }

    /// Keeps the key of an ended timer; it replaces an older one.
    fn retire(&mut self, key: Key) {
        if self.old.len() == OLD_KEYS {
            let place = self.rng.usize(..OLD_KEYS);
            self.old.swap_remove(place);
        }
        self.old.push(key);
    }

    fn schedule(&mut self) {
        let (id, deadline) = (self.next, self.ahead());
        let key = self.scheduler.schedule(deadline, id).expect("the shard is open and has no bound");
        self.insert(id, deadline, key);
        self.next += 1;
    }

    /// A random pending timer.
    fn pick(&mut self) -> Option<u64> {
        let from = self.rng.u64(..=self.next);
        self.timers.range(from..).next().or_else(|| self.timers.iter().next()).map(|(&id, _)| id)
    }

    fn cancel(&mut self) {
        let Some(id) = self.pick() else { return };
        let (_, key) = self.remove(id);
        assert_eq!(self.scheduler.cancel(key), Some(id));
        self.retire(key);
    }

    fn reschedule(&mut self) {
        let Some(id) = self.pick() else { return };
        let (_, key) = self.remove(id);
        let deadline = self.ahead();
        let moved = self.scheduler.reschedule(key, deadline).expect("the timer is pending");
        self.insert(id, deadline, moved);
        if moved != key {
            self.retire(key);
        }
    }

    fn use_old_key(&mut self) {
        let Some(&key) = self.rng.choice(&self.old) else { return };
        assert_eq!(self.scheduler.cancel(key), None, "an old key cancelled something");
        assert_eq!(self.scheduler.reschedule(key, self.clock), None, "an old key moved something");
    }

    fn advance(&mut self, now: Tick) {
        let next = self.advancer.next_expiration();
        let fired = self.advancer.advance(now).map(|f| (f.key, f.deadline, f.payload)).collect::<Vec<_>>();
        assert!(fired.is_sorted_by_key(|&(_, deadline, _)| deadline));
        assert!(fired.is_empty() || next.is_some_and(|next| next <= now), "fired before {next:?}, at {now}");
        for (key, deadline, id) in fired {
            assert_eq!(self.remove(id), (deadline, key));
            assert!(self.clock < deadline && deadline <= now, "{deadline} at {now}");
            self.retire(key);
        }
        self.clock = now;
        assert!(self.first().is_none_or(|first| first > now), "due by {now} and not fired");
    }

    /// The earliest pending deadline.
    fn first(&self) -> Option<Tick> {
        self.order.first().map(|&(deadline, _)| deadline)
    }

    fn check(&self) {
        assert_eq!((self.scheduler.len(), self.scheduler.now()), (self.timers.len(), self.clock));
        if let Some(first) = self.first() {
            let next = self.advancer.next_expiration();
            assert!(next.is_some_and(|next| next <= first), "{first} is due, the shard says {next:?}");
        }
    }

    /// Plays all steps, then advances past the last deadline, where nothing is left.
    fn finish(mut self) {
        (0..STEPS).for_each(|_| self.step());
        self.advance(self.clock.saturating_add(self.scale.delay));
        self.check();
        assert!(self.timers.is_empty(), "left over: {:?}", self.order);
        assert_eq!(self.advancer.next_expiration(), None);
    }
}

/// A number from 1 to `most`, with all orders of magnitude alike.
fn magnitude(rng: &mut Rng, most: u64) -> u64 {
    (rng.u64(1..=most) >> rng.u32(..=most.ilog2())).max(1)
}

/// Random schedules, cancels, reschedules and advances, in five scales. A timer fires in the first
/// advance that reaches its deadline, not before `next_expiration`, not twice, and not after a
/// cancel. The count is right throughout, old keys do nothing, and all timers that are due by the
/// end have fired. Promises 1, 2, 4 and 6.
#[test]
fn random_operations_match_a_model() {
    for size in WHEEL_SIZES {
        for (seed, scale) in (36..).zip(SCALES) {
            Model::new(size, 0, scale, seed).finish();
        }
    }
}

/// The same from clocks that start elsewhere, up to near the end of time: a wheel's arithmetic must
/// not depend on where zero is. Promises 1 and 4.
#[test]
fn random_operations_match_a_model_from_any_start() {
    for start in [1, 255, (1 << 32) - 1, (1 << 36) - 50, u64::MAX / 2, u64::MAX - (1 << 51)] {
        for (seed, scale) in (360..).zip(SCALES) {
            Model::new(16, start, scale, seed).finish();
        }
    }
}

/// A shard whose timers are scheduled again, one period later, whenever they fire.
struct Periods {
    scheduler: Scheduler<usize>,
    advancer: Advancer<usize>,
    periods: Vec<Tick>,
    start: Tick,
    fires: Vec<u64>,
}

impl Periods {
    fn new(start: Tick, periods: &[Tick]) -> Self {
        let (scheduler, advancer) = shard(&config(16, start));
        for (i, period) in periods.iter().enumerate() {
            scheduler.schedule(start + period, i).expect("the shard is open");
        }
        Self { scheduler, advancer, periods: periods.to_vec(), start, fires: vec![0; periods.len()] }
    }

    /// Advances to `now`, again and again until the timers that were scheduled for the past have
    /// fired too.
    fn at(&mut self, now: Tick) {
        loop {
            let fired = drain(&mut self.advancer, now);
            fired.iter().for_each(|&(deadline, i)| self.fire(deadline, i));
            if fired.is_empty() {
                break;
            }
        }
    }

    fn fire(&mut self, deadline: Tick, i: usize) {
        let period = self.periods[i];
        assert_eq!((deadline - self.start) % period, 0, "a period of {period} drifted");
        self.fires[i] += 1;
        self.scheduler.schedule(deadline + period, i).expect("the shard is open");
    }

    /// Compares how often each timer has fired with how often it should have.
    fn check(&self, elapsed: Tick) {
        let expected = self.periods.iter().map(|period| elapsed / period).collect::<Vec<_>>();
        assert_eq!(self.fires, expected, "after {elapsed} ticks");
    }
}

const PRIMES: [Tick; 25] =
    [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97];

/// Timers whose periods are the primes up to 97, and timers whose periods are 1, 7, 191 and 1337.
/// At every tick each has fired as often as its period has passed, always a whole number of periods
/// after the start. Promise 1.
#[test]
fn periodic_timers_do_not_drift_tick_by_tick() {
    for (start, periods) in
        [(0, &PRIMES[..]), (1_001, &PRIMES), (0, &[1, 7, 191, 1337]), (77, &[1, 7, 191, 1337])]
    {
        let mut timers = Periods::new(start, periods);
        for elapsed in 1..3_000 {
            timers.at(start + elapsed);
            timers.check(elapsed);
        }
    }
}

/// The same by jumps over several periods: a timer that is scheduled for a past tick fires at once,
/// so no occurrence is skipped and none drifts. (`Timer` has schedules that skip missed
/// occurrences.) Promises 1 and 4.
#[test]
fn periodic_timers_do_not_drift_over_jumps() {
    for periods in [&PRIMES[..], &[1, 7, 191, 1337]] {
        let (mut timers, mut rng, mut elapsed) = (Periods::new(0, periods), Rng::with_seed(37), 0);
        while elapsed < 10_000 {
            elapsed += rng.u64(1..500);
            timers.at(elapsed);
            timers.check(elapsed);
        }
    }
}
