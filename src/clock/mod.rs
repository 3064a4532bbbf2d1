//! The source of a [`Timer`](crate::Timer)'s time.
//!
//! Time is a parameter. All code above this module asks a [`Clock`]: the system's monotonic clock,
//! unless the builder receives another. A [`ManualClock`] stands still until a caller moves it, and
//! it drives the `Timer`s that use it on the thread that moves it.

mod boot;
mod caller;
mod fast;
mod manual;
mod run;

use std::sync::Arc;

use crate::time::Instant;

pub(crate) use crate::unwind::unpoisoned;
pub use boot::BootClock;
pub(crate) use caller::{UserCode, is_user_code};
pub(crate) use fast::FastClock;
pub use manual::ManualClock;
pub(crate) use manual::RunByClock;

/// A source of time.
///
/// A clock should be monotonic. A clock that goes backwards does no harm: the shard's own clock
/// stays where it is until the source has caught up, and timers scheduled meanwhile count from
/// there. If a clock jumps forward, everything that is due by then fires when the shard next reads
/// the clock.
///
/// A clock may run at another speed than the system's time. The `Timer`'s thread sleeps by the
/// system's time: it sleeps for half of the remaining time, at the speed that it measured during
/// its last sleep, and then looks again, a second later at the latest. So it wakes once a second
/// while a timer is pending, and about ten times in the last second before a deadline; with the
/// system's clock it wakes once. If the clock speeds up or jumps during a sleep, timers that become
/// due in that sleep are late by at most a second.
///
/// If a clock panics on the `Timer`'s thread, or in a job, the panic is counted and reported like a
/// panic of a callback, and the shard then uses its own time. If it panics in a call that reads the
/// clock (`schedule_after`, `sleep`, `stats`), the caller gets the panic, and the call has done
/// nothing. A clock may use the `Timer`, and may shut it down.
///
/// # Examples
///
/// A clock at double speed, to watch a program in half the time:
///
/// ```
/// use std::time::Instant;
/// use shardwheel::Clock;
///
/// struct Double(Instant);
///
/// impl Clock for Double {
///     fn now(&self) -> Instant {
///         self.0 + 2 * self.0.elapsed()
///     }
/// }
/// ```
pub trait Clock: Send + Sync + 'static {
    /// Returns the present time. Each `schedule_after` calls it, and each timer that fires calls it
    /// several times, so it should be fast.
    fn now(&self) -> Instant;

    /// Returns the underlying [`ManualClock`], if any. A `Timer` with such a clock has no threads
    /// of its own: the clock drives it. A clock that wraps a manual clock must return that clock
    /// here, and the same time.
    fn as_manual(&self) -> Option<&ManualClock> {
        None
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Instant {
        (**self).now()
    }

    fn as_manual(&self) -> Option<&ManualClock> {
        (**self).as_manual()
    }
}

/// The system's monotonic clock, [`Instant::now`]. A [`Timer`](crate::Timer) uses it by default.
///
/// It is never set back. On Linux and macOS it does not count the time for which the machine was
/// suspended: see [`BootClock`].
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    fn now(&self) -> Instant {
        crate::sync::now()
    }
}
