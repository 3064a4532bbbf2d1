//! The driver of a clock: in one call, tick by tick, or as an event loop does.

use std::ops::Range;
use std::time::{Duration, Instant};

use crate::checksum::Checksum;
use crate::engines::{Engine, Next};

/// The figures of [`ByTicks`] and of [`ByLoop`]: a timer that fires, all calls included, and a call.
pub(crate) const TICKED: &str = "fire, tick by tick";
pub(crate) const LONGEST: &str = "advance, tick by tick, longest";
pub(crate) const LOOPED: &str = "fire, event loop";

/// How a program moves the clock of an engine.
pub(crate) trait Rhythm<E> {
    /// Returns the tick that the clock moves to after `now`; `None` at the end.
    fn next(engine: &E, now: u64, end: u64) -> Option<u64>;
}

/// One call moves the clock to the end.
pub(crate) struct AtOnce;

/// A call for each tick, as a program makes that has a ticker.
pub(crate) struct ByTicks;

/// A call for each tick that the engine asks for, as an event loop makes, until it is empty.
pub(crate) struct ByLoop;

impl<E> Rhythm<E> for AtOnce {
    fn next(_: &E, now: u64, end: u64) -> Option<u64> {
        (now < end).then_some(end)
    }
}

impl<E> Rhythm<E> for ByTicks {
    #[inline]
    fn next(_: &E, now: u64, end: u64) -> Option<u64> {
        (now < end).then_some(now + 1)
    }
}

impl<E: Next> Rhythm<E> for ByLoop {
    #[inline]
    fn next(engine: &E, _: u64, _: u64) -> Option<u64> {
        engine.next_expiration()
    }
}

/// Moves the clock over `ticks`, by calls of `step`; panics if what fires is not what is expected.
#[inline]
pub(crate) fn drive<E: Engine, R: Rhythm<E>>(
    engine: &mut E,
    ticks: Range<u64>,
    expected: &Checksum,
    mut step: impl FnMut(&mut E, u64, &mut Checksum),
) -> Duration {
    let (mut now, mut fired) = (ticks.start, Checksum::default());
    let start = Instant::now();
    while let Some(next) = R::next(engine, now, ticks.end) {
        debug_assert!(next > now, "{} asks for a tick that has passed", E::NAME);
        step(engine, next, &mut fired);
        debug_assert!(fired.last <= next, "{} fired a timer early", E::NAME);
        now = next;
    }
    let elapsed = start.elapsed();
    fired.verify(expected, E::NAME);
    elapsed
}

/// Fires what is due over `ticks` in a rhythm; returns the time of the whole.
pub(crate) fn fire<E: Engine, R: Rhythm<E>>(engine: &mut E, ticks: Range<u64>, due: &Checksum) -> Duration {
    drive::<E, R>(engine, ticks, due, |engine, now, fired| engine.advance(now, fired))
}
