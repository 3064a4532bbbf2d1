//! The threads that visit a `Timer`'s shards.
//!
//! A *pool* has shards, and as many threads, its *drivers*. A driver visits shards, and one of those
//! that do leads; or it is *spare*. By default a `Timer` has one pool; with
//! [`Drivers::OnePerShard`], or pinned to cores, it has a pool for each shard. Each shard has a
//! *worker*, which lies in the pool unless a thread is at work with it. A pool that a manual clock
//! or a [`Driver`](super::Driver) visits has no threads.
//!
//! What wakes a driver: the shard's waker is a [`ShardWaker`], which [requests](Notifier::request)
//! a visit and notifies the [`Parker`](crate::timer::Parker) of the driver that has to come.
//!
//! - The *leader* sleeps until the first of the shards is due, visits one shard after the other,
//!   and sleeps again. So a timer whose work is small wakes one thread a tick, however many shards
//!   it has.
//! - The spare drivers sleep. The first of them is the *watchdog*. It looks at the shards when one of
//!   them could be late because the leader has not come back from a visit. If one is, the watchdog
//!   visits shards from then on, and calls a spare driver for each further shard that is ready.
//! - A driver that comes back from a visit and finds a shard a tick late calls one spare driver.
//! - A driver that looks for a shard while the leader is in a visit becomes the leader. A driver
//!   that finds none while the leader sleeps becomes spare.
//!
//! There are as many threads as shards. So while one worker is in the pool, one thread is not at
//! work: the leader, the watchdog, or a driver that is about to look. See [`Drivers`] for the bound
//! on delays that follows.
//!
//! # Who writes what
//!
//! | | written by |
//! |---|---|
//! | `requested` of a shard | set by any thread; cleared by the thread that takes the worker |
//! | the places of the workers, the dues, the roles | a thread of the pool, or a shutdown, under the lock |
//! | `leader`, `busy_since`, `watchdog`, `looks_at` | a driver, under the lock; producers read them without |
//!
//! # Why no wake-up is lost
//!
//! Drivers look at all of this under the lock, so each sees what the one before it has done. Only
//! [`request`](Notifier::request) takes no lock. There each side writes its own word, passes a
//! SeqCst fence, and reads the other side's word. So of each pair at least one sees what the other
//! has written.
//!
//! | the producer | the driver |
//! |---|---|
//! | writes `requested`, reads `leader`, which it notifies | writes `leader`, searches for a shard that is `requested` |
//! | writes `requested`, reads `busy_since`: ensures a look if the leader is in a visit | writes `busy_since`, reads `requested` of the shards that it does not visit: ensures a look for them |
//! | writes `requested`, reads `watchdog` and `looks_at` | the watchdog writes `looks_at`, reads `requested` |
//!
//! A driver clears its parker before it reads anything, and a producer notifies the parker after it
//! has written `requested`. So a request that the driver has not seen ends the sleep that follows.
//!
//! Two drivers meet under the lock:
//!
//! - *A worker comes back after the leader has looked.* Its driver looks next. If it finds nothing
//!   to do and the leader sleeps for longer than until that worker is due, it wakes the leader.
//! - *A second shard is due while the leader is in a visit.* The leader has ensured, when it began
//!   the visit, that the watchdog looks in time. A shard whose worker comes back meanwhile is the
//!   concern of the driver that brings it: it leads from then on.
//! - *The watchdog begins to visit.* It makes the next spare driver the watchdog, and notifies it.
//!
//! # The end
//!
//! A shutdown takes the advancer out of each worker that is in, and *closes* that worker: no driver
//! visits it any more. Then it stops the pool. The drivers leave, and end the workers that are
//! closed. (Their drops may run user code, that of the executor.) A driver that is at work ends its
//! worker when it comes back. See [`end`](crate::timer::end).

mod drivers;
mod notifier;
mod pace;
mod pool;
mod thread;
mod visit;
mod worker;

pub use drivers::Drivers;
pub(in crate::timer) use drivers::patience_and_leeway;
pub(crate) use notifier::Notifier;
pub(in crate::timer) use notifier::ShardWaker;
pub(crate) use pool::Pool;
#[cfg(any(shardwheel_loom, shardwheel_model))]
pub(crate) use pool::Step;
pub(in crate::timer) use thread::{PoolThread, ThreadHook};
pub(in crate::timer) use visit::visit;
pub(in crate::timer) use worker::Worker;
