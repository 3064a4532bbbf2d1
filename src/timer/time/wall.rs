//! A schedule by the wall clock.
//!
//! A timer waits by a clock that is never set, and the wall clock may be set at any moment. So the
//! schedule is due now and then between two dates (a *look*), reads the wall clock, and asks for
//! the next date again. That date depends on nothing but the reading and the last date that was
//! due, so it does not matter when and how often the clock was set before.

use super::schedule::Schedule;
use crate::time::{Duration, Instant, SystemTime};

/// How often it looks, unless the user says otherwise.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// A schedule that follows dates of the wall clock.
///
/// Its `dates` is a closure that returns the first date after the given one, or `None` if there is
/// none. It is asked again at each look, and about earlier times after the wall clock was set back,
/// so it should depend on its argument alone. An answer that is not later than the argument counts
/// as `None`. For cron expressions and time zones, see `Cron` in the package
/// [`shardwheel-compat`](https://docs.rs/shardwheel-compat).
///
/// - *Never before its date*: the wall clock is read again just before each call of the callback.
/// - *Set forward* over a date: the callback is called at the next look, at most
///   [`look_every`](Self::look_every) later. If the clock skips several dates, the first of them is
///   due, once, and the others are left out; the same goes for dates that pass while the callback
///   runs, or while the machine is suspended.
/// - *Set back* over a date that has been due: the callback is not called for that date again, nor
///   for an earlier one. Dates that the clock had skipped are due when it reaches them. If the
///   clock was wrong by a year and a date was due meanwhile, the next date is a year away: cancel
///   the timer and schedule it anew.
/// - *Time zones*: a date is a [`SystemTime`], the same moment in all zones. The closure alone
///   decides about local times that do not exist, or exist twice, when a zone moves its clocks.
///
/// The schedule ends when `dates` returns `None`. [`Timer::deadline`](crate::Timer::deadline) of
/// such a timer is its next look, and each look counts as an occurrence in the `Timer`'s
/// statistics.
///
/// # Examples
///
/// Every day at 03:00 UTC:
///
/// ```
/// use std::time::{Duration, SystemTime, UNIX_EPOCH};
/// use shardwheel::{Timer, WallSchedule};
///
/// const DAY: u64 = 24 * 60 * 60;
/// let nightly = WallSchedule::new(|after: SystemTime| {
///     let (since, offset) = (after.duration_since(UNIX_EPOCH).ok()?.as_secs(), 3 * 60 * 60);
///     let days = (since + DAY - offset) / DAY;
///     UNIX_EPOCH.checked_add(Duration::from_secs(days * DAY + offset))
/// });
/// let timer = Timer::builder().build()?;
/// timer.schedule_with(nightly, || println!("three o'clock"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Performance
///
/// While it is scheduled, a look every minute: one wake-up, one reading of the wall clock and one
/// call of `dates`. [`look_every`](Self::look_every) sets another time.
#[derive(Clone, Debug)]
pub struct WallSchedule<D, W = fn() -> SystemTime> {
    dates: D,
    wall: W,
    look_every: Duration,
    /// The date that it waits for.
    date: Option<SystemTime>,
    /// The last date that was due.
    last: Option<SystemTime>,
    /// The wall clock at the last look.
    looked: Option<SystemTime>,
}

impl<D: FnMut(SystemTime) -> Option<SystemTime>> WallSchedule<D> {
    /// Makes a schedule of these dates, by [`SystemTime::now`]. The first is the first after the
    /// call that schedules the timer.
    #[must_use]
    pub fn new(dates: D) -> Self {
        let wall: fn() -> SystemTime = SystemTime::now;
        Self { dates, wall, look_every: LOOK_EVERY, date: None, last: None, looked: None }
    }
}

impl<D, W> WallSchedule<D, W> {
    /// Sets the longest time between two looks at the wall clock. Default: one minute.
    ///
    /// If the clock is set forward over a date, the callback is late by at most this time, as it is
    /// after a suspend. The time is by the `Timer`'s clock. Zero means a look at every tick.
    #[must_use]
    pub fn look_every(self, time: Duration) -> Self {
        // Not zero: a look is after the one before it.
        Self { look_every: time.max(Duration::from_nanos(1)), ..self }
    }

    /// Sets the source of the wall time, for tests.
    ///
    /// # Examples
    ///
    /// A wall clock that a [`ManualClock`](crate::ManualClock) moves:
    ///
    /// ```
    /// use std::time::{Duration, SystemTime, UNIX_EPOCH};
    /// use shardwheel::{ManualClock, Timer, WallSchedule};
    ///
    /// let (clock, new_year) = (ManualClock::new(), UNIX_EPOCH + Duration::from_secs(1_893_456_000));
    /// let timer = Timer::builder().clock(clock.clone()).build()?;
    /// let (wall, eve) = (clock.clone(), new_year - Duration::from_secs(3600));
    /// let once = WallSchedule::new(move |after| (after < new_year).then_some(new_year));
    /// let key = timer.schedule_with(once.clock(move || eve + wall.elapsed()), || println!("2030"))?;
    ///
    /// clock.advance(Duration::from_secs(3599));
    /// assert!(timer.is_pending(key));
    /// clock.advance(Duration::from_secs(1));
    /// assert!(!timer.is_pending(key));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn clock<V: FnMut() -> SystemTime>(self, wall: V) -> WallSchedule<D, V> {
        let Self { dates, look_every, date, last, looked, .. } = self;
        WallSchedule { dates, wall, look_every, date, last, looked }
    }
}

impl<D, W> Schedule for WallSchedule<D, W>
where
    D: FnMut(SystemTime) -> Option<SystemTime> + Send + 'static,
    W: FnMut() -> SystemTime + Send + 'static,
{
    fn next(&mut self, previous: Instant) -> Option<Instant> {
        self.next_after(previous, previous)
    }

    fn next_after(&mut self, _previous: Instant, now: Instant) -> Option<Instant> {
        let wall = (self.wall)();
        // Counts from the last look: a date that has come since then is not left out.
        let after = self.last.max(Some(self.looked.unwrap_or(wall)))?;
        self.date = (self.dates)(after).filter(|&date| date > after);
        // No time is left if the date has come.
        let left = self.date?.duration_since(wall).unwrap_or_default();
        now.checked_add(left.min(self.look_every))
    }

    fn is_due(&mut self) -> bool {
        let wall = (self.wall)();
        self.looked = Some(wall);
        let reached = self.date.filter(|&date| date <= wall);
        self.last = reached.or(self.last);
        reached.is_some()
    }
}
