//! The longest single operation.
//!
//! Here each call is timed by itself, so the figures include the reading of the clock, some tens of nanoseconds,
//! and the longest one may be the system's doing and not the engine's: of the rounds, believe the least.

use std::hint::black_box;
use std::time::Instant;

use hdrhistogram::Histogram;
use shardwheel_benches::{Checksum, Engine, Producer, Spread, Workload};

use crate::peer::{Figures, Outcome, Task};

/// The largest share of operations that a column leaves out, but for the one of the longest.
const NEARLY_ALL: f64 = 99.99;

/// Keeps times to three digits.
const DIGITS: u8 = 3;

/// Nothing takes longer than a minute, in nanoseconds. With a limit the histogram has all its memory from the start.
const LONGEST: u64 = 60_000_000_000;

struct Times(Histogram<u64>);

impl Times {
    fn new() -> Self {
        Self(Histogram::new_with_max(LONGEST, DIGITS).expect("a histogram may have three digits"))
    }

    #[inline]
    fn time<R>(&mut self, operation: impl FnOnce() -> R) {
        let start = Instant::now();
        black_box(operation());
        self.0.saturating_record(start.elapsed().as_nanos() as u64);
    }

    fn figures(&self, what: &str) -> Figures {
        vec![
            (format!("{what}, mean"), self.0.mean()),
            (format!("{what}, {NEARLY_ALL} %"), self.0.value_at_percentile(NEARLY_ALL) as f64),
            (format!("{what}, longest"), self.0.max() as f64),
        ]
    }
}

/// Schedules timers at random over 30 minutes and then moves the clock a tick at a time until all have fired.
pub(crate) fn operations<E: Engine>(task: Task) -> Outcome {
    let work = Workload::new(Spread::ThirtyMinutes, task.size, task.seed(0));
    let (mut engine, mut fired) = (E::new(), Checksum::default());
    let producer = engine.producer();
    let (mut schedule, mut advance) = (Times::new(), Times::new());
    for (&delay, payload) in work.delays().iter().zip(0..) {
        schedule.time(|| producer.schedule(delay, payload));
    }
    (1..=work.span()).for_each(|tick| advance.time(|| engine.advance(tick, &mut fired)));
    fired.verify(&work.expected(0, 1), E::NAME);
    let figures = [schedule.figures("schedule"), advance.figures("advance by a tick")].concat();
    Outcome { checksum: fired.digest(), figures }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_is_kept() {
        let mut times = Times::new();
        times.time(|| ());
        times.time(|| std::thread::sleep(std::time::Duration::from_millis(2)));
        let figures = times.figures("nap");
        assert!(figures[2].0 == "nap, longest" && figures[2].1 >= 2_000_000.0, "{figures:?}");
    }
}
