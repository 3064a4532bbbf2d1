//! Where a [`Timer`](crate::Timer)'s time comes from.
//!
//! Time is a parameter: everything above asks a [`Clock`], which is the system's monotonic one unless the
//! builder is given another. A [`ManualClock`] stands still until it is told to move, and drives the timers
//! that use it on the thread that moves it.

#[cfg(not(shardwheel_loom))]
mod fast;
mod manual;

use std::time::Instant;

pub(crate) use fast::FastClock;
pub use manual::ManualClock;
pub(crate) use manual::{Driven, unpoisoned};

/// A source of time.
///
/// It should be monotonic. One that goes backwards does no harm: a shard's own clock stays where it is until
/// the source has caught up. One that jumps forward makes all that is due by then fire when the shard next looks: its
/// thread sleeps, by the system's time, for as long as is left by the clock when it goes to sleep.
///
/// # Examples
///
/// A clock at double speed, for a program that is to be watched in half the time:
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
    /// The time now. Called at each `schedule_after` and several times for each timer that fires, so it
    /// should be fast.
    fn now(&self) -> Instant;

    /// The manual clock that this one is, if it is one: a timer that uses it has no threads of its own, as
    /// the clock drives it. A clock that wraps a manual one passes this on, and tells the same time.
    fn as_manual(&self) -> Option<&ManualClock> {
        None
    }
}

/// The system's monotonic clock, [`Instant::now`]: it is never set back, and on Linux it does not count the
/// time for which the machine was suspended. What a [`Timer`](crate::Timer) uses unless told otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    fn now(&self) -> Instant {
        Instant::now()
    }
}

/// Models have no use for a fast clock.
#[cfg(shardwheel_loom)]
mod fast {
    use std::time::Instant;

    #[derive(Clone, Copy)]
    pub(crate) enum FastClock {}

    impl FastClock {
        pub(crate) fn start() -> Option<(Self, Instant)> {
            None
        }

        pub(crate) fn now_or_later(self) -> u64 {
            match self {}
        }
    }
}
