//! compio: a timer on the thread's own loop.

use shardwheel::{BuildError, Timer, TimerBuilder};

use crate::local::{LocalTimer, TICK};

/// Makes a [`LocalTimer`] on the compio runtime of the calling thread.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel_compat::compio_timer;
///
/// # compio::runtime::Runtime::new()?.block_on(async {
/// let timer = compio_timer()?;
/// timer.sleep(Duration::from_millis(5)).await?;
/// let answer = timer.timeout(Duration::from_secs(1), async { 42 }).await?;
/// assert_eq!(answer, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
