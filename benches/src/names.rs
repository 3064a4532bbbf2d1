//! What sections and columns are called that both a program and the charts of its figures know.

/// The sections of `peers` that have charts.
pub const RANDOM: &str = "random";
/// See [`RANDOM`].
pub const TWO_CHURN: &str = "two-churn";
/// See [`RANDOM`].
pub const TWO_SCHEDULE: &str = "two-schedule";

/// The columns of [`RANDOM`] that have charts.
pub const SCHEDULE: &str = "schedule";
/// See [`SCHEDULE`].
pub const FIRE: &str = "fire";

/// The columns of [`TWO_CHURN`] and [`TWO_SCHEDULE`].
pub const ALONE: &str = "1 thread";
/// See [`ALONE`].
pub const APART: &str = "2 threads, one each";
/// See [`ALONE`].
pub const SHARED: &str = "2 threads on one";

/// The sections of `live` that have charts.
pub const LIVE_FIRE: &str = "fire";
/// See [`LIVE_FIRE`].
pub const LIVE_FINE: &str = "fine";

/// Rows of [`LATE`] that have a limit.
pub const P50: &str = "late, median, µs";
/// See [`P50`].
pub const P99: &str = "late, 99 %, µs";
/// See [`P50`].
pub const P999: &str = "late, 99.9 %, µs";

/// The rows that say how late timers were, in microseconds, and the share of the timers that was no later.
pub const LATE: [(f64, &str); 12] = [
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
