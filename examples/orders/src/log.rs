//! Lines on standard error, each with its time.

use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Writes a line to standard error, after the time.
macro_rules! say {
    ($($text:tt)*) => { $crate::log::line(format_args!($($text)*)) };
}

pub(crate) fn line(text: fmt::Arguments<'_>) {
    // If standard error is closed, nothing can be reported.
    let _ = writeln!(io::stderr(), "{} {text}", now());
}

/// The time, in UTC and ms.
pub(crate) fn now() -> String {
    written(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn written(since_1970: Duration) -> String {
    const DAY: u64 = 86_400;
    let (seconds, millis) = (since_1970.as_secs(), since_1970.subsec_millis());
    let (mut day, second) = (seconds / DAY, seconds % DAY);
    let mut year = 1970;
    while day >= days(year) {
        day -= days(year);
        year += 1;
    }
    let mut month = 1;
    while day >= days_of_month(year, month) {
        day -= days_of_month(year, month);
        month += 1;
    }
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z", day + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days(year: u64) -> u64 {
    365 + u64::from(is_leap(year))
}

fn days_of_month(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_795_555_088_881, "2026-11-24T21:18:08.881Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(written(Duration::from_millis(millis)), text);
        }
    }
}
