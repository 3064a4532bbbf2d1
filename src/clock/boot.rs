//! The monotonic clock, and the time for which the machine was suspended.

use std::io;
use std::sync::OnceLock;

use super::Clock;
use crate::hardware::since_boot;
use crate::time::{Duration, Instant};

/// A clock that goes on while the machine is suspended.
///
/// A session, a lease or a token ends after so much *real* time, also if the laptop was closed
/// meanwhile. The default clock, [`MonotonicClock`](crate::MonotonicClock), stands still then on
/// Linux and macOS. With this clock, what became due during a suspend fires within one second after
/// the machine has woken, in the order of the deadlines.
///
/// The clock is Linux's and Android's `CLOCK_BOOTTIME`, `CLOCK_MONOTONIC_RAW` of Apple's systems,
/// and on Windows the performance counter. It is never set, and the wall clock does not matter to
/// it.
///
/// It shows the time as an [`Instant`]: the one at which the process made its first `BootClock`,
/// plus the time since then. After a suspend it is ahead of [`Instant::now`] by the length of the
/// suspend. So compute a deadline from [`Timer::now`](crate::Timer::now), and not from
/// `Instant::now`: `timer.sleep_until(timer.now() + delay)`. A deadline that was computed from
/// `Instant::now` is too early by that length. Durations (`sleep`, `timeout`, `schedule_after`)
/// need no care. All boot clocks of a process show the same time.
///
/// An event loop of your own ([`Driver`](crate::Driver)) should wait for at most a second at a
/// time, too: the time limits of `poll` and `epoll` stand still during a suspend.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::{BootClock, Timer};
///
/// let timer = Timer::builder().clock(BootClock::new()?).build()?;
/// timer.schedule_after(Duration::from_secs(3600), || println!("the session has expired"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Performance
///
/// A reading takes as long as one of the default clock, but a `Timer` reads it through an indirect
/// call, and has no faster clock for its deadlines. While a timer is pending, the `Timer`'s thread
/// wakes once a second, to look whether the machine was suspended, and about ten times in the last
/// second before a deadline, as with each clock that is not the default one (see [`Clock`]).
/// Without pending timers it does not wake.
#[derive(Clone, Copy, Debug)]
pub struct BootClock {
    start: Instant,
    /// The time since the machine's boot, read just after `start`: a deadline that comes from
    /// `Instant::now` is late by the time between the readings, not early.
    booted: Duration,
}

impl BootClock {
    /// Makes the clock.
    ///
    /// # Errors
    ///
    /// The system's error, if it refuses to read its clock. An error of the kind
    /// [`Unsupported`](io::ErrorKind::Unsupported) on a system for which the crate knows no such
    /// clock: any other than Linux, Android, Windows and Apple's. (WebAssembly has none either.)
    pub fn new() -> io::Result<Self> {
        static FIRST: OnceLock<BootClock> = OnceLock::new();
        let (start, booted) = (crate::sync::now(), since_boot()?);
        Ok(*FIRST.get_or_init(|| Self { start, booted }))
    }
}

impl Clock for BootClock {
    fn now(&self) -> Instant {
        // The system has read its clock for `new`, so it does here. A timer ignores a clock that
        // goes back.
        let since = since_boot().unwrap_or(self.booted).saturating_sub(self.booted);
        self.start.checked_add(since).unwrap_or(self.start)
    }
}
