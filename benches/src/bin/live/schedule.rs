//! `schedule_after` with a small closure, the reading of the clock included.
//!
//! A million timers are scheduled into an engine in which as many have fired before, with delays uniform over
//! half an hour, a minute ahead so that none fires meanwhile. Where the engine can cancel, they are then
//! cancelled, scheduled again (in nodes of cancelled timers), cancelled again, and finally scheduled and
//! cancelled one by one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use shardwheel_benches::{Spread, Workload, back_memory};

use crate::engine::{Cancels, Schedules};
use crate::sections::{Figures, MILLISECOND};

pub(crate) const AFTER_FIRED: &str = "schedule_after, after as many have fired, ns";
pub(crate) const AFTER_CANCELLED: &str = "schedule_after, after as many were cancelled, ns";
const CANCEL: &str = "cancel, all in a row, ns";
const PAIR: &str = "schedule_after + cancel at once, ns";

const TIMERS: usize = 1_000_000;

/// More memory than an engine takes for a timer, with its key and what it calls.
const BYTES: usize = 256;
const SEED: u64 = 7;

/// No timer of the measured passes is due before this.
const OUT_OF_THE_WAY: Duration = Duration::from_secs(60);

/// From the beginning of the warm-up to its first deadline, for each of its timers: enough to place them all
/// before the first is due, so that they are all pending at once.
const WARM_UP_LEAD: Duration = Duration::from_micros(1);

/// For an engine that cannot cancel.
pub(crate) fn schedule_alone<E: Schedules>() -> Figures {
    Bench::<E>::new(TIMERS).schedule_alone()
}

/// For an engine that can.
pub(crate) fn schedule_and_cancel<E: Cancels>() -> Figures {
    Bench::<E>::new(TIMERS).schedule_and_cancel()
}

struct Bench<E> {
    engine: E,
    delays: Vec<Duration>,
    /// The sum of the numbers of all timers that fired.
    sum: &'static AtomicU64,
}

impl<E: Schedules> Bench<E> {
    fn new(timers: usize) -> Self {
        let work = Workload::new(Spread::ThirtyMinutes, timers, SEED);
        back_memory(timers * BYTES);
        let delay = |millis: &u64| OUT_OF_THE_WAY + Duration::from_millis(*millis);
        Self {
            engine: E::start(MILLISECOND),
            delays: work.delays().iter().map(delay).collect(),
            sum: Box::leak(Box::default()),
        }
    }

    fn schedule_alone(&self) -> Figures {
        let mut keys = self.fire_as_many();
        let figure = self.each(|| self.schedule(&mut keys));
        vec![(AFTER_FIRED.to_owned(), figure)]
    }

    /// Schedules as many timers as the measured passes do, and waits until they have fired. Their keys are stale;
    /// what they lie in is memory that has been touched.
    fn fire_as_many(&self) -> Vec<E::Key> {
        let mut rng = fastrand::Rng::with_seed(SEED);
        let lead = WARM_UP_LEAD * self.delays.len() as u32;
        let timers = 0..self.delays.len() as u64;
        let keys = timers.map(|timer| self.one(lead + lead.mul_f64(rng.f64()), timer)).collect();
        let all = (0..self.delays.len() as u64).sum::<u64>();
        // Ordering: Relaxed; the sum alone matters.
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

    /// Schedules every timer; how long that took.
    fn schedule(&self, keys: &mut Vec<E::Key>) -> Duration {
        keys.clear();
        let start = Instant::now();
        keys.extend(self.delays.iter().zip(0..).map(|(&delay, timer)| self.one(delay, timer)));
        start.elapsed()
    }

    /// Nanoseconds a timer of a pass.
    fn each(&self, pass: impl FnOnce() -> Duration) -> f64 {
        pass().as_nanos() as f64 / self.delays.len() as f64
    }
}

impl<E: Cancels> Bench<E> {
    fn schedule_and_cancel(&self) -> Figures {
        let mut keys = self.fire_as_many();
        let after_fired = self.each(|| self.schedule(&mut keys));
        let cancel = self.each(|| self.cancel(&keys));
        let after_cancelled = self.each(|| self.schedule(&mut keys));
        self.cancel(&keys);
        let pair = self.each(|| self.pairs());
        assert_eq!(self.sum.load(Ordering::Relaxed), 0, "{} fired a cancelled timer", E::NAME);
        let rows =
            [(AFTER_FIRED, after_fired), (AFTER_CANCELLED, after_cancelled), (CANCEL, cancel), (PAIR, pair)];
        rows.map(|(what, figure)| (what.to_owned(), figure)).into()
    }

    /// Cancels every timer; how long that took.
    fn cancel(&self, keys: &[E::Key]) -> Duration {
        let start = Instant::now();
        let cancelled = keys.iter().filter(|&&key| self.engine.cancel(key)).count();
        let elapsed = start.elapsed();
        assert_eq!(cancelled, keys.len(), "{}: a pending timer was not cancelled", E::NAME);
        elapsed
    }

    /// Schedules each timer and cancels it at once; how long that took.
    fn pairs(&self) -> Duration {
        let start = Instant::now();
        for (&delay, timer) in self.delays.iter().zip(0..) {
            let key = self.one(delay, timer);
            assert!(self.engine.cancel(key), "{}: a pending timer was not cancelled", E::NAME);
        }
        start.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap_thread::{Exact, Ticked};
    use crate::wheel::Wheel;

    const FEW: usize = 1000;

    #[test]
    fn closures_are_called_and_the_measured_ones_stay_pending() {
        assert_eq!(Bench::<Wheel>::new(FEW).schedule_and_cancel().len(), 4);
        assert_eq!(Bench::<Exact>::new(FEW).schedule_alone().len(), 1);
        assert_eq!(Bench::<Ticked>::new(FEW).schedule_alone().len(), 1);
    }
}
