#![doc = include_str!("../README.md")]
//!
//! # How it is built
//!
//! A file uses only what stands below it; the one way back up is the cascade, which inserts anew what an
//! overflow wheel held.
//!
//! | file | what it holds |
//! |---|---|
//! | `config.rs`, `error.rs` | settings, validated once; errors that hand the payload back |
//! | `sync.rs` | the one place that says where atomics come from |
//! | `shard/scheduler.rs`, `shard/lane.rs` | the producers' half; what a producer has to itself |
//! | `shard/advancer.rs`, `shard/expired.rs`, `shard/sweep.rs`, `shard/handover.rs` | the consumer's half: flush, cascade, yield, sweep, end |
//! | `shard/shared.rs` | what both share, and the add / flush / sleep protocol with its argument |
//! | `shard/wheel.rs`, `shard/chains.rs` | lists that take pushes at any time; detached lists |
//! | `shard/level.rs` | slot arithmetic, without atomics or unsafe code |
//! | `shard/node.rs`, `shard/state.rs` | a node, and the one word that decides its fate |
//! | `shard/recurring.rs`, `shard/bound.rs` | what the upper floor needs beside: timers that recur, a bound that shards share |
//! | `shard/slab.rs`, `shard/segment.rs`, `shard/recycle.rs`, `shard/reclaim.rs` | memory: segments, free bits, epochs |
//!
//! The private documentation (`cargo doc --document-private-items`) has the invariants of each.

mod clock;
mod config;
mod error;
mod future;
#[cfg(feature = "model")]
#[doc(hidden)]
pub mod model;
mod shard;
mod sync;
mod timer;

pub use clock::{Clock, ManualClock, MonotonicClock};
pub use config::{Config, ConfigBuilder, DEFAULT_WHEEL_SIZE, MAX_WHEEL_SIZE, MIN_WHEEL_SIZE};
pub use error::{BuildError, ConfigError, ScheduleError, ScheduleErrorKind};
pub use future::{Interval, Sleep, SleepError, Timeout, TimeoutError};
pub use shard::{Advancer, Expired, Fired, Key, Scheduler, ShardStats, shard};
pub use timer::{
    CallbackPanic, Every, Executor, Figures, Job, Lateness, Missed, Schedule, Stats, Timer, TimerBuilder,
    TimerKey, Unfired, UnfiredTask,
};

/// A point in a shard's time, counted in ticks.
pub type Tick = u64;
