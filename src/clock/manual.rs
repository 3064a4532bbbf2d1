//! A clock that is moved by hand, for tests and simulations.
//!
//! One thread at a time drives: it moves the time from one expiration to the next and runs what is due
//! there, on itself. Nothing is held while it does: `Seat` says who drives, and its lock is let go before any
//! timer is touched. So a callback may do anything, also move the clock (time then passes while it runs, and
//! the thread that drives goes on from there).
//!
//! Another thread that moves the clock meanwhile waits for the seat, unless the thread that drives waits for it in turn,
//! by itself or through others (see [`waits`](super::waits)). Then it lets time pass as well, and says so under the
//! seat's lock; the thread that drives looks there before it leaves the seat, and drives on.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::Clock;
use super::waits::{ThreadNumber, Wait, this_thread};
use crate::sync::Ordering;
use crate::sync::plain::AtomicU64;

/// What a manual clock drives: a timer's shards.
pub(crate) trait Driven: Send + Sync {
    /// When something is due next; never later than the truth.
    fn next_expiration(&self) -> Option<Instant>;

    /// Runs what is due by the clock.
    fn run_due(&self);
}

/// A clock that stands still until it is moved, and then drives the timers that were built with it.
///
/// Such a timer has no threads. [`advance`](Self::advance) runs callbacks and wakes futures on the calling
/// thread, in the order of their deadlines, the clock standing at each deadline in turn; when it returns, all
/// that is due by then has run. (Where callbacks run on an [`Executor`](crate::Executor), all have been handed to it.)
/// The same calls give the same order every time, but for timers of the same tick, whose order depends on what other
/// threads of the process do. Clones are handles of the same clock.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
/// use shardwheel::{ManualClock, Timer};
///
/// let clock = ManualClock::new();
/// let timer = Timer::builder().clock(clock.clone()).build()?;
/// let (told, heard) = mpsc::channel();
/// timer.schedule_after(Duration::from_secs(3600), move || told.send("an hour").unwrap())?;
///
/// clock.advance(Duration::from_secs(3599));
/// assert!(heard.try_recv().is_err());
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(heard.try_recv(), Ok("an hour"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

struct Shared {
    start: Instant,
    /// Nanoseconds since the start. Written by whoever moves the clock.
    elapsed: AtomicU64,
    seat: Mutex<Seat>,
    left: Condvar,
}

/// Who drives, and what.
struct Seat {
    driver: Option<ThreadNumber>,
    /// Whether time has passed while the driver drives.
    passed: bool,
    driven: Vec<Weak<dyn Driven>>,
}

impl ManualClock {
    /// A clock that stands at the present moment.
    #[must_use]
    pub fn new() -> Self {
        let seat = Mutex::new(Seat { driver: None, passed: false, driven: Vec::new() });
        let (start, elapsed) = (Instant::now(), AtomicU64::new(0));
        Self { shared: Arc::new(Shared { start, elapsed, seat, left: Condvar::new() }) }
    }

    /// How far the clock has been moved since it was made.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        // Ordering: Relaxed, as with any clock: the time tells of no more than itself.
        Duration::from_nanos(self.shared.elapsed.load(Ordering::Relaxed))
    }

    /// Moves the clock forward, from one expiration to the next, and runs at each what is due there.
    ///
    /// Called from a callback that this clock runs, it lets time pass while the callback runs: what becomes
    /// due meanwhile runs after it. Called while another thread moves the clock, it waits for that one; but where that
    /// thread waits for the calling one (two callbacks that move each other's clock, or one that has its timer shut down
    /// by a thread that moves the clock), it lets time pass and returns, and the other thread runs what is due.
    ///
    /// The clock can be moved by some 584 years in all; it stays there.
    pub fn advance(&self, by: Duration) {
        let Some(driving) = self.take_seat(by) else { return };
        let target = self.elapsed().saturating_add(by);
        // Takes in what an executor has run since.
        self.run_due();
        // A callback may have moved the clock past the target.
        while let Some(next) = self.next_expiration().filter(|&next| next <= target.max(self.elapsed())) {
            self.move_to(next);
            self.run_due();
        }
        self.move_to(target);
        driving.leave();
    }

    /// Moves the clock forward at once, as it seems to one who was suspended or stalled meanwhile, and then
    /// runs what is due by then.
    ///
    /// From a callback, and while another thread moves the clock, as [`advance`](Self::advance).
    pub fn jump(&self, by: Duration) {
        let Some(driving) = self.take_seat(by) else { return };
        self.pass(by);
        self.run_due();
        self.advance_in_seat();
        driving.leave();
    }

    /// Has the clock drive that timer from now on, until it is dropped.
    pub(crate) fn drive(&self, driven: Weak<dyn Driven>) {
        let mut seat = self.seat();
        // In the place of one that is gone: the others stay where they are, for a walk may be under way.
        match seat.driven.iter_mut().find(|driven| driven.strong_count() == 0) {
            Some(gone) => *gone = driven,
            None => seat.driven.push(driven),
        }
    }

    /// Runs what became due while something ran.
    fn advance_in_seat(&self) {
        while self.next_expiration().is_some_and(|next| next <= self.elapsed()) {
            self.run_due();
        }
    }

    fn pass(&self, by: Duration) {
        self.move_to(self.elapsed().saturating_add(by));
    }

    fn move_to(&self, elapsed: Duration) {
        let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        // Ordering: Relaxed, see `elapsed`.
        self.shared.elapsed.fetch_max(nanos, Ordering::Relaxed);
    }

    /// When something is due next, since the start.
    fn next_expiration(&self) -> Option<Duration> {
        let next = self.driven().filter_map(|driven| driven.next_expiration()).min()?;
        Some(next.saturating_duration_since(self.shared.start))
    }

    fn run_due(&self) {
        self.driven().for_each(|driven| driven.run_due());
    }

    /// What is driven, one after the other: the seat is not locked in between.
    fn driven(&self) -> impl Iterator<Item = Arc<dyn Driven>> + '_ {
        let at = |place| self.seat().driven.get(place).map(Weak::upgrade);
        (0..).map_while(at).flatten()
    }

    fn seat(&self) -> MutexGuard<'_, Seat> {
        unpoisoned(self.shared.seat.lock())
    }

    /// The right to drive. None if this thread has it already, further out, or if the thread that has it waits for this
    /// one: then that much time has passed, for the thread that drives to see.
    fn take_seat(&self, by: Duration) -> Option<Driving<'_>> {
        let me = this_thread();
        let mut seat = self.seat();
        while let Some(driver) = seat.driver {
            // A wait of a thread for itself is refused, too.
            let Some(_wait) = Wait::begin(driver) else {
                self.pass(by);
                seat.passed = true;
                return None;
            };
            seat = unpoisoned(self.shared.left.wait(seat));
        }
        seat.driver = Some(me);
        Some(Driving(self))
    }
}

