//! Why a wait came to nothing.

use std::error::Error;
use std::fmt;

use crate::error::ScheduleErrorKind;

/// Why a [`Sleep`](crate::Sleep) ended before its time: the timer has been shut down, or did not take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepError {
    kind: ScheduleErrorKind,
}

impl SleepError {
    pub(super) fn new(kind: ScheduleErrorKind) -> Self {
        Self { kind }
    }

    /// Why.
    #[must_use]
    pub fn kind(&self) -> ScheduleErrorKind {
        self.kind
    }

    /// Whether as many timers were pending as the timer may hold.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kind.is_full()
    }

    /// Whether the timer has been shut down.
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

/// Why a [`Timeout`](crate::Timeout) has no result of its future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeoutError {
    /// The time is over.
    Elapsed,
    /// The time could not be taken.
    Sleep(SleepError),
}

impl TimeoutError {
    /// Whether the time is over.
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
