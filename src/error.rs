//! The errors. Each says what was asked for and which limit it exceeds, and a refused timer's error
//! hands back the payload.

use std::error::Error;
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use crate::tick::Tick;
use crate::unwind::unpoisoned;

/// Why a [`Config`](crate::Config) could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The tick is zero.
    ZeroTick,
    /// The wheel size is too small or too large.
    WheelSizeOutOfRange {
        /// The requested size.
        value: usize,
        /// The smallest valid size.
        min: usize,
        /// The largest valid size.
        max: usize,
    },
    /// The wheel size is not a power of two.
    WheelSizeNotPowerOfTwo {
        /// The requested size.
        value: usize,
        /// The next power of two, a valid size.
        next: usize,
    },
    /// `max_pending` is zero, which would refuse every timer.
    ZeroMaxPending,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ZeroTick => f.write_str("tick is 0 ns; it must be at least 1 ns"),
            Self::WheelSizeOutOfRange { value, min, max } => {
                write!(f, "wheel_size is {value}; it must be a power of two from {min} to {max}")
            }
            Self::WheelSizeNotPowerOfTwo { value, next } => {
                write!(f, "wheel_size is {value}; it must be a power of two, such as {next}")
            }
            Self::ZeroMaxPending => f.write_str("max_pending is 0; it must be at least 1"),
        }
    }
}

impl Error for ConfigError {}

/// Why a [`Timer`](crate::Timer) could not be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The tick, the wheel size or the bound on pending timers is not valid.
    Config(ConfigError),
    /// The number of shards is zero, or larger than a `Timer` can have.
    ShardsOutOfRange {
        /// The requested number.
        value: usize,
        /// The smallest valid number.
        min: usize,
        /// The largest valid number.
        max: usize,
    },
    /// Each shard's thread was to be pinned to its own core, and there are fewer cores than shards.
    TooFewCores {
        /// The number of shards.
        shards: usize,
        /// The number of cores that the calling thread may run on.
        cores: usize,
    },
    /// The threads' name contains a zero byte, which no system accepts.
    ThreadName {
        /// The requested name.
        name: String,
    },
    /// The system gave no memory for a shard.
    OutOfMemory {
        /// The shard's number.
        shard: usize,
    },
    /// The system did not start a thread.
    Spawn {
        /// The shard's number.
        shard: usize,
        /// The system's error.
        error: std::io::Error,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::ShardsOutOfRange { value, min, max } => {
                write!(f, "shards is {value}; it must be from {min} to {max}")
            }
            Self::TooFewCores { shards, cores } => {
                write!(f, "{shards} shards cannot be pinned to a core each: there are {cores} cores; ")?;
                write!(f, "make at most {cores} shards, or do not pin them")
            }
            Self::ThreadName { name } => {
                write!(f, "thread_name is {name:?}; it must not have a zero byte in it")
            }
            Self::OutOfMemory { shard } => {
                write!(f, "no memory for shard {shard}; a smaller wheel_size, or fewer shards, need less")
            }
            Self::Spawn { shard, .. } => {
                write!(f, "the system started no thread for shard {shard}; build_driven needs none")
            }
        }
    }
}

impl Error for BuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Spawn { error, .. } => Some(error),
            // Also for `Config`: the message is that of the inner error, which is therefore no
            // source.
            _ => None,
        }
    }
}

impl From<ConfigError> for BuildError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

/// Why a timer was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScheduleErrorKind {
    /// The [`Timer`](crate::Timer) has been shut down, or the shard's [`Advancer`](crate::Advancer)
    /// has ended: no timer fires any more.
    ShutDown,
    /// The number of pending timers has reached its bound.
    Full {
        /// The bound: `max_pending`, or the number of nodes that a shard can name.
        limit: usize,
    },
    /// The system gave no memory for more timers.
    OutOfMemory {
        /// The number of bytes asked for.
        bytes: usize,
    },
    /// The window passed to [`schedule_within`](crate::Scheduler::schedule_within) contains no
    /// tick.
    EmptyWindow {
        /// The window's first tick.
        start: Tick,
        /// The window's last tick, which is before the first.
        end: Tick,
    },
    /// The window passed to [`Timer::schedule_within`](crate::Timer::schedule_within), or to one of
    /// its kind, ends before it starts.
    WindowEndsBeforeStart {
        /// The time from its end to its start.
        by: Duration,
    },
    /// The period passed to [`schedule_every`](crate::Timer::schedule_every) is zero.
    ZeroPeriod,
    /// The schedule passed to [`schedule_with`](crate::Timer::schedule_with) has no first
    /// occurrence.
    NoOccurrence,
    /// The timer's [`Group`](crate::Group) was cancelled or had ended: while the timer was being
    /// scheduled, or before a sleep's deadline.
    Cancelled,
    /// The [`DelayQueue`](crate::DelayQueue) was [closed](crate::DelayQueue::close).
    QueueClosed,
}

