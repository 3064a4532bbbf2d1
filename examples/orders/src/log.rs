//! Lines on standard error, each with its time.

use std::fmt;
use std::io::{self, Write};
use std::time::SystemTime;

/// Writes a line to standard error, after the time.
macro_rules! say {
    ($($text:tt)*) => { $crate::log::line(format_args!($($text)*)) };
}

pub(crate) fn line(text: fmt::Arguments<'_>) {
    // If standard error is closed, nothing can be reported.
    let _ = writeln!(io::stderr(), "{} {text}", now());
}

/// The time, in UTC and ms.
pub(crate) fn now() -> impl fmt::Display {
    humantime::format_rfc3339_millis(SystemTime::now())
}
