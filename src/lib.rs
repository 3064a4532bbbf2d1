#![doc = include_str!("../README.md")]
//!
//! # How it is built
//!
//! A [`Timer`] runs shards: it gives them threads, the time and the callbacks. A shard
//! ([`shard()`]) is the data structure alone. The [`proof`] page lists what is shown about both,
//! and with which tool. `cargo doc --document-private-items` documents the folders, with the
//! invariants of each.

mod clock;
mod config;
mod error;
mod fallible;
mod future;
mod hardware;
#[cfg(doc)]
#[doc = include_str!("proof.md")]
pub mod proof {}
mod shard;
mod sync;
#[cfg(any(feature = "model", fuzzing))]
mod testing;
mod tick;
mod timer;
mod unwind;

pub use clock::{Clock, ManualClock, MonotonicClock};
pub use config::{Config, ConfigBuilder, DEFAULT_WHEEL_SIZE, MAX_WHEEL_SIZE, MIN_WHEEL_SIZE};
pub use error::{BuildError, ConfigError, ScheduleError, ScheduleErrorKind};
pub use future::{Interval, Sleep, SleepError, Timeout, TimeoutError};
pub use shard::{Advancer, Expired, Fired, Key, Scheduler, ShardStats, shard};
pub use tick::Tick;
pub use timer::{
    CallbackPanic, Drivers, Every, Executor, Figures, Job, Lateness, Missed, Placement, Schedule, Stats,
    Timer, TimerBuilder, TimerKey, Unfired, UnfiredTask,
};

#[cfg(shardwheel_stall)]
#[doc(hidden)]
pub use sync::stall;
#[cfg(feature = "model")]
#[doc(hidden)]
pub use testing::model;
#[cfg(fuzzing)]
#[doc(hidden)]
pub use testing::slots;
