//! `schedule_after` with a small closure, the reading of the clock included.
//!
//! A million timers are scheduled into an engine in which as many have fired, with delays uniform
//! over 30 minutes and a minute more, so that none fires meanwhile. An engine that can cancel then
//! cancels them and schedules them again, in nodes of cancelled timers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::timer::{Cancels, MILLISECOND, Schedules};
use crate::machine::back_memory;
use crate::passes::time;
use crate::suite::{Outcome, Task};
use crate::workload::{Spread, Workload};

pub(super) const AFTER_FIRED: &str = "schedule_after, after as many have fired, ns";
pub(super) const AFTER_CANCELLED: &str = "schedule_after, after as many were cancelled, ns";

const TIMERS: usize = if cfg!(test) { 1_000 } else { 1_000_000 };

/// Bytes a timer that are backed: more than an engine takes for a timer, its key and its closure.
const BYTES: usize = 256;
const SEED: u64 = 7;

/// No timer of the measured passes is due before this.
const OUT_OF_THE_WAY: Duration = Duration::from_secs(60);

/// The first deadline of the warm-up, for each of its timers: all are placed before it.
const WARM_UP_LEAD: Duration = Duration::from_micros(1);

/// For an engine that cannot cancel.
pub(super) fn schedule_alone<E: Schedules>(_: &Task) -> Outcome {
    let (bench, mut outcome) = (Bench::<E>::new(), Outcome::default());
    let mut keys = bench.fire_as_many();
    outcome.time(AFTER_FIRED, bench.schedule(&mut keys), TIMERS);
    outcome
}

/// For an engine that can.
pub(super) fn schedule_and_cancel<E: Cancels>(_: &Task) -> Outcome {
    let (bench, mut outcome) = (Bench::<E>::new(), Outcome::default());
    let mut keys = bench.fire_as_many();
    outcome.time(AFTER_FIRED, bench.schedule(&mut keys), TIMERS);
    let cancel = bench.cancel(&keys);
    outcome.time(AFTER_CANCELLED, bench.schedule(&mut keys), TIMERS);
    outcome.time("cancel, all in a row, ns", cancel, TIMERS);
    assert_eq!(bench.sum.load(Ordering::Relaxed), 0, "{} fired a cancelled timer", E::NAME);
    outcome
}

struct Bench<E> {
    engine: E,
    delays: Vec<Duration>,
    /// The sum of the numbers of all timers that fired.
    sum: &'static AtomicU64,
}

impl<E: Schedules> Bench<E> {
    fn new() -> Self {
        let work = Workload::new(Spread::ThirtyMinutes, TIMERS, SEED);
        back_memory(TIMERS * BYTES);
        let delay = |millis: &u64| OUT_OF_THE_WAY + Duration::from_millis(*millis);
        let delays = work.delays().iter().map(delay).collect();
        Self { engine: E::start(MILLISECOND), delays, sum: Box::leak(Box::default()) }
    }

    /// Schedules as many timers as the measured passes do, and waits until they have fired. Their
    /// keys are stale; the memory of the keys is touched.
    fn fire_as_many(&self) -> Vec<E::Key> {
        let mut rng = fastrand::Rng::with_seed(SEED);
        let lead = WARM_UP_LEAD * TIMERS as u32;
        let timers = 0..TIMERS as u64;
        let all = timers.clone().sum::<u64>();
        let keys = timers.map(|timer| self.one(lead + lead.mul_f64(rng.f64()), timer)).collect();
        // Ordering: Relaxed; only the sum matters.
        while self.sum.load(Ordering::Relaxed) < all {
            thread::sleep(MILLISECOND);
        }
        assert_eq!(self.sum.swap(0, Ordering::Relaxed), all, "{} fired a timer twice", E::NAME);
        keys
    }

    #[inline]
    fn one(&self, delay: Duration, timer: u64) -> E::Key {
        let sum = self.sum;
        self.engine.schedule_after(delay, move || {
            sum.fetch_add(timer, Ordering::Relaxed);
        })
    }

    fn schedule(&self, keys: &mut Vec<E::Key>) -> Duration {
        keys.clear();
        time(|| keys.extend(self.delays.iter().zip(0..).map(|(&delay, timer)| self.one(delay, timer))))
    }
}

impl<E: Cancels> Bench<E> {
    fn cancel(&self, keys: &[E::Key]) -> Duration {
        let mut cancelled = 0;
        let elapsed = time(|| cancelled = keys.iter().filter(|&&key| self.engine.cancel(key)).count());
        assert_eq!(cancelled, keys.len(), "{}: a pending timer was not cancelled", E::NAME);
        elapsed
    }
}
