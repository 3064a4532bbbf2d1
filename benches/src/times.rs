//! Operations timed one by one: how long they take in the mean, nearly all of them, and at the most.
//!
//! The figures include the reading of the clock, some tens of nanoseconds, and the longest one may be the
//! system's doing and not the engine's: of the rounds, believe the least.

use std::hint::black_box;
use std::time::Instant;

use hdrhistogram::Histogram;

/// The largest share of operations that a figure leaves out, but for the one of the longest.
const NEARLY_ALL: f64 = 99.99;

/// Keeps times to three digits.
const DIGITS: u8 = 3;

/// Nothing takes longer than a minute, in nanoseconds. With a limit the histogram has all its memory from the start.
const LONGEST: u64 = 60_000_000_000;

/// How long each of some operations took.
pub struct Times(Histogram<u64>);

impl Default for Times {
    fn default() -> Self {
        Self(Histogram::new_with_max(LONGEST, DIGITS).expect("a histogram may have three digits"))
    }
}

impl Times {
    /// Runs and times an operation.
    #[inline]
    pub fn time<R>(&mut self, operation: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = black_box(operation());
        self.0.saturating_record(start.elapsed().as_nanos() as u64);
        result
    }

    /// How many operations there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// What the figure for the longest of these operations is called.
    #[must_use]
    pub fn longest_of(what: &str) -> String {
        format!("{what}, longest")
    }

    /// Nanoseconds: the mean, what 99.99 % stay within, and the longest.
    #[must_use]
    pub fn figures(&self, what: &str) -> Vec<(String, f64)> {
        vec![
            (format!("{what}, mean"), self.0.mean()),
            (format!("{what}, {NEARLY_ALL} %"), self.0.value_at_percentile(NEARLY_ALL) as f64),
            (Self::longest_of(what), self.0.max() as f64),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_is_kept() {
        let mut times = Times::default();
        times.time(|| ());
        times.time(|| std::thread::sleep(std::time::Duration::from_millis(2)));
        let figures = times.figures("nap");
        assert!(figures[2].0 == Times::longest_of("nap") && figures[2].1 >= 2_000_000.0, "{figures:?}");
        assert_eq!(times.count(), 2);
    }
}
