//! The AWS SDK: `aws_smithy_async::rt::sleep::AsyncSleep`.

use std::time::Duration;

use aws_smithy_async::rt::sleep::{self, AsyncSleep};
use shardwheel::Timer;

use crate::sleep::Source;

/// The sleep of the AWS SDK: for the timeouts of its operations, and the pauses between attempts.
///
/// `SmithySleep::default()` is on the [global `Timer`](Timer::global). The SDK takes dates from its
/// `time_source`, which is another setting: a test by a manual clock sets both.
///
/// # Examples
///
/// A client's configuration takes it by its method `sleep_impl`, as a `SharedAsyncSleep`:
///
/// ```
/// use std::time::Duration;
/// use aws_smithy_async::rt::sleep::{AsyncSleep, SharedAsyncSleep};
/// use shardwheel_compat::SmithySleep;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let sleep_impl = SharedAsyncSleep::new(SmithySleep::default());
/// let begin = shardwheel::now();
/// sleep_impl.sleep(Duration::from_millis(5)).await;
/// assert!(shardwheel::now() - begin >= Duration::from_millis(5));
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct SmithySleep {
    source: Source,
}

impl Default for SmithySleep {
    #[track_caller]
    fn default() -> Self {
        Self { source: Source::global() }
    }
}

impl SmithySleep {
    /// Makes a sleep that waits on `timer`.
    #[must_use]
    #[track_caller]
    pub fn new(timer: Timer) -> Self {
        Self { source: Source::of(timer) }
    }
}

impl AsyncSleep for SmithySleep {
    fn sleep(&self, duration: Duration) -> sleep::Sleep {
        sleep::Sleep::new(self.source.sleep(duration))
    }
}
