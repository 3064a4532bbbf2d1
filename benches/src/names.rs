//! Names of sections and figures that the suites and the charts share.

/// The engine that the others are compared with.
pub(crate) const OURS: &str = "shardwheel";

/// The engine that only a build with `--cfg tokio_unstable` has.
pub(crate) const ALTERNATIVE: &str = "tokio alternative";

/// Numbers of timers.
pub(crate) const MILLION: usize = 1_000_000;
pub(crate) const TEN_MILLION: usize = 10_000_000;

/// The section of `peers` that has charts.
pub(crate) const RANDOM: &str = "random";

/// Its figure.
pub(crate) const BOTH: &str = "schedule + fire";

/// The section of `peers` with the percentiles of single operations.
pub(crate) const TAILS: &str = "tails";

/// A section of `peers`, and its layouts.
pub(crate) const PRODUCERS: &str = "producers";
pub(crate) const ALONE: &str = "1 thread";
pub(crate) const APART: &str = "2 threads, one each";
pub(crate) const SHARED: &str = "2 threads on one";

/// The section of `live` that has a chart.
pub(crate) const LIVE_FIRE: &str = "fire";

/// Shares of the timers; a figure says how late the timers of a share were at most, in µs.
pub(crate) const LATE: [f64; 12] =
    [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99999];

pub(crate) fn late(share: f64) -> String {
    format!("late, {} %, µs", (share * 1e7).round() / 1e5)
}
