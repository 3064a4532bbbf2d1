//! `Timer`: shards with threads, real time and callbacks.
//!
//! A *worker* runs each shard. In turns, it moves the shard's clock to the present and runs what is
//! due. *Drivers* are threads that visit the workers: by default one of them visits all. Producers
//! schedule through the [`ShardHandle`] of their own shard. Only the worker uses the shard's
//! advancer, until a shutdown takes it. While user code runs, the advancer lies in a slot, where a
//! shutdown may take it.
//!
//! A timer's way down: [`Timer`], [`ShardHandle`], [`Scheduler`](crate::Scheduler). Its way back: a
//! driver's thread, its pool, the shard's worker, the [`Advancer`](crate::Advancer), and the handle
//! again, which runs it under its guard. By function: `PoolThread::visit_all`, `Pool::next`, `visit`,
//! `Worker::turn`, `Advancer::take_due`, `Worker::fire`, `ShardHandle::run`, `PanicGuard::run`. With
//! an executor, `fire` calls `hand_over`; a thread of the executor calls `Job::run`, and a recurring
//! timer comes back by `send_back`.
//!
//! What a timer does (a callback, a waker, a value) is a *task*; the shard sees it as a payload. Taken
//! out to run, it is a [`Due`](crate::shard::Due); given to an executor, a `Job`.
//!
//! A turn runs 1,024 timers at most (`BUDGET` in `threads/worker.rs`); the rest is due still, and
//! comes first in the next turn.
//!
//! Invariants: a callback never runs early, and user code runs while no lock is held and no epoch
//! is pinned.
//!
//! A folder uses only what stands below it:
//!
//! | | contents |
//! |---|---|
//! | `global` | The process's own `Timer`, its shutdown, and the scope of a manual clock. |
//! | `calls`, `setup` | What users do with a `Timer`. How it is made: with threads, in an event loop. |
//! | `handle` | `Timer` and `WeakTimer`. |
//! | `end` | What all handles share. The shutdown, and what had not fired. |
//! | [`threads`] | The threads: which of them visits which shard, and what a visit does. |
//! | `shard` | Not `crate::shard`: a shard with what a `Timer` adds, as all sides share it. Runs a task, here or on an executor. A thread's own shard. |
//! | [`task`] | The payload of a node: what it does, how it is stored, its membership of a group. |
//! | `time` | Nanoseconds and ticks. When a recurring timer is due next. |
//! | `guard` | Runs user code and survives its panics. |
//! | `key`, `parker` | A timer's name. What a thread or a task sleeps on. |

mod calls;
mod end;
mod global;
mod guard;
mod handle;
mod key;
mod parker;
mod setup;
mod shard;
mod task;
pub(crate) mod threads;
mod time;

#[cfg(feature = "introspect")]
pub(crate) use calls::introspect;
pub use calls::{CancelGuard, Group, WeakGroup};
pub use end::{Unfired, UnfiredTask};
pub(crate) use global::Inherited;
pub use global::{Scoped, Waiting};
pub use guard::CallbackPanic;
pub(crate) use guard::PanicGuard;
pub use handle::{Timer, WeakTimer};
pub use key::TimerKey;
pub(crate) use parker::Parker;
pub use setup::{Driver, TimerBuilder};
pub use shard::{Executor, Figures, Job, Lateness, LatenessBucket, Placement, Stats, WindowEnd, set_at};
pub(crate) use shard::{ShardHandle, WatchesEnd};
pub use task::Occurrence;
pub(crate) use task::{Membership, RunContext, Task, TaskBody, TaskKind};
pub use threads::Drivers;
pub use time::{Every, Missed, Schedule, WallSchedule};
pub(crate) use time::{NEVER, Nanos, nanos};
