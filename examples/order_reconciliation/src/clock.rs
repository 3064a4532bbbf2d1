//! The two clocks. Both count microseconds from the first order; timers tick once per millisecond.

use std::time::{Duration, Instant};

use shardwheel::Tick;

use crate::ledger::Micros;

/// The length of a tick.
const TICK: Micros = 1_000;

/// The source of the time of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    /// Events happen at their planned times.
    Virtual,
    /// Events happen at the present time.
    Real { start: Instant },
}

impl Clock {
    /// The time of an event that begins a wait: rounded up, because the wait must not be shorter.
    pub(crate) fn begins(&self, planned: Micros) -> Micros {
        match self {
            Self::Virtual => planned,
            Self::Real { start } => start.elapsed().as_nanos().div_ceil(1_000) as Micros,
        }
    }

    /// The time of an event that ends a wait: rounded down.
    pub(crate) fn ends(&self, planned: Micros) -> Micros {
        match self {
            Self::Virtual => planned,
            Self::Real { start } => start.elapsed().as_micros() as Micros,
        }
    }

    /// The time from now until `at`; zero for the virtual clock, or if `at` has passed.
    pub(crate) fn until(&self, at: Micros) -> Duration {
        match self {
            Self::Virtual => Duration::ZERO,
            Self::Real { start } => Duration::from_micros(at).saturating_sub(start.elapsed()),
        }
    }
}

/// The first tick that is not before `at`: for deadlines.
pub(crate) fn tick_from(at: Micros) -> Tick {
    at.div_ceil(TICK)
}

/// The last tick that is not after `at`: for the clock.
pub(crate) fn tick_at(at: Micros) -> Tick {
    at / TICK
}

/// The time at which a tick begins.
pub(crate) fn start_of(tick: Tick) -> Micros {
    tick.saturating_mul(TICK)
}
