//! Timeouts that nearly never happen: each timer is cancelled a thousand timers later.

use std::time::Duration;

use super::time;
use crate::{Cancel, Checksum, Engine, Producer};

/// How many timers a churn keeps pending: a timer is cancelled when this many have come after it.
const OUTSTANDING: usize = 1000;

/// How far ahead a churn schedules: 30 seconds in ticks of a millisecond.
const AHEAD: u64 = 30_000;

type Handle<E> = <<E as Engine>::Producer as Producer>::Handle;

/// Schedules thirty seconds ahead and cancels the timer of a thousand earlier, again and again.
///
/// The clock moves on by one tick after each thousand, which stands for a million pairs a second.
pub struct Churn<E: Engine> {
    producer: E::Producer,
    ring: Vec<Handle<E>>,
    clock: u64,
}

impl<E: Engine<Producer: Cancel>> Churn<E> {
    /// Fills the ring of outstanding timers, at tick `clock`.
    pub fn new(engine: &E, clock: u64) -> Self {
        let producer = engine.producer();
        let ring = (0..OUTSTANDING).map(|_| producer.schedule(clock + AHEAD, 0)).collect();
        Self { producer, ring, clock }
    }

    /// Runs `pairs` pairs, rounded down to thousands, and returns how many there were and the time.
    ///
    /// # Panics
    ///
    /// Where a timer could not be cancelled.
    pub fn run(&mut self, engine: &mut E, pairs: usize) -> (usize, Duration) {
        let ticks = pairs / OUTSTANDING;
        let elapsed = time(|| (0..ticks).for_each(|_| self.tick(engine)));
        (ticks * OUTSTANDING, elapsed)
    }

    fn tick(&mut self, engine: &mut E) {
        for oldest in &mut self.ring {
            let newest = self.producer.schedule(self.clock + AHEAD, 0);
            let cancelled = self.producer.cancel(std::mem::replace(oldest, newest));
            assert!(cancelled.is_some(), "a pending timer was not cancelled");
        }
        self.clock += 1;
        engine.advance(self.clock, &mut Checksum::default());
    }
}
