//! Figures: one a round, with median and spread; and operations timed one by one.

use std::hint::black_box;
use std::time::Instant;

use hdrhistogram::Histogram;

/// The figures of a series, in the order of the rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Samples(pub(crate) Vec<f64>);

impl Samples {
    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// Returns the middle figure, or the mean of the two in the middle; NaN if there is none.
    pub(crate) fn median(&self) -> f64 {
        let sorted = self.sorted();
        match sorted.len() {
            0 => f64::NAN,
            count => f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]),
        }
    }

    /// Shows the median, with the least and the greatest figure in brackets.
    pub(crate) fn show(&self) -> String {
        let (median, sorted) = (self.median(), self.sorted());
        let digits = if median < 2.0 { 3 } else { 1 };
        match sorted[..] {
            [least, .., greatest] => format!("{median:.digits$} ({least:.digits$}..{greatest:.digits$})"),
            _ => format!("{median:.digits$}"),
        }
    }
}

/// The names and the shares of what [`Times::percentiles`] returns.
pub(crate) const PERCENTILES: [(&str, f64); 4] =
    [("p50", 50.0), ("p99", 99.0), ("p99.9", 99.9), ("maximum", 100.0)];

/// How long each operation of a kind took. The figures include the reading of the clock, some tens
/// of ns. The system can cause the longest one, so the least of the rounds counts.
pub(crate) struct Times(Histogram<u64>);

impl Times {
    /// No operation takes longer than a minute. A limit makes the histogram allocate at the start.
    const LIMIT_NS: u64 = 60_000_000_000;

    pub(crate) fn new() -> Self {
        Self(Histogram::new_with_max(Self::LIMIT_NS, 3).expect("a histogram can have three digits"))
    }

    /// Runs and times an operation.
    #[inline]
    pub(crate) fn time<R>(&mut self, operation: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = black_box(operation());
        self.0.saturating_record(start.elapsed().as_nanos() as u64);
        result
    }

    /// Adds the operations of another thread.
    pub(crate) fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("the limits are the same");
    }

    /// Returns each of [`PERCENTILES`], in ns.
    pub(crate) fn percentiles(&self, what: &str) -> [(String, f64); 4] {
        PERCENTILES.map(|(name, share)| (format!("{what}, {name}"), self.0.value_at_percentile(share) as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert!(Samples::default().median().is_nan());
        assert_eq!(Samples(vec![3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(Samples(vec![4.0, 1.5, 2.0, 3.0]).show(), "2.5 (1.5..4.0)");
        assert_eq!(Samples(vec![0.25]).show(), "0.250");
    }
}
