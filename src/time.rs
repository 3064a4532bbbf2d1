//! The types of time in all signatures: the standard library's.
//!
//! In a browser the standard library's `Instant::now` panics, so no program has a value of that type
//! there. With the feature `web`, the types are those of `web-time` instead: the same methods, by
//! `performance.now()` and `Date.now()`.

pub(crate) use std::time::Duration;
#[cfg(not(all(feature = "web", target_family = "wasm", target_os = "unknown")))]
pub use std::time::{Instant, SystemTime};
#[cfg(all(feature = "web", target_family = "wasm", target_os = "unknown"))]
pub use web_time::{Instant, SystemTime};
