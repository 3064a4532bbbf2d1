//! compio: a timer on the thread's own loop.

use shardwheel::{BuildError, Timer, TimerBuilder};

use crate::local::{LocalTimer, TICK};

/// Makes a [`LocalTimer`] on the compio runtime of the calling thread. Its tick is 64 µs.
///
/// # Errors
///
/// As [`TimerBuilder::build_driven`].
///
/// # Panics
///
/// Outside of a runtime.
pub fn compio_timer() -> Result<LocalTimer, BuildError> {
    compio_timer_with(Timer::builder().tick(TICK))
}

/// Makes a [`LocalTimer`] as [`compio_timer`] does, from settings of the caller's.
///
/// # Errors
///
/// As [`TimerBuilder::build_driven`].
///
/// # Panics
///
/// As [`compio_timer`].
pub fn compio_timer_with(builder: TimerBuilder) -> Result<LocalTimer, BuildError> {
    let (timer, run) = LocalTimer::new(builder, compio::time::sleep_until)?;
    compio::runtime::spawn(run).detach();
    Ok(timer)
}
