//! The two clocks. Both count microseconds from the first order on; timers tick once a millisecond.

use std::time::{Duration, Instant};

use shardwheel::Tick;

use super::ledger::Micros;

/// Length of a tick.
const TICK: Micros = 1_000;

/// What says when something happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    /// Things happen when they are planned to.
    Virtual,
    /// Things happen when they do.
    Real { start: Instant },
}

impl Clock {
    pub(crate) fn start_now() -> Self {
        Self::Real { start: Instant::now() }
    }

    /// When something happens that begins a wait: rounded up, as it must not be shorter.
    pub(crate) fn begins(&self, planned: Micros) -> Micros {
        match self {
            Self::Virtual => planned,
            Self::Real { start } => start.elapsed().as_nanos().div_ceil(1_000) as Micros,
        }
    }

    /// When something happens that ends a wait: rounded down.
    pub(crate) fn ends(&self, planned: Micros) -> Micros {
        match self {
            Self::Virtual => planned,
            Self::Real { start } => start.elapsed().as_micros() as Micros,
        }
    }

    /// How long it is from now until `at`; no time for the virtual clock, or if it has passed.
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

/// When a tick begins.
pub(crate) fn start_of(tick: Tick) -> Micros {
    tick.saturating_mul(TICK)
}
