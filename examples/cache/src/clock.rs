//! Time: ticks of a millisecond that all threads count alike, and the wall clock beside them.
//!
//! A tick begins where a millisecond of the wall clock begins: `tick + offset` is the wall clock's
//! time. If the wall clock is set, only the offset changes. A deadline that was given as a duration
//! (`EX`, `EXPIRE`) is a tick and stays; one that was given as a date (`EXAT`, `EXPIREAT`) is a time
//! of the wall clock and gets another tick. As in Redis, a key lives through the millisecond of its
//! deadline.

use std::num::NonZeroI64;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};
use shardwheel::Tick;

pub(crate) const TICK: Duration = Duration::from_millis(1);
/// After this, a thread compares the two clocks again.
pub(crate) const CHECK: Duration = Duration::from_millis(100);
/// A smaller difference is noise: the clocks are read one after the other.
const STEP: i64 = 2;

/// Ticks since the start. The same for all threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
    offset: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadline(
    /// If positive, a time of the wall clock in milliseconds; if negative, a tick, negated.
    NonZeroI64,
);

/// A step of work for one client, or for another thread. Work that lasts longer goes on in the next round.
#[derive(Clone, Copy)]
pub(crate) struct Step(Timespec);

/// Linux's coarse clock moves every 1 to 10 ms. To read it takes a third of the time of the precise one, so it can be read
/// after each command.
#[cfg(target_os = "linux")]
const COARSE: ClockId = ClockId::MonotonicCoarse;
#[cfg(not(target_os = "linux"))]
const COARSE: ClockId = ClockId::Monotonic;
/// The least that a step takes. If the clock is coarse, a step takes until the clock moves.
const STEP_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000 };

pub(crate) struct Time {
    clock: Clock,
    /// How far the wall clock is ahead of the ticks.
    offset: i64,
    tick: i64,
    checked: i64,
}

impl Clock {
    pub(crate) fn start_now() -> Self {
        let (now, wall) = (Instant::now(), wall_clock());
        let into_millisecond = Duration::from_nanos(u64::from(wall.subsec_nanos() % 1_000_000));
        Self { start: now.checked_sub(into_millisecond).unwrap_or(now), offset: wall.as_millis() as i64 }
    }

    pub(crate) fn tick(self) -> i64 {
        self.start.elapsed().as_millis() as i64
    }

    pub(crate) fn until(self, tick: Tick) -> Duration {
        Duration::from_millis(tick).saturating_sub(self.start.elapsed())
    }
}

impl Deadline {
    /// A time of the wall clock, in milliseconds. The past is a deadline, too.
    pub(crate) fn at(wall: i64) -> Self {
        Self(NonZeroI64::new(wall.max(1)).unwrap_or(NonZeroI64::MAX))
    }

    pub(crate) fn is_date(self) -> bool {
        self.0.get() > 0
    }
}

impl Step {
    pub(crate) fn begin() -> Self {
        Self(clock_gettime(COARSE))
    }

    pub(crate) fn is_over(self) -> bool {
        clock_gettime(COARSE) - self.0 >= STEP_TIME
    }
}

impl Time {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, offset: clock.offset, tick: clock.tick(), checked: 0 }
    }

    /// Reads the clocks. True if the wall clock has been set.
    pub(crate) fn refresh(&mut self) -> bool {
        self.tick = self.clock.tick();
        if self.tick - self.checked < CHECK.as_millis() as i64 {
            return false;
        }
        self.checked = self.tick;
        let wall = wall_clock().as_millis() as i64;
        // A thread that was interrupted between the two readings learns nothing from them.
        let is_quick = self.clock.tick() - self.tick < STEP;
        let is_set = is_quick && (wall - self.wall()).abs() > STEP;
        self.offset = if is_set { wall - self.tick } else { self.offset };
        is_set
    }

    pub(crate) fn tick(&self) -> Tick {
        self.tick as Tick
    }

    /// The wall clock's time in milliseconds since 1970.
    pub(crate) fn wall(&self) -> i64 {
        self.tick + self.offset
    }

    /// The deadline that is this many milliseconds from now. `None` if it is beyond all dates.
    pub(crate) fn after(&self, milliseconds: i64) -> Option<Deadline> {
        let _is_a_date = self.wall().checked_add(milliseconds)?;
        let tick = self.tick.saturating_add(milliseconds);
        Some(Deadline(NonZeroI64::new(-tick.max(1)).unwrap_or(NonZeroI64::MAX)))
    }

    /// A deadline as a time of the wall clock, as it stands now.
    pub(crate) fn wall_of(&self, deadline: Deadline) -> i64 {
        match deadline.0.get() {
            date @ 1.. => date,
            tick => (-tick).saturating_add(self.offset),
        }
    }

    fn tick_of(&self, deadline: Deadline) -> i64 {
        match deadline.0.get() {
            date @ 1.. => date.saturating_sub(self.offset),
            tick => -tick,
        }
    }

    pub(crate) fn has_passed(&self, deadline: Deadline) -> bool {
        self.tick > self.tick_of(deadline)
    }

    /// The tick at which a deadline has passed: for the shard.
    pub(crate) fn due(&self, deadline: Deadline) -> Tick {
        self.tick_of(deadline).saturating_add(1).max(0) as Tick
    }
}

pub(crate) fn wall_clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(any(test, fuzzing))]
mod support;

#[cfg(test)]
mod tests {
    use super::*;

    fn time() -> Time {
        Time::new(Clock::start_now())
    }

    #[test]
    fn a_key_lives_through_the_millisecond_of_its_deadline() {
        let time = time();
        let (now, past) = (Deadline::at(time.wall()), Deadline::at(time.wall() - 1));
        assert!(!time.has_passed(now) && time.has_passed(past));
        assert_eq!((time.due(now), time.due(past)), (time.tick() + 1, time.tick()));
    }
}
