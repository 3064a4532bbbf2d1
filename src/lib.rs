// The first definition of a link counts. The README's own, at its end, are for those who read it as a file.
#![cfg_attr(all(feature = "timer", any(doc, doctest)), doc = include_str!("guide/links.md"))]
#![cfg_attr(feature = "timer", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "timer"), doc = "A lock-free hierarchical timing wheel: the shard alone.")]
//!
//! # How it is built
//!
#![cfg_attr(
    all(feature = "timer", any(doc, doctest)),
    doc = "The [`guide`] has a page [`choosing`](guide::choosing), with a program for each API.\n"
)]
//!
//! A [`Timer`] runs shards: it gives them threads, the time and the callbacks. A shard
//! ([`shard()`]) is the data structure alone. The [`proof`] page lists what is shown about both,
//! and with which tool. The [`platforms`] page says what each platform lacks. `cargo doc
//! --document-private-items` documents the folders, with the invariants of each.
//!
#![doc = include_str!("guide/wheels.svg")]
// A page of the documentation has no files beside it: the README's picture is hidden.
#![doc = "<style>#main-content img[src$='.svg'] { display: none }</style>"]
#![cfg_attr(docsrs, feature(doc_cfg))]
// Without `timer`, what a shard offers to a `Timer` alone is not used.
#![cfg_attr(
    not(feature = "timer"),
    allow(dead_code, unused_imports, unreachable_pub, reason = "for `Timer` alone")
)]

#[cfg(not(target_has_atomic = "64"))]
compile_error!("shardwheel needs atomic operations on 64 bits, which this target does not have");

// `shard` is the wheel without threads. `timer` runs shards, `clock` is its time, `future` and
// `delay_queue` are built on it. All use `config`, `error`, `fallible` (memory that may be
// refused), `unwind` (panics of user code), `hardware`, and `sync` (the atomics).
#[cfg(doc)]
#[doc = include_str!("../CHANGELOG.md")]
pub mod changelog {}
#[cfg(feature = "timer")]
mod clock;
mod config;
#[cfg(feature = "timer")]
pub mod delay_queue;
mod error;
mod fallible;
#[cfg(feature = "timer")]
mod future;
#[cfg(all(feature = "timer", any(doc, doctest)))]
pub mod guide;
mod hardware;
#[cfg(doc)]
#[doc = include_str!("platforms.md")]
pub mod platforms {}
#[cfg(doc)]
#[doc = include_str!("proof.md")]
pub mod proof {}
mod shard;
mod size;
mod sync;
#[cfg(any(shardwheel_loom, shardwheel_model))]
#[doc(hidden)]
#[path = "../loom-tests/testing/mod.rs"]
pub mod testing;
mod tick;
#[cfg(feature = "timer")]
mod time;
#[cfg(feature = "timer")]
mod timer;
mod unwind;
#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
#[path = "../tests/support/vectors.rs"]
mod vectors;

#[cfg(feature = "timer")]
pub use clock::{BootClock, Clock, ManualClock, MonotonicClock};
pub use config::{Config, ConfigBuilder, DEFAULT_WHEEL_SIZE, MAX_WHEEL_SIZE, MIN_WHEEL_SIZE};
#[cfg(feature = "timer")]
pub use delay_queue::{DelayQueue, QueueKey};
#[cfg(feature = "timer")]
pub use error::BuildError;
pub use error::{ConfigError, ScheduleError, ScheduleErrorKind};
#[cfg(feature = "timer")]
pub use future::global::{
    self, interval, interval_at, now, sleep, sleep_until, sleep_within, timeout, timeout_at, timeout_within,
};
#[cfg(feature = "timer")]
pub use future::{Deadline, DeadlineError, Elapsed, Interval, Sleep, SleepError, Timeout, TimeoutError};
pub use shard::{Advancer, CancelBatch, Expired, Fired, Key, Scheduler, ShardStats, shard};
pub use tick::Tick;
#[cfg(feature = "timer")]
pub use time::{Instant, SystemTime};
#[cfg(feature = "introspect")]
pub use timer::introspect::{Pending, PendingPlace};
#[cfg(feature = "timer")]
pub use timer::{
    CallbackPanic, CancelGuard, Driver, Drivers, Every, Executor, Figures, Group, Job, Lateness,
    LatenessBucket, Missed, Occurrence, Placement, Schedule, Scoped, Stats, Timer, TimerBuilder, TimerKey,
    Unfired, UnfiredTask, Waiting, WallSchedule, WeakGroup, WeakTimer, WindowEnd, set_at,
};

#[cfg(shardwheel_stall)]
#[doc(hidden)]
pub use sync::stall;
