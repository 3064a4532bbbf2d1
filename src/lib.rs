#![doc = include_str!("../README.md")]
//!
//! # How it is built
//!
//! Two floors. The ground floor is the structure, without threads, real time or callbacks; the upper floor runs it.
//! A file uses only what stands below it; the one way back up is the cascade, which inserts anew what an
//! overflow wheel held.
//!
//! | file | what it holds |
//! |---|---|
//! | `future/` | futures that wait: `Sleep`, and what is made of it |
//! | `timer/builder.rs`, `timer/drive.rs` | shards and threads, made and ended |
//! | `timer/worker.rs`, `timer/run.rs`, `timer/watch.rs` | a shard's turns and its sleep; user code, its panics caught |
//! | `timer/post.rs`, `timer/bell.rs`, `timer/pace.rs` | where an advancer lies meanwhile; what a thread sleeps on, and for how long |
//! | `timer/task.rs`, `timer/schedule.rs`, `timer/executor.rs` | what a node holds; when it recurs; where it runs |
//! | `timer/home.rs`, `timer/time.rs`, `timer/stats.rs` | a thread's own shard; nanoseconds and ticks; what was done, and how late |
//! | `clock/` | where the time comes from; a clock that is moved by hand |
//! | `config.rs`, `error.rs` | settings, validated once; errors that hand the payload back |
//! | `sync.rs` | the one place that says where atomics come from |
//! | `unwind.rs`, `fallible.rs` | drops that panic; memory that may be refused |
//! | `stall.rs` | in a build for one test, atomics at which a thread can be stopped |
//! | `shard/scheduler.rs`, `shard/lane.rs` | the producers' half; what a producer has to itself |
//! | `shard/advancer.rs`, `shard/expired.rs`, `shard/sweep.rs`, `shard/handover.rs` | the consumer's half: flush, cascade, yield, sweep, end |
//! | `shard/shared.rs`, `shard/clock.rs`, `shard/bell.rs` | what both share, and the add / flush / sleep protocol with its argument; what wakes an advancer |
//! | `shard/counts.rs`, `shard/roll.rs`, `shard/barrier.rs` | how many timers are pending or dead; what threads that have gone, or do nothing, leave behind |
//! | `shard/wheel.rs`, `shard/chains.rs` | lists that take pushes at any time; detached lists |
//! | `shard/own.rs`, `shard/placing.rs`, `shard/draw.rs` | wheels of the advancer's own; overflow buckets emptied ahead of time |
//! | `shard/level.rs` | slot arithmetic, without atomics or unsafe code |
//! | `shard/node.rs`, `shard/state.rs` | a node, and the one word that decides its fate |
//! | `shard/recurring.rs`, `shard/bound.rs` | what the upper floor needs beside: timers that recur, a bound that shards share |
//! | `shard/seed.rs` | a payload that is made where it is to lie, and picked from there |
//! | `shard/slab.rs`, `shard/segment.rs`, `shard/recycle.rs`, `shard/reclaim.rs` | memory: segments, free bits, epochs |
//!
//! The private documentation (`cargo doc --document-private-items`) has the invariants of each; what is shown about
//! all that, and by what, is told in [`proof`].

mod clock;
mod config;
mod error;
mod fallible;
mod future;
#[cfg(feature = "model")]
#[doc(hidden)]
pub mod model;
#[cfg(doc)]
#[doc = include_str!("proof.md")]
pub mod proof {}
mod shard;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod slots;
#[cfg(shardwheel_stall)]
#[doc(hidden)]
pub mod stall;
mod sync;
mod timer;
mod unwind;

pub use clock::{Clock, ManualClock, MonotonicClock};
pub use config::{Config, ConfigBuilder, DEFAULT_WHEEL_SIZE, MAX_WHEEL_SIZE, MIN_WHEEL_SIZE};
pub use error::{BuildError, ConfigError, ScheduleError, ScheduleErrorKind};
pub use future::{Interval, Sleep, SleepError, Timeout, TimeoutError};
pub use shard::{Advancer, Expired, Fired, Key, Scheduler, ShardStats, shard};
pub use timer::{
    CallbackPanic, Every, Executor, Figures, Job, Lateness, Missed, Schedule, Stats, Timer, TimerBuilder,
    TimerKey, Unfired, UnfiredTask,
};

/// Whether tables, segments, bounds and steps are small, so that a few operations come to all there is to be seen: for
/// fuzzers, and for Miri, which takes minutes over what has its full size.
const SMALL: bool = cfg!(any(fuzzing, miri));

/// A point in a shard's time, counted in ticks.
pub type Tick = u64;
