//! Futures that wait, on any executor.
//!
//! | file | what it holds |
//! |---|---|
//! | `sleep.rs` | [`Sleep`]: the base of all others, and the argument for its races |
//! | `timeout.rs` | [`Timeout`]: a future with a time limit |
//! | `interval.rs` | [`Interval`]: a stream of moments |
//! | `error.rs` | the errors |

mod error;
mod interval;
mod sleep;
mod timeout;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::timer::{Timer, nanos};

pub use error::{SleepError, TimeoutError};
pub use interval::Interval;
pub use sleep::Sleep;
pub use timeout::Timeout;

impl Timer {
    /// Returns a future that is ready when `duration` has passed from now.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        let handle = self.handle();
        Sleep::new(Arc::clone(handle), handle.now_or_later().saturating_add(nanos(duration)))
    }

    /// Returns a future that is ready at `deadline`.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        let handle = self.handle();
        Sleep::new(Arc::clone(handle), handle.time.since_start(deadline))
    }

    /// Limits `future` to `duration` from now.
    pub fn timeout<F: Future>(&self, duration: Duration, future: F) -> Timeout<F> {
        Timeout::new(future, self.sleep(duration))
    }

    /// Limits `future` to the time until `deadline`.
    pub fn timeout_at<F: Future>(&self, deadline: Instant, future: F) -> Timeout<F> {
        Timeout::new(future, self.sleep_until(deadline))
    }

    /// Returns a stream of moments `period` apart. The first comes one period from now.
    pub fn interval(&self, period: Duration) -> Interval {
        Interval::new(self.sleep(period), period)
    }
}
