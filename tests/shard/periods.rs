//! Periods: cases from timeout.c and Akka. Random operations are compared with a model by the targets
//! `model` and `simulation`.

use fastrand::Rng;
use shardwheel::{Advancer, Scheduler, Tick, shard};

use crate::rig::{config, drain};

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
