//! Where a [`Timer`](crate::Timer)'s time comes from.
//!
//! Time is a parameter: everything above asks a [`Clock`], which is the system's monotonic one unless the
//! builder is given another. A [`ManualClock`] stands still until it is told to move, and drives the timers
//! that use it on the thread that moves it.

#[cfg(not(any(shardwheel_loom, miri)))]
mod fast;
mod manual;
mod waits;

use std::time::Instant;

pub(crate) use fast::FastClock;
pub use manual::ManualClock;
pub(crate) use manual::{Driven, unpoisoned};
pub(crate) use waits::{ThreadNumber, Wait, this_thread};

/// A source of time.
///
/// It should be monotonic. One that goes backwards does no harm: a shard's own clock stays where it is until
/// the source has caught up, and what is scheduled meanwhile counts from there. One that jumps forward makes all that is
/// due by then fire when the shard next looks.
///
/// It may run at another speed than the system's time, by which a shard's thread sleeps: the thread sleeps for half of what
/// is left, by the speed that the clock had during its last sleep, and looks again. It so wakes some twenty times on the
/// way to a deadline that is an hour off, where with the system's clock it wakes once. Where the clock speeds up during a
/// sleep, what is due then is late by that.
///
/// A clock that panics on a shard's thread, or in a job, is counted and reported like a callback, and the time is then the
/// shard's own; in a call that reads the clock (`schedule_after`, `sleep`, `stats`), the panic is the caller's, and nothing
/// has been done. It may use the timer, also shut it down.
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

/// Models have no use for a fast clock, and Miri does not run the instruction that reads the counter.
#[cfg(any(shardwheel_loom, miri))]
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
