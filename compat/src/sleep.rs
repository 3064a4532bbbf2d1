//! The future that the libraries wait on, and the choice of the timer.
//!
//! Their sleeps have no errors, but a timer of the caller's may refuse a sleep: it may have a bound,
//! and it can be shut down. If the sleep resolved then, it would be early; if it stayed pending, it
//! would be lost. So it goes on where nothing is refused: on the global timer, for the time that is
//! left.
//!
//! A library asks for the time as well, and computes deadlines from it. [`Source`] takes the time
//! and the sleeps from one timer: its own, or the one that is global where the library calls.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use shardwheel::{SleepError, Timer, global, set_at};

/// A sleep without errors, on any executor; what [`HyperTimer`](crate::HyperTimer) and the other
/// types of this crate wait on.
///
/// If its `Timer` refuses it (because it is full, out of memory or shut down), the sleep continues
/// on the [global `Timer`](Timer::global), for the time that is left by its own `Timer`'s clock. It
/// is neither lost nor early. With the feature `tracing`, a warning reports that.
///
/// It is [`Unpin`]. Once it has resolved, further polls are ready.
///
/// # Panics
///
/// A poll panics if the `Timer` refuses the sleep and the global `Timer` cannot be made.
#[must_use = "futures do nothing unless polled"]
pub struct Sleep {
    on: On,
}

enum On {
    Global(global::Sleep),
    Own(shardwheel::Sleep),
}

impl Sleep {
    /// Returns the deadline, by the clock of the `Timer` that the sleep is on; `None` if it is
    /// further away than the system's clock can represent.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        match &self.on {
            On::Global(sleep) => sleep.deadline(),
            On::Own(sleep) => sleep.deadline(),
        }
    }

    /// Returns the time until the deadline: zero if it has passed, [`Duration::MAX`] if it never
    /// comes.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        match &self.on {
            On::Global(sleep) => sleep.remaining(),
            On::Own(sleep) => sleep.remaining(),
        }
    }

    /// Returns whether the sleep is over: its next poll is ready.
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        match &self.on {
            On::Global(sleep) => sleep.is_elapsed(),
            On::Own(sleep) => sleep.is_elapsed(),
        }
    }

    /// Gives the sleep another deadline, by the clock of the `Timer` that it is on, whether it has
    /// resolved or not. [`reset_after`](Self::reset_after) needs no clock.
    ///
    /// # Performance
    ///
    /// As a reset of a [`shardwheel::Sleep`]: O(1), lock-free, without allocation. To a later
    /// deadline it is usually one compare-and-swap.
    pub fn reset(&mut self, deadline: Instant) {
        match &mut self.on {
            On::Global(sleep) => sleep.reset(deadline),
            On::Own(sleep) => sleep.reset(deadline),
        }
    }

    /// Makes the sleep end when `delay` has passed from now; as [`reset`](Self::reset).
    pub fn reset_after(&mut self, delay: Duration) {
        match &mut self.on {
            On::Global(sleep) => sleep.reset_after(delay),
            On::Own(sleep) => sleep.reset_after(delay),
        }
    }

    /// Continues on the global timer, and polls there. Its clock may be another one, so it gets the
    /// time that is left.
    #[cold]
    fn go_on(&mut self, refused: SleepError, context: &mut Context<'_>) -> Poll<()> {
        #[cfg(feature = "tracing")]
        crate::tracing::warn_refused(&refused, "a sleep, which continues on the global timer");
        let _ = refused;
        let mut sleep = shardwheel::sleep(self.remaining());
        let polled = Pin::new(&mut sleep).poll(context);
        self.on = On::Global(sleep);
        polled
    }
}

impl Future for Sleep {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let ended = match &mut this.on {
            On::Global(sleep) => return Pin::new(sleep).poll(context),
            On::Own(sleep) => ready!(Pin::new(sleep).poll(context)),
        };
        ended.map_or_else(|refused| this.go_on(refused, context), Poll::Ready)
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("deadline", &self.deadline()).finish_non_exhaustive()
    }
}

/// The timer on which a library sleeps.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// `None` for the global timer.
    own: Option<Timer>,
    /// Where the program has made the adapter: the place of its sleeps for `Timer::pending`.
    made_at: &'static Location<'static>,
}

#[cfg(feature = "tower")]
impl Source {
    /// The timer, if it is not the global one.
    pub(crate) fn own(&self) -> Option<&Timer> {
        self.own.as_ref()
    }
}

impl Source {
    /// The global timer, for an adapter that the caller's caller makes.
    #[track_caller]
    pub(crate) fn global() -> Self {
        Self { own: None, made_at: Location::caller() }
    }

    /// `timer`, likewise. Of a group's handle it is the timer itself: the end of the group would
    /// refuse each sleep.
    #[track_caller]
    pub(crate) fn of(timer: Timer) -> Self {
        Self { own: Some(timer.without_group()), made_at: Location::caller() }
    }
}

#[cfg_attr(not(feature = "hyper"), allow(dead_code, reason = "hyper alone uses all of it"))]
impl Source {
    pub(crate) fn sleep(&self, duration: Duration) -> Sleep {
        let on = || match &self.own {
            None => On::Global(shardwheel::sleep(duration)),
            Some(timer) => On::Own(timer.sleep(duration)),
        };
        Sleep { on: set_at(self.made_at, on) }
    }

    /// As [`sleep`](Self::sleep), without the timer's slack.
    #[cfg(feature = "tower")]
    pub(crate) fn sleep_exactly(&self, duration: Duration) -> Sleep {
        let exact = self.own.as_ref().and_then(|timer| {
            let at = timer.now().checked_add(duration)?;
            Some(Sleep { on: On::Own(set_at(self.made_at, || timer.sleep_within(at..=at))) })
        });
        exact.unwrap_or_else(|| self.sleep(duration))
    }

    pub(crate) fn sleep_until(&self, deadline: Instant) -> Sleep {
        let on = || match &self.own {
            None => On::Global(shardwheel::sleep_until(deadline)),
            Some(timer) => On::Own(timer.sleep_until(deadline)),
        };
        Sleep { on: set_at(self.made_at, on) }
    }

    /// The time by the timer's clock: the one of the sleeps that are made here.
    pub(crate) fn now(&self) -> Instant {
        self.own.as_ref().map_or_else(shardwheel::now, Timer::now)
    }

    /// Resets a sleep of this source to a deadline by [`now`](Self::now). A sleep that its own timer
    /// has refused is on the global timer, whose clock may be another one.
    pub(crate) fn reset(&self, sleep: &mut Sleep, deadline: Instant) {
        match (&self.own, &sleep.on) {
            (Some(own), On::Global(_)) => {
                sleep.reset_after(deadline.saturating_duration_since(own.now()));
            }
            _ => sleep.reset(deadline),
        }
    }
}
