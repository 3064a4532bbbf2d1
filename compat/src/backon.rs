//! backon: `backon::Sleeper`.

use std::time::Duration;

use backon::Sleeper;
use shardwheel::Timer;

use crate::sleep::{Sleep, Source};

/// Waits between the attempts of a retry.
///
/// `BackonSleeper::default()` is on the [global `Timer`](Timer::global).
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use std::time::Duration;
/// use backon::{ConstantBuilder, Retryable};
/// use shardwheel_compat::BackonSleeper;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let attempts = AtomicU32::new(0);
/// let fetch = || async {
///     let attempt = attempts.fetch_add(1, Ordering::Relaxed);
///     if attempt < 2 { Err("busy") } else { Ok(attempt) }
/// };
/// let pause = ConstantBuilder::default().with_delay(Duration::from_millis(5));
/// assert_eq!(fetch.retry(pause).sleep(BackonSleeper::default()).await, Ok(2));
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct BackonSleeper {
    source: Source,
}

impl Default for BackonSleeper {
    #[track_caller]
    fn default() -> Self {
        Self { source: Source::global() }
    }
}

impl BackonSleeper {
    /// Makes a sleeper whose pauses wait on `timer`.
    #[must_use]
    #[track_caller]
    pub fn new(timer: Timer) -> Self {
        Self { source: Source::of(timer) }
    }
}

impl Sleeper for BackonSleeper {
    type Sleep = Sleep;

    fn sleep(&self, duration: Duration) -> Sleep {
        self.source.sleep(duration)
    }
}
