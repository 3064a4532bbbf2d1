//! A timer's time: nanoseconds since its start, and ticks.
//!
//! A deadline is rounded up to a tick, the clock down, so nothing fires early. Both come from the same
//! [`Clock`]. Nanoseconds are `u64`, which is 584 years; what is further off saturates, and a deadline there is
//! one that never comes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::{MonotonicClock, Tick};

/// Nanoseconds since a timer's start.
pub(crate) type Nanos = u64;

/// A deadline that never comes.
pub(crate) const NEVER: Nanos = Nanos::MAX;

#[derive(Clone)]
pub(crate) struct Time {
    source: Source,
    start: Instant,
    /// Nanoseconds in a tick.
    tick: Nanos,
}

/// The default clock is known by name, so that reading it costs no indirect call.
#[derive(Clone)]
enum Source {
    Monotonic,
    Given(Arc<dyn Clock>),
}

impl Time {
    /// Starts now.
    pub(crate) fn start(clock: Option<Arc<dyn Clock>>, tick: Duration) -> Self {
        let source = clock.map_or(Source::Monotonic, Source::Given);
        Self { start: source.now(), source, tick: nanos(tick) }
    }

    /// The time now.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.since_start(self.source.now())
    }

    pub(crate) fn now_instant(&self) -> Instant {
        self.source.now()
    }

    #[inline]
    pub(crate) fn since_start(&self, at: Instant) -> Nanos {
        nanos(at.saturating_duration_since(self.start))
    }

    /// That moment, if the system can name it.
    pub(crate) fn instant(&self, at: Nanos) -> Option<Instant> {
        if at == NEVER { None } else { self.start.checked_add(Duration::from_nanos(at)) }
    }

    /// The tick for a deadline: the first that begins at or after it.
    #[inline]
    pub(crate) fn tick_for(&self, deadline: Nanos) -> Tick {
        if deadline == NEVER { Tick::MAX } else { deadline.div_ceil(self.tick) }
    }

    /// The tick for a clock: the last that has begun.
    #[inline]
    pub(crate) fn tick_at(&self, now: Nanos) -> Tick {
        now / self.tick
    }

    /// When a tick begins.
    pub(crate) fn start_of(&self, tick: Tick) -> Nanos {
        tick.saturating_mul(self.tick)
    }
}

impl Source {
    #[inline]
    fn now(&self) -> Instant {
        match self {
            Self::Monotonic => MonotonicClock.now(),
            Self::Given(clock) => clock.now(),
        }
    }
}

/// A duration's nanoseconds; saturates.
#[inline]
pub(crate) fn nanos(duration: Duration) -> Nanos {
    const PER_SECOND: Nanos = 1_000_000_000;
    let seconds = duration.as_secs().checked_mul(PER_SECOND);
    let whole = seconds.and_then(|whole| whole.checked_add(Nanos::from(duration.subsec_nanos())));
    whole.unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;

    fn millis() -> Time {
        Time::start(Some(Arc::new(ManualClock::new())), Duration::from_millis(1))
    }

    #[test]
    fn deadlines_round_up_and_the_clock_down() {
        let time = millis();
        for (nanos, up, down) in [(0, 0, 0), (1, 1, 0), (999_999, 1, 0), (1_000_000, 1, 1), (1_000_001, 2, 1)]
        {
            assert_eq!((time.tick_for(nanos), time.tick_at(nanos)), (up, down), "{nanos} ns");
        }
    }

    #[test]
    fn what_is_out_of_range_never_comes() {
        let time = millis();
        assert_eq!(nanos(Duration::MAX), NEVER);
        assert_eq!(time.tick_for(NEVER), Tick::MAX);
        assert_eq!(time.instant(NEVER), None);
        assert_eq!(time.start_of(Tick::MAX), NEVER);
    }

    #[test]
    fn a_moment_before_the_start_counts_as_the_start() {
        let earlier = Instant::now();
        assert_eq!(millis().since_start(earlier), 0);
    }
}
