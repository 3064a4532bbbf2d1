//! Futures that wait, on any executor.
//!
//! | file | what it holds |
//! |---|---|
//! | `wait.rs` | the wait for a deadline: the base of all others, and the argument for its races |
//! | `sleep.rs` | [`Sleep`]: a wait on a `Timer` |
//! | `timeout.rs` | [`Timeout`]: a future with a time limit |
//! | `deadline.rs` | [`Deadline`]: the latest end of all time limits in a scope |
//! | `interval.rs` | [`Interval`]: a stream of moments |
//! | `budget.rs` | the limit on answers that are ready at once |
//! | `error.rs` | the errors |
//! | `calls.rs` | the methods of a `Timer` that make them |
//! | `global_shard.rs` | the shard of the global `Timer`, counted or not |
//! | `global.rs` | functions on the global `Timer`, and their futures without its errors |

pub(crate) mod budget;
mod calls;
mod deadline;
mod error;
pub mod global;
mod global_shard;
mod interval;
mod sleep;
mod timeout;
mod wait;

pub use deadline::{Deadline, DeadlineError};
pub use error::{Elapsed, SleepError, TimeoutError};
pub use interval::Interval;
pub use sleep::Sleep;
pub use timeout::Timeout;
pub(crate) use wait::WakerId;
