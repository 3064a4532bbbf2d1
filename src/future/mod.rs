//! Futures that wait, on any executor.
//!
//! | file | what it holds |
//! |---|---|
//! | `sleep.rs` | [`Sleep`]: the one that all others are made of, and its argument |
//! | `timeout.rs`, `interval.rs` | a future with a time limit; a stream of moments |
//! | `error.rs` | what goes wrong |

mod error;
mod interval;
mod sleep;
mod timeout;

pub use error::{SleepError, TimeoutError};
pub use interval::Interval;
pub use sleep::Sleep;
pub use timeout::Timeout;