impl ScheduleErrorKind {
    pub(crate) fn is_full(self) -> bool {
        matches!(self, Self::Full { .. })
    }

    pub(crate) fn is_shut_down(self) -> bool {
        self == Self::ShutDown
    }
}

impl fmt::Display for ScheduleErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ShutDown => {
                f.write_str("the timer was shut down, or its last handle was dropped; keep one")
            }
            Self::Full { limit } => {
                write!(f, "there is no room: {limit} timers are pending, which is the limit; ")?;
                f.write_str("try again when some have ended, or raise max_pending")
            }
            Self::OutOfMemory { bytes } => {
                write!(f, "no memory for more timers: {bytes} bytes were asked for; try again later")
            }
            Self::EmptyWindow { start, end } => {
                write!(f, "the window {start}..={end} is empty: its end must not be before its start")
            }
            Self::WindowEndsBeforeStart { by } => {
                write!(f, "the window ends {by:?} before it starts; it must not end before its start")
            }
            Self::ZeroPeriod => f.write_str("the period is 0 ns; it must be at least 1 ns"),
            Self::NoOccurrence => f.write_str("the schedule has no first occurrence; it must have one"),
            Self::Cancelled => f.write_str("the group was cancelled, or has ended; make another one"),
            Self::QueueClosed => f.write_str("the queue was closed; make another one for more values"),
        }
    }
}

/// The error of a refused timer: the reason, and the payload.
///
/// It is `Send` and `Sync` if the payload is `Send`, so `?` turns it into a
/// `Box<dyn Error + Send + Sync>`, whatever the payload or the callback holds:
///
/// ```
/// use std::cell::Cell;
/// use std::error::Error;
/// use shardwheel::{Config, Scheduler, shard};
///
/// fn start(scheduler: &Scheduler<Cell<u32>>) -> Result<(), Box<dyn Error + Send + Sync>> {
///     scheduler.schedule(10, Cell::new(0))?; // `Send`, and not `Sync`
///     Ok(())
/// }
///
/// let (scheduler, advancer) = shard(&Config::default());
/// drop(advancer);
/// assert!(start(&scheduler).is_err());
/// ```
///
/// # Examples
///
/// ```
/// use shardwheel::{Config, ScheduleErrorKind, shard};
///
/// let (scheduler, _advancer) = shard(&Config::builder().max_pending(1).build()?);
/// scheduler.schedule(10, "first").unwrap();
/// let refused = scheduler.schedule(10, "second").unwrap_err();
/// assert_eq!(refused.kind(), ScheduleErrorKind::Full { limit: 1 });
/// assert_eq!(refused.into_payload(), "second");
/// # Ok::<(), shardwheel::ConfigError>(())
/// ```
pub struct ScheduleError<T> {
    kind: ScheduleErrorKind,
    /// No thread locks it. A mutex is `Sync` whether or not the payload is.
    payload: Mutex<T>,
}

impl<T> ScheduleError<T> {
    pub(crate) fn new(kind: ScheduleErrorKind, payload: T) -> Self {
        Self { kind, payload: Mutex::new(payload) }
    }

    pub(crate) fn map<U>(self, make: impl FnOnce(T) -> U) -> ScheduleError<U> {
        let kind = self.kind;
        ScheduleError::new(kind, make(self.into_payload()))
    }

    /// Returns why the timer was refused.
    #[must_use]
    pub fn kind(&self) -> ScheduleErrorKind {
        self.kind
    }

    /// Returns whether the bound on pending timers was reached. A retry may succeed later.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kind.is_full()
    }

    /// Returns whether the `Timer`, or the shard's advancer, has been shut down. A retry cannot
    /// succeed.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.kind.is_shut_down()
    }

    /// Hands back the payload.
    #[must_use]
    pub fn into_payload(self) -> T {
        unpoisoned(self.payload.into_inner())
    }
}

impl<T> fmt::Debug for ScheduleError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScheduleError").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for ScheduleError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl<T> Error for ScheduleError<T> {}
