//! The errors of futures.

use std::error::Error;
use std::fmt;

use crate::error::ScheduleErrorKind;

/// The error of a [`Sleep`](crate::Sleep) that ended before its deadline: the timer was shut down,
/// or refused the sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepError {
    kind: ScheduleErrorKind,
}

impl SleepError {
    pub(super) fn new(kind: ScheduleErrorKind) -> Self {
        Self { kind }
    }

    /// Returns the reason.
    #[must_use]
    pub fn kind(&self) -> ScheduleErrorKind {
        self.kind
    }

    /// Returns whether the timer held as many pending timers as it may.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kind.is_full()
    }

    /// Returns whether the timer has been shut down.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.kind.is_shut_down()
    }
}

impl fmt::Display for SleepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl Error for SleepError {}

/// The error of a [`Timeout`](crate::Timeout) whose future has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeoutError {
    /// The time limit has passed.
    Elapsed,
    /// The timer refused the time limit's sleep, or was shut down.
    Sleep(SleepError),
}

impl TimeoutError {
    /// Returns whether the time limit has passed.
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        *self == Self::Elapsed
    }
}

impl fmt::Display for TimeoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elapsed => f.write_str("the time is over"),
            Self::Sleep(error) => error.fmt(f),
        }
    }
}

impl Error for TimeoutError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Elapsed => None,
            Self::Sleep(error) => Some(error),
        }
    }
}
