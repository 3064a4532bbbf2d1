//! Cron expressions, by croner and jiff.

use std::error::Error;
use std::fmt;
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
/// A time zone, of the crate jiff: `TimeZone::get("Europe/Berlin")`, `TimeZone::system()`,
/// `TimeZone::UTC`.
pub use jiff::tz::TimeZone;
use shardwheel::{Schedule, WallSchedule};

/// Dates by a cron expression in a time zone; for
/// [`Timer::schedule_with`](shardwheel::Timer::schedule_with).
///
/// The expression has five fields (minute, hour, day of the month, month, day of the week), or six
/// with the seconds before them, as [croner](https://docs.rs/croner) reads them. With a day of the month
/// and a day of the week, either of the two suffices, as in Unix. What happens when
/// the wall clock is set, and after a suspend, is that of a [`WallSchedule`].
///
/// Where a zone moves its clocks:
///
/// - A local time that *does not exist* (02:30 in the night in which 02:00 becomes 03:00): an
///   expression with a fixed time (`30 2 * * *`) is due at the first moment after the gap, 03:00.
///   One with a `*` or a step in its seconds, minutes or hours (`*/30 * * * *`) has no dates in the
///   gap. Neither has a list or a range (`30 2,14 * * *`): make a timer for each of its times.
/// - A local time that *exists twice* (02:30 in the night in which 03:00 becomes 02:00): an
///   expression with a fixed time is due once, the first time; one with a `*`, a step, a list or a
///   range both times.
///
/// The zone's rules are those that were read when `zone` was made.
///
/// # Examples
///
/// ```
/// use shardwheel::Timer;
/// use shardwheel_compat::{Cron, TimeZone};
///
/// let timer = Timer::new()?;
/// let berlin = TimeZone::get("Europe/Berlin")?;
/// timer.schedule_with(Cron::new("0 3 * * *", berlin)?, || println!("three o'clock in Berlin"))?;
///
/// let error = Cron::new("0 25 * * *", TimeZone::UTC).unwrap_err();
/// assert!(error.to_string().starts_with("\"0 25 * * *\" is no cron expression: "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Performance
///
/// As a [`WallSchedule`], and a search for the date at each look, which takes some microseconds. To
/// find out that an expression has no date takes up to a second, in the call that schedules it.
pub struct Cron {
    dates: Dates,
    schedule: WallSchedule<Next, Wall>,
}

type Next = Box<dyn FnMut(SystemTime) -> Option<SystemTime> + Send>;
type Wall = Box<dyn FnMut() -> SystemTime + Send>;

#[derive(Clone)]
struct Dates {
    pattern: croner::Cron,
    zone: TimeZone,
}

impl Dates {
    fn after(&self, after: SystemTime) -> Option<SystemTime> {
        let after = Timestamp::try_from(after).ok()?.to_zoned(self.zone.clone());
        let date = self.pattern.find_next_occurrence(&after, false).ok()?;
        Some(date.timestamp().into())
    }
}

impl Cron {
    /// Makes a schedule of the expression's dates.
    ///
    /// # Errors
    ///
    /// If the expression is none. An expression without dates (`0 0 30 2 *`) is one:
    /// `schedule_with` refuses it, with the callback.
    pub fn new(expression: &str, zone: TimeZone) -> Result<Self, CronError> {
        let refused = |reason| CronError { expression: expression.into(), reason };
        let dates = Dates { pattern: expression.parse().map_err(refused)?, zone };
        let own = dates.clone();
        let next: Next = Box::new(move |after| own.after(after));
        Ok(Self { dates, schedule: WallSchedule::new(next).clock(Box::new(SystemTime::now)) })
    }

    /// Sets the longest time between two looks at the wall clock, see
    /// [`WallSchedule::look_every`]. Default: one minute.
    #[must_use]
    pub fn look_every(self, time: Duration) -> Self {
        Self { schedule: self.schedule.look_every(time), ..self }
    }

    /// Sets the source of the wall time, for tests, see [`WallSchedule::clock`].
    #[must_use]
    pub fn clock(self, wall: impl FnMut() -> SystemTime + Send + 'static) -> Self {
        Self { schedule: self.schedule.clock(Box::new(wall)), ..self }
    }

    /// Returns the first date after `after`, if there is one.
    #[must_use]
    pub fn date_after(&self, after: SystemTime) -> Option<SystemTime> {
        self.dates.after(after)
    }
}

impl Schedule for Cron {
    fn next(&mut self, previous: Instant) -> Option<Instant> {
        self.schedule.next(previous)
    }

    fn next_after(&mut self, previous: Instant, now: Instant) -> Option<Instant> {
        self.schedule.next_after(previous, now)
    }

    fn is_due(&mut self) -> bool {
        self.schedule.is_due()
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Dates { pattern, zone } = &self.dates;
        f.debug_struct("Cron")
            .field("expression", &pattern.as_str())
            .field("zone", zone)
            .finish_non_exhaustive()
    }
}

/// Why a text is no cron expression.
#[derive(Debug)]
#[non_exhaustive]
pub struct CronError {
    /// The text.
    pub expression: String,
    reason: croner::errors::CronError,
}

impl fmt::Display for CronError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no cron expression: {}", self.expression, self.reason)
    }
}

impl Error for CronError {}
