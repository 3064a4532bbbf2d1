//! monoio: a timer on the thread's own loop.

use shardwheel::{BuildError, Timer, TimerBuilder};

use crate::local::{LocalTimer, TICK};

/// Makes a [`LocalTimer`] on the monoio runtime of the calling thread. Its tick is 64 µs.
///
/// # Errors
///
/// As [`TimerBuilder::build_driven`].
///
/// # Panics
///
/// Outside of a runtime, and in one without timers (`enable_timer`).
pub fn monoio_timer() -> Result<LocalTimer, BuildError> {
    monoio_timer_with(Timer::builder().tick(TICK))
}

/// Makes a [`LocalTimer`] as [`monoio_timer`] does, from settings of the caller's.
///
/// # Errors
///
/// As [`TimerBuilder::build_driven`].
///
/// # Panics
///
/// As [`monoio_timer`].
pub fn monoio_timer_with(builder: TimerBuilder) -> Result<LocalTimer, BuildError> {
    let (timer, run) = LocalTimer::new(builder, |deadline| monoio::time::sleep_until(deadline.into()))?;
    drop(monoio::spawn(run));
    Ok(timer)
}
