//! Cron expressions, by croner and jiff.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::time::{Duration, Instant, SystemTime};

use croner::JobType;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::AmbiguousOffset;
/// A time zone, of the crate jiff: `TimeZone::get("Europe/Berlin")`, `TimeZone::system()`,
/// `TimeZone::UTC`.
///
/// `TimeZone::system()` returns an unknown zone, which shows the time of UTC, where the system has
/// no zone files, or its setting names none of them. [`Cron::new`] refuses that zone.
pub use jiff::tz::TimeZone;
use shardwheel::{Schedule, WallSchedule};

/// Dates by a cron expression in a time zone; for
/// [`Timer::schedule_with`](shardwheel::Timer::schedule_with).
///
/// The expression has five fields (minute, hour, day of the month, month, day of the week), or six
/// with the seconds before them, or seven with the year after those, as
/// [croner](https://docs.rs/croner) reads them. There are no dates after the year 5000. After a
/// suspend, and when the wall clock is set, it behaves as a [`WallSchedule`].
///
/// With a day of the month *and* a day of the week, one of the two suffices, if neither field is a
/// `*` alone: `0 0 13 * 5` is due on each 13th and on each Friday. A step such as `*/2` counts as a
/// day of the month here: `0 0 */2 * 1` is due on each odd day and on each Monday. (Where Unix has
/// Vixie's cron, it takes a field that begins with `*` for no such day, and asks for both.) With a
/// `+` before the day of the week, both have to be right: `0 0 */2 * +1` is due on odd Mondays.
///
/// Where a zone moves its clocks:
///
/// - A local time that *does not exist* (02:30 in the night in which 02:00 becomes 03:00): an
///   expression with a fixed time (`30 2 * * *`) is due at the first moment after the gap, 03:00,
///   be that on another day (in Nuuk, where a Saturday in March ends at 23:00, 23:30 is due at the
///   first moment of Sunday), and if the gap leaves out a whole day.
///   One with a `*` or a step in its seconds, minutes or hours (`*/30 * * * *`) has no dates in the
///   gap. Nor does one with a list or a range (`30 2,14 * * *`): make a timer for each of its
///   times.
/// - A local time that *exists twice* (02:30 in the night in which 03:00 becomes 02:00): an
///   expression with a fixed time is due once, the first time; one with a `*`, a step, a list or a
///   range both times.
///
/// The zone's rules are those that were read when `zone` was made.
///
/// The wall clock is the system's, also for a timer with a [`ManualClock`](shardwheel::ManualClock)
/// and within the scope of one. There a job needs a wall clock that moves along: see
/// [`clock`](Self::clock).
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

/// The pattern is asked about local times, and knows no zone; the zone's rules are applied here.
impl Dates {
    fn after(&self, after: SystemTime) -> Option<SystemTime> {
        let after = Timestamp::try_from(after).ok()?;
        let date = match self.pattern.determine_job_type() {
            JobType::FixedTime => self.fixed(after),
            JobType::IntervalWildcard => self.interval(after),
        };
        Some(date?.into())
    }

    /// The first local time of the pattern, from this one on or after it. `None` if croner finds
    /// none up to its last year, 5000: of two local times no other search fails.
    fn local(&self, from: DateTime, inclusive: bool) -> Option<DateTime> {
        self.pattern.find_next_occurrence(&from, inclusive).ok()
    }

    /// Each local time is one moment: the first of the two in an overlap, the end of a gap. Later
    /// local times are no earlier moments, so the first that lies after `after` is the date.
    fn fixed(&self, after: Timestamp) -> Option<Timestamp> {
        let mut local = self.zone.to_datetime(after);
        loop {
            local = self.local(local, false)?;
            let moment = match self.zone.to_ambiguous_timestamp(local).offset() {
                AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).ok()?,
                AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok()?,
                // By the offset after the gap, the local time lies before it.
                AmbiguousOffset::Gap { after, .. } => {
                    let before_gap = after.to_timestamp(local).ok()?;
                    self.zone.following(before_gap).next()?.timestamp()
                }
            };
            if moment > after {
                return Some(moment);
            }
        }
    }

    /// Each moment whose local time is the pattern's. Between two changes of the offset, local time
    /// runs as time does.
    fn interval(&self, after: Timestamp) -> Option<Timestamp> {
        let mut offset = self.zone.to_offset(after);
        // Of the local times from `from` on, `local` is the first of the pattern.
        let mut from = offset.to_datetime(after);
        let mut local = self.local(from, false)?;
        for change in self.zone.following(after) {
            if offset.to_timestamp(local).is_ok_and(|moment| moment < change.timestamp()) {
                break;
            }
            offset = change.offset();
            let begin = offset.to_datetime(change.timestamp());
            if begin < from || begin > local {
                (from, local) = (begin, self.local(begin, true)?);
            }
        }
        offset.to_timestamp(local).ok()
    }
}

impl Cron {
    /// Makes a schedule of the expression's dates.
    ///
    /// # Errors
    ///
    /// If the expression is none, or the zone is the unknown one that `TimeZone::system()` returns
    /// where the system does not say its zone. An expression without dates (`0 0 30 2 *`) is one:
    /// `schedule_with` refuses it, with the callback.
    pub fn new(expression: &str, zone: TimeZone) -> Result<Self, CronError> {
        let refused = |reason| CronError { expression: expression.into(), reason };
        let pattern = expression.parse().map_err(|error| refused(Reason::Expression(error)))?;
        if zone.is_unknown() {
            return Err(refused(Reason::UnknownZone(env::var_os("TZ"))));
        }
        let dates = Dates { pattern, zone };
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
    /// A job of a timer with a [`ManualClock`](shardwheel::ManualClock), or within the scope of one,
    /// needs it: its example moves the wall time along with that clock.
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

/// Why there are no dates by a text in a zone.
#[derive(Debug)]
#[non_exhaustive]
pub struct CronError {
    /// The text.
    pub expression: String,
    reason: Reason,
}

#[derive(Debug)]
enum Reason {
    Expression(croner::errors::CronError),
    /// With the environment's `TZ`.
    UnknownZone(Option<OsString>),
}

impl fmt::Display for CronError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expression, reason } = self;
        match reason {
            Reason::Expression(reason) => write!(f, "{expression:?} is no cron expression: {reason}"),
            Reason::UnknownZone(setting) => {
                write!(f, "the time zone for {expression:?} is unknown: ")?;
                match setting {
                    Some(tz) => write!(f, "TZ is {tz:?}, for which the system has no zone file"),
                    None => write!(f, "TZ is not set, and the system's own setting has no zone file"),
                }?;
                f.write_str("; install the zone files, set TZ, or pass a zone such as TimeZone::UTC")
            }
        }
    }
}

impl Error for CronError {}