/// What a lock guards is whole also after a panic: no user code runs under it.
pub(crate) fn unpoisoned<G>(result: Result<G, PoisonError<G>>) -> G {
    result.unwrap_or_else(PoisonError::into_inner)
}

/// The right to drive, given up when dropped.
struct Driving<'a>(&'a ManualClock);

impl Driving<'_> {
    /// Gives the right up when all that is due by the clock has run.
    fn leave(self) {
        while !self.try_leave() {
            self.0.advance_in_seat();
        }
    }

    /// Gives the right up, unless time has passed since the last call: what is due may be more by then.
    fn try_leave(&self) -> bool {
        let mut seat = self.0.seat();
        let passed = std::mem::take(&mut seat.passed);
        if !passed {
            seat.driver = None;
        }
        !passed
    }
}

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        let mut seat = self.0.seat();
        if seat.driver == Some(this_thread()) {
            seat.driver = None;
        }
        drop(seat);
        // All that wait: each writes down anew for whom it waits.
        self.0.shared.left.notify_all();
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        let shared = &self.shared;
        shared.start.checked_add(self.elapsed()).unwrap_or(shared.start)
    }

    fn as_manual(&self) -> Option<&ManualClock> {
        Some(self)
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock").field("elapsed", &self.elapsed()).finish_non_exhaustive()
    }
}
