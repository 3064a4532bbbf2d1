//! When a recurring timer is due, calculated in nanoseconds and independently of the library.

use std::panic::resume_unwind;
use std::time::{Duration, Instant};

use shardwheel::Missed;

use super::Nanos;
use super::payload::Planned;

/// How a timer recurs.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) enum Rhythm {
    /// At a fixed rate.
    Every(Nanos, Missed),
    /// By a closure.
    Given(Gaps),
}

/// A number of gaps, each twice as long as the one before, or all zero after the first; then an
/// end, or a panic.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Gaps {
    pub(crate) gap: Nanos,
    pub(crate) stays: bool,
    pub(crate) left: u32,
    pub(crate) fails: bool,
}

/// What comes after an occurrence.
pub(crate) enum Next {
    /// An occurrence that is due at the first, and is scheduled for the second.
    At(Nanos, Nanos),
    End,
    /// The schedule panics.
    Failure,
}

impl Gaps {
    fn take(&mut self) -> Option<Nanos> {
        self.left = self.left.checked_sub(1)?;
        let gap = self.gap;
        self.gap = if self.stays { 0 } else { 2 * gap };
        Some(gap)
    }

    /// The schedule that the timer gets.
    pub(crate) fn schedule(mut self) -> impl FnMut(Instant) -> Option<Instant> + Send {
        move |previous| match self.take() {
            Some(gap) => Some(previous + Duration::from_nanos(gap)),
            None if self.fails => resume_unwind(Box::new(Planned)),
            None => None,
        }
    }
}

impl Rhythm {
    /// The shortest average time between many occurrences.
    pub(crate) fn period(&self) -> Nanos {
        match *self {
            Self::Every(period, _) => period,
            Self::Given(_) => Nanos::MAX,
        }
    }

    /// When it is due first, if it is made now.
    pub(crate) fn first(&mut self, now: Nanos) -> Nanos {
        match self {
            Self::Every(period, _) => now + *period,
            Self::Given(gaps) => now + gaps.take().expect("there is a first gap"),
        }
    }

    /// What comes after the occurrence of `previous`, whose callback returns now.
    pub(crate) fn next(&mut self, previous: Nanos, now: Nanos) -> Next {
        match self {
            Self::Every(period, missed) => {
                let next = next_of(*period, *missed, previous, now);
                Next::At(next, next)
            }
            Self::Given(gaps) => match gaps.take() {
                Some(0) => Next::At(previous, previous.max(now + 1)),
                Some(gap) => Next::At(previous + gap, previous + gap),
                None if gaps.fails => Next::Failure,
                None => Next::End,
            },
        }
    }
}

/// When a fixed rate is due next.
fn next_of(period: Nanos, missed: Missed, previous: Nanos, now: Nanos) -> Nanos {
    let next = previous.saturating_add(period);
    if next >= now {
        return next;
    }
    match missed {
        Missed::Burst => next,
        Missed::Skip => previous + period * (now - previous).div_ceil(period),
        Missed::Delay => now + period,
    }
}
