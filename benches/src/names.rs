//! Names of sections and figures that the suites and the charts share.

/// Sections of `peers` that have charts.
pub(crate) const RANDOM: &str = "random";
pub(crate) const TWO_CHURN: &str = "two-churn";
pub(crate) const TWO_SCHEDULE: &str = "two-schedule";

/// Figures of [`RANDOM`].
pub(crate) const SCHEDULE: &str = "schedule";
pub(crate) const FIRE: &str = "fire";
pub(crate) const BOTH: &str = "schedule + fire";

/// Figures of [`TWO_CHURN`] and [`TWO_SCHEDULE`].
pub(crate) const ALONE: &str = "1 thread";
pub(crate) const APART: &str = "2 threads, one each";
pub(crate) const SHARED: &str = "2 threads on one";

/// Sections of `live` that have charts.
pub(crate) const LIVE_FIRE: &str = "fire";
pub(crate) const LIVE_FINE: &str = "fine";

/// Figures of [`LATE`] that have a limit.
pub(crate) const P50: &str = "late, median, µs";
pub(crate) const P99: &str = "late, 99 %, µs";
pub(crate) const P999: &str = "late, 99.9 %, µs";

/// How late timers fired, in µs, with the share of the timers that were no later.
pub(crate) const LATE: [(f64, &str); 12] = [
    (0.1, "late, 10 %, µs"),
    (0.25, "late, 25 %, µs"),
    (0.5, P50),
    (0.75, "late, 75 %, µs"),
    (0.9, "late, 90 %, µs"),
    (0.95, "late, 95 %, µs"),
    (0.99, P99),
    (0.995, "late, 99.5 %, µs"),
    (0.999, P999),
    (0.9995, "late, 99.95 %, µs"),
    (0.9999, "late, 99.99 %, µs"),
    (0.99999, "late, 99.999 %, µs"),
];
