//! glommio: a timer on the thread's own loop.

use std::time::Instant;

use shardwheel::{BuildError, Timer, TimerBuilder};

use crate::local::{LocalTimer, TICK};

/// Makes a [`LocalTimer`] on the glommio executor of the calling thread, in its current task queue.
///
/// glommio itself needs 512 KiB of locked memory (`ulimit -l`): it refuses to make an executor else.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel_compat::glommio_timer;
///
/// # let executor = glommio::LocalExecutorBuilder::default().make()?;
/// # executor.run(async {
/// let timer = glommio_timer()?;
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
/// Outside of an executor.
pub fn glommio_timer() -> Result<LocalTimer, BuildError> {
    glommio_timer_with(Timer::builder().tick(TICK))
}

/// Makes a [`LocalTimer`] as [`glommio_timer`] does, from settings of the caller's.
///
/// # Errors
///
/// As [`TimerBuilder::build_driven`].
///
/// # Panics
///
/// As [`glommio_timer`].
pub fn glommio_timer_with(builder: TimerBuilder) -> Result<LocalTimer, BuildError> {
    let sleep_until = |deadline: Instant| {
        let sleep = glommio::timer::Timer::new(deadline.saturating_duration_since(Instant::now()));
        async move { _ = sleep.await }
    };
    let (timer, run) = LocalTimer::new(builder, sleep_until)?;
    glommio::spawn_local(run).detach();
    Ok(timer)
}
