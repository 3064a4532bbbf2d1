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

pub use error::{SleepError, TimeoutError};
pub use interval::Interval;
pub use sleep::Sleep;
pub use timeout::Timeout;
