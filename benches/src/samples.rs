//! Figures: one a round, with median, spread and ratio; and operations timed one by one.

use std::hint::black_box;
use std::time::Instant;

use hdrhistogram::Histogram;

/// The figures of a series, in the order of the rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Samples(pub(crate) Vec<f64>);

impl Samples {
    /// Returns the middle figure, or the mean of the two in the middle; NaN if there is none.
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => f64::NAN,
            count if count % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
            _ => sorted[middle],
        }
    }

    pub(crate) fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn greatest(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    pub(crate) fn over(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(mine, others)| mine / others).collect())
    }

    /// Shows the median, and the least and the greatest figure in brackets if they differ. Small
    /// figures have more digits, numbers of timers none.
    pub(crate) fn show(&self) -> String {
        let (median, least, greatest) = (self.median(), self.least(), self.greatest());
        let is_whole = self.0.iter().all(|figure| figure.fract() == 0.0);
        let digits = match median {
            _ if is_whole => 0,
            small if small < 2.0 => 3,
            _ => 1,
        };
        match &self.0[..] {
            [] => "-".to_owned(),
            _ if least == greatest => format!("{median:.digits$}"),
            _ => format!("{median:.digits$} ({least:.digits$}..{greatest:.digits$})"),
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
    fn medians_and_ratios() {
        assert!(Samples::default().median().is_nan() && Samples::default().show() == "-");
        assert_eq!(Samples(vec![3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(Samples(vec![4.0, 1.5, 2.0, 3.0]).show(), "2.5 (1.5..4.0)");
        assert_eq!(Samples(vec![2.0, 9.0]).over(&Samples(vec![8.0, 9.0])).show(), "0.625 (0.250..1.000)");
    }
}
