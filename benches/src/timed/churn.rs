//! Timeouts that nearly never happen: each timer is cancelled a thousand timers later.

use std::time::Duration;

use super::time;
use crate::Cancel;

/// How many timers a churn keeps pending: a timer is cancelled when this many have come after it.
const OUTSTANDING: usize = 1000;

/// How far ahead a churn schedules: 30 seconds in ticks of a millisecond.
const AHEAD: u64 = 30_000;

/// The payload of every timer.
const PAYLOAD: u64 = 0;

/// Schedules thirty seconds ahead and cancels the timer of a thousand earlier, again and again.
///
/// Its clock moves on by one tick after each thousand, which stands for a million pairs a second. Churns that share
/// an engine each go by their own clock, and one of them moves the engine's.
pub struct Churn<P: Cancel> {
    producer: P,
    ring: Vec<P::Handle>,
    clock: u64,
    /// When all in the ring are due.
    deadline: u64,
}

impl<P: Cancel> Churn<P> {
    /// Fills the ring of outstanding timers, at tick `clock`.
    pub fn new(producer: P, clock: u64) -> Self {
        let deadline = clock + AHEAD;
        let ring = (0..OUTSTANDING).map(|_| producer.schedule(deadline, PAYLOAD)).collect();
        Self { producer, ring, clock, deadline }
    }

    /// Runs `pairs` pairs, rounded down to thousands, and returns how many there were and the time. `moved` is given
    /// the clock at each tick; what it does is timed too.
    ///
    /// # Panics
    ///
    /// Where a timer could not be cancelled.
    pub fn run(&mut self, pairs: usize, mut moved: impl FnMut(u64)) -> (usize, Duration) {
        let ticks = pairs / OUTSTANDING;
        let elapsed = time(|| (0..ticks).for_each(|_| moved(self.tick())));
        (ticks * OUTSTANDING, elapsed)
    }

    /// What it has left pending: deadlines and payloads.
    #[must_use]
    pub fn pending(&self) -> Vec<(u64, u64)> {
        vec![(self.deadline, PAYLOAD); self.ring.len()]
    }

    fn tick(&mut self) -> u64 {
        self.deadline = self.clock + AHEAD;
        for oldest in &mut self.ring {
            let newest = self.producer.schedule(self.deadline, PAYLOAD);
            let cancelled = self.producer.cancel(std::mem::replace(oldest, newest));
            assert!(cancelled.is_some(), "a pending timer was not cancelled");
        }
        self.clock += 1;
        self.clock
    }
}
