//! The errors of futures.

use std::error::Error;
use std::fmt;
use std::io;

use crate::error::ScheduleErrorKind;

/// The error of a [`Sleep`](crate::Sleep) that ended before its deadline: the `Timer` was shut down
/// or refused the sleep, or the sleep's [`Group`](crate::Group) was cancelled.
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

    /// Returns whether the `Timer` held as many pending timers as it may.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kind.is_full()
    }

    /// Returns whether the `Timer` has been shut down.
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

/// The error of a [`timeout`](crate::timeout()) whose future has no result, and of
/// [`DelayQueue::recv_timeout`](crate::DelayQueue::recv_timeout): the time limit has passed.
///
/// # Examples
///
/// ```
/// use std::io::ErrorKind;
/// use std::time::Duration;
/// # use std::future::Future;
/// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
///
/// let never = std::future::pending::<()>();
/// let elapsed = block_on(shardwheel::timeout(Duration::from_millis(5), never)).unwrap_err();
/// assert_eq!(std::io::Error::from(elapsed).kind(), ErrorKind::TimedOut);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Elapsed(());

impl Elapsed {
    pub(crate) fn new() -> Self {
        Self(())
    }
}

/// The text of both errors for a time limit that has passed.
const ELAPSED: &str = "the time is over";

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ELAPSED)
    }
}

impl Error for Elapsed {}

impl From<Elapsed> for io::Error {
    /// Of the kind [`TimedOut`](io::ErrorKind::TimedOut).
    fn from(elapsed: Elapsed) -> Self {
        Self::new(io::ErrorKind::TimedOut, elapsed)
    }
}

/// The error of a [`Timeout`](crate::Timeout) whose future has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeoutError {
    /// The time limit has passed.
    Elapsed,
    /// The `Timer` refused the time limit's sleep or was shut down, or the group was cancelled.
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
            Self::Elapsed => f.write_str(ELAPSED),
            Self::Sleep(error) if error.is_shut_down() => f.write_str(
                "the timer of this time limit has ended, so nothing limits the time; keep a handle of it, \
                 or use the global timer's `timeout`",
            ),
            Self::Sleep(_) => f.write_str("the timer of this time limit refused it, or ended it early"),
        }
    }
}

impl Error for TimeoutError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        if let Self::Sleep(error) = self { Some(error) } else { None }
    }
}

impl From<TimeoutError> for io::Error {
    /// Of the kind [`TimedOut`](io::ErrorKind::TimedOut) if the time limit has passed. A time limit
    /// that the `Timer` refused has not passed: then the kind is
    /// [`OutOfMemory`](io::ErrorKind::OutOfMemory) if the system gave no memory, else
    /// [`Other`](io::ErrorKind::Other).
    fn from(error: TimeoutError) -> Self {
        let kind = match error {
            TimeoutError::Elapsed => io::ErrorKind::TimedOut,
            TimeoutError::Sleep(refused) => match refused.kind() {
                ScheduleErrorKind::OutOfMemory { .. } => io::ErrorKind::OutOfMemory,
                _ => io::ErrorKind::Other,
            },
        };
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_input_and_output_names_the_want_of_memory() {
        let kind = |kind| io::Error::from(TimeoutError::Sleep(SleepError::new(kind))).kind();
        assert_eq!(kind(ScheduleErrorKind::OutOfMemory { bytes: 8 }), io::ErrorKind::OutOfMemory);
        assert_eq!(kind(ScheduleErrorKind::ShutDown), io::ErrorKind::Other);
    }
}
