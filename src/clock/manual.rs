//! A clock that tests and simulations move by hand.
//!
//! One thread at a time drives the clock: it moves the time from one expiration to the next and
//! runs what is due there, on itself. It holds no lock while it drives: `Seat` says that the clock
//! is driven, and its lock is released before any timer is touched. So a callback may do anything,
//! including moving the clock. Time then passes while the callback runs, and the driver continues
//! from there.
//!
//! Another thread that moves the clock meanwhile waits for the seat. User code of a timer does not
//! wait (see [`caller`](super::caller)): it adds its time to the clock at once, and sets `passed`
//! under the seat's lock. The driver checks `passed` before it leaves the seat, and drives on if it
//! is set.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};

use super::{Clock, UserCode, is_user_code, unpoisoned};
use crate::sync::Ordering;
use crate::sync::plain::AtomicU64;
use crate::time::{Duration, Instant};

/// What a manual clock drives: a timer's shards.
pub(crate) trait RunByClock: Send + Sync {
    /// The earliest expiration, or an earlier time; never a later one.
    fn next_expiration(&self) -> Option<Instant>;

    /// Runs what is due by the clock, at which it is `now`.
    fn run_due(&self, now: Instant);
}

/// A clock that stands still until a caller moves it, and then drives the `Timer`s that were built
/// with it.
///
/// Such a `Timer` has no threads. [`advance`](Self::advance) runs callbacks and wakes futures on
/// the calling thread, in the order of their deadlines, and the clock stands at each deadline in
/// turn. When it returns, everything that is due by then has run. (With an
/// [`Executor`](crate::Executor), every callback that is due has been passed to it.) The same calls
/// give the same order every time, except for timers of the same tick: their order depends on what
/// other threads of the process do. Clones are handles of the same clock.
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
/// let (sender, receiver) = mpsc::channel();
/// timer.schedule_after(Duration::from_secs(3600), move || sender.send("an hour").unwrap())?;
///
/// clock.advance(Duration::from_secs(3599));
/// assert!(receiver.try_recv().is_err());
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(receiver.try_recv(), Ok("an hour"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ManualClock {
    shared: Arc<ManualState>,
}

struct ManualState {
    start: Instant,
    /// Nanoseconds since the start. Written by every thread that moves the clock.
    elapsed: AtomicU64,
    seat: Mutex<Seat>,
    left: Condvar,
}

/// Who drives the clock, and what it drives. Written under its lock.
struct Seat {
    is_driven: bool,
    /// User code has added time while the clock is driven.
    passed: bool,
    driven: Vec<Weak<dyn RunByClock>>,
}

/// The clock goes no further, counted from its start: 584 years.
const END: Duration = Duration::from_nanos(u64::MAX);

impl ManualClock {
    /// Creates a clock that stands at the present moment.
    #[must_use]
    pub fn new() -> Self {
        let seat = Mutex::new(Seat { is_driven: false, passed: false, driven: Vec::new() });
        let (start, elapsed) = (Instant::now(), AtomicU64::new(0));
        Self { shared: Arc::new(ManualState { start, elapsed, seat, left: Condvar::new() }) }
    }

    /// Returns how far the clock has been moved since its creation.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        // Ordering: Relaxed, as with any clock: the time publishes nothing else.
        Duration::from_nanos(self.shared.elapsed.load(Ordering::Relaxed))
    }

    /// Moves the clock forward, from one expiration to the next, and runs at each what is due
    /// there.
    ///
    /// If a callback that this clock runs calls it, time passes while the callback runs, and what
    /// becomes due meanwhile runs after the callback. If another thread is moving the clock, the
    /// call waits for that thread. Only a call from a callback, of any `Timer`, does not wait: it
    /// adds the time and returns, and the other thread runs what is due. The clock then ends at the
    /// later of the two times.
    ///
    /// The clock can be moved by about 584 years in all, and stays there.
    ///
    /// # Performance
    ///
    /// O(shards of all `Timer`s of the clock) for each time at which something is due, and what the
    /// due timers cost.
    pub fn advance(&self, by: Duration) {
        self.drive_for(by);
    }

    /// As [`advance`](Self::advance). False if it has added the time alone.
    pub(super) fn drive_for(&self, by: Duration) -> bool {
        let Some(driving) = self.take_seat(by) else { return false };
        driving.run_until(self.elapsed().saturating_add(by));
        true
    }

    /// Moves the clock forward in a single step, as after a suspend or a stall, and then runs what
    /// is due by then: of each shard in the order of the deadlines, one shard after the other.
    ///
    /// From a callback, and while another thread moves the clock, it behaves as
    /// [`advance`](Self::advance).
    pub fn jump(&self, by: Duration) {
        let Some(driving) = self.take_seat(by) else { return };
        self.pass(by);
        driving.run_until(Duration::ZERO);
    }

    /// Returns when [`advance`](Self::advance) next has something to do, by this clock. `None` if
    /// nothing is pending in the `Timer`s that it drives.
    ///
    /// That is the deadline of the next timer, rounded up to a tick, or an earlier time at which
    /// timers move to a finer wheel. It is never later than the deadline. A recurring timer that an
    /// [`Executor`](crate::Executor) has counts again when the executor has run it.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let next = self.next_expiration()?;
        self.shared.start.checked_add(next)
    }

    /// Makes the clock drive `driven` from now on, until that is dropped.
    pub(crate) fn drive(&self, driven: Weak<dyn RunByClock>) {
        let mut seat = self.seat();
        seat.driven.retain(|driven| driven.strong_count() > 0);
        seat.driven.push(driven);
    }

    /// Whether both are handles of one clock.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    fn pass(&self, by: Duration) {
        self.move_to(self.elapsed().saturating_add(by));
    }

    fn move_to(&self, elapsed: Duration) {
        let nanos = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        // Ordering: Relaxed, see `elapsed`.
        self.shared.elapsed.fetch_max(nanos, Ordering::Relaxed);
    }

    /// The next expiration, since the start.
    pub(super) fn next_expiration(&self) -> Option<Duration> {
        let next = self.driven().iter().filter_map(|driven| driven.next_expiration()).min()?;
        // What comes after the clock's end never comes.
        Some(next.saturating_duration_since(self.shared.start)).filter(|&next| next <= END)
    }

    fn run_due(&self) {
        let now = self.now();
        self.driven().iter().for_each(|driven| driven.run_due(now));
    }

    /// What the clock drives; the seat is not locked while that is looked at or run.
    fn driven(&self) -> Vec<Arc<dyn RunByClock>> {
        self.seat().driven.iter().filter_map(Weak::upgrade).collect()
    }

    fn seat(&self) -> MutexGuard<'_, Seat> {
        unpoisoned(self.shared.seat.lock())
    }

    /// Takes the right to drive. `None` if the clock is driven and the caller is user code, of this
    /// clock or of another timer. Then the clock has been moved by `by`, and `passed` tells the
    /// driver.
    fn take_seat(&self, by: Duration) -> Option<Driving<'_>> {
        let mut seat = self.seat();
        if seat.is_driven && is_user_code() {
            self.pass(by);
            seat.passed = true;
            return None;
        }
        seat = unpoisoned(self.shared.left.wait_while(seat, |seat| seat.is_driven));
        seat.is_driven = true;
        seat.driven.retain(|driven| driven.strong_count() > 0);
        Some(Driving { clock: self, has_left: false, _user_code: UserCode::begin() })
    }
}

/// The right to drive; released on drop.
struct Driving<'a> {
    clock: &'a ManualClock,
    has_left: bool,
    _user_code: UserCode,
}

impl Driving<'_> {
    /// Moves the clock to `target`, from one expiration to the next, and runs what is due. Releases
    /// the right once everything that is due by the clock has run.
    fn run_until(mut self, target: Duration) {
        let clock = self.clock;
        loop {
            // Takes in what an executor has run since the last call.
            clock.run_due();
            // A callback may have moved the clock past the target.
            while let Some(next) = clock.next_expiration().filter(|&next| next <= target.max(clock.elapsed()))
            {
                clock.move_to(next);
                clock.run_due();
            }
            clock.move_to(target);
            if self.try_leave() {
                return;
            }
        }
    }

    /// Releases the right, unless time has passed since the last call: more may be due then.
    fn try_leave(&mut self) -> bool {
        let mut seat = self.clock.seat();
        self.has_left = !std::mem::take(&mut seat.passed);
        seat.is_driven = !self.has_left;
        self.has_left
    }
}

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        if !self.has_left {
            self.clock.seat().is_driven = false;
        }
        self.clock.shared.left.notify_one();
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
