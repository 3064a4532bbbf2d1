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
//! again, which runs it under its guard.
//!
//! Invariants: a callback never runs early, and user code runs while no lock is held and no epoch
//! is pinned.
//!
//! | file | contents |
//! |---|---|
//! | `global.rs` | The process's own timer. |
//! | `scope.rs` | What code inherits from a scope. A global timer for a test alone. |
//! | `builder.rs` | Settings, validated once. Makes the shards and their threads. |
//! | `affinity.rs` | Cores, and threads that are pinned to them. |
//! | `shard_handle.rs`, `placement.rs` | A shard as a producer uses it. A thread's own shard. |
//! | `key.rs` | Keys, and the calls that take one. |
//! | `group.rs` | Groups: timers that end together. |
//! | `recurring.rs` | Recurring timers: the calls that schedule them, and their tasks. |
//! | `window.rs` | Timers that may fire at any time within a window. |
//! | `time.rs`, `schedule.rs` | Nanoseconds and ticks. When a recurring timer is due next. |
//! | `wall.rs` | A schedule by the wall clock. |
//! | `task.rs`, `inline.rs` | The payload of a node, and how it is stored. |
//! | `run.rs`, `executor.rs` | Runs a task, here or on an executor. Catches its panics. |
//! | `worker.rs`, `pace.rs` | A shard's turns, and how long it rests after one. |
//! | `driver_thread.rs`, [`drivers`] | The threads: which of them visits which shard. |
//! | `driven.rs` | A timer without threads, in an event loop of the user's. |
//! | `drive.rs`, `advancer_slot.rs` | What all handles share. How a shutdown ends it. |
//! | `place.rs`, `introspect.rs` | Which calls have set the pending timers. |
//! | `stats.rs`, `unfired.rs` | What the timer has done. What had not fired at shutdown. |

mod advancer_slot;
mod affinity;
mod builder;
mod by_key;
mod counts;
mod drive;
mod driven;
mod driver_thread;
pub(crate) mod drivers;
mod executor;
mod global;
mod group;
pub(crate) mod guard;
pub(crate) mod inline;
#[cfg(feature = "introspect")]
pub(crate) mod introspect;
mod key;
mod member;
mod pace;
mod place;
mod placement;
mod recurring;
mod run;
pub(crate) mod schedule;
mod scope;
mod shard_handle;
mod stats;
pub(crate) mod task;
mod time;
mod unfired;
mod wall;
mod window;
mod worker;

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

pub use builder::TimerBuilder;
pub use by_key::CancelGuard;
pub use driven::Driver;
pub use drivers::Drivers;
pub use executor::{Executor, Job};
pub use group::Group;
pub use guard::CallbackPanic;
pub use key::TimerKey;
pub use placement::Placement;
pub use recurring::Occurrence;
pub use schedule::{Every, Missed, Schedule};
pub use scope::{Scoped, Waiting};
pub use stats::{Figures, Lateness, LatenessBucket, Stats};
pub use unfired::{Unfired, UnfiredTask};
pub use wall::WallSchedule;

pub(crate) use guard::Guard;
pub(crate) use inline::{Kind, Occasion, Run};
pub(crate) use member::Membership;
pub(crate) use scope::Inherited;
pub(crate) use shard_handle::{ShardHandle, WatchesEnd};
pub(crate) use task::Task;
pub(crate) use time::{NEVER, Nanos, nanos};

use crate::error::ScheduleError;
use crate::tick::Tick;
use drive::Inner;
use inline::fits;
use member::Members;

/// Runs callbacks and wakes futures when they are due.
///
/// By default a timer has one shard for each core. A thread sleeps until the next timer of any
/// shard is due. Other threads help when there is more work, or when a callback blocks:
/// see [`Drivers`].
///
/// Scheduling, cancelling and rescheduling work from any thread, take no lock and wait for no other
/// thread. Clones are handles of the same timer. The timer is shut down when the last handle is
/// dropped. A callback that holds a handle keeps the timer from that until the callback has run.
///
/// Each thread schedules on one shard, which it gets when it first uses the timer. [`Placement`]
/// says which, and offers other choices.
///
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use std::time::{Duration, Instant};
/// use shardwheel::Timer;
///
/// let timer = Timer::builder().build()?;
/// let begin = Instant::now();
/// let (sender, receiver) = mpsc::channel();
/// timer.schedule_after(Duration::from_millis(20), move || sender.send(begin.elapsed()).unwrap())?;
/// let never = timer.schedule_after(Duration::from_secs(3600), || unreachable!("it is cancelled"))?;
/// assert!(timer.cancel(never));
///
/// assert!(receiver.recv()? >= Duration::from_millis(20)); // never early
/// assert_eq!(timer.stats().pending, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Timer {
    inner: Arc<Inner>,
    /// Of the handle of a group: what is scheduled through it enters.
    members: Option<Arc<Members>>,
}

impl Timer {
    /// Calls `callback` once, when `delay` has passed from now.
    ///
    /// The callback never runs early. It runs at most one tick late, plus the timer's
    /// [slack](TimerBuilder::slack), if it has one, plus the time for which other callbacks hold up
    /// its shard. A delay of zero is due at the next tick. A delay of more than
    /// 584 years never ends.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`], with the callback, if the timer has been shut down, if as many timers are
    /// pending as the timer may hold, or if the system gives no memory.
    ///
    /// # Performance
    ///
    /// O(1), lock-free. A callback of up to three words is stored in the timer's node, without an
    /// allocation; so is one of four words if one of them is never zero, as a reference is. A
    /// larger callback is boxed. The shard allocates when it grows, and usually when a thread uses
    /// it for the first time.
    #[inline]
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn schedule_after<F>(&self, delay: Duration, callback: F) -> Result<TimerKey, ScheduleError<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        self.schedule_once(callback, |handle| handle.tick_after(delay))
    }

    /// Calls `callback` once, at `deadline`.
    ///
    /// As [`schedule_after`](Self::schedule_after). A deadline that has passed is due as soon as
    /// possible, at the next tick at the latest.
    ///
    /// # Errors
    ///
    /// As [`schedule_after`](Self::schedule_after).
    #[inline]
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn schedule_at<F>(&self, deadline: Instant, callback: F) -> Result<TimerKey, ScheduleError<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        self.schedule_once(callback, |handle| handle.tick_for(deadline))
    }

    /// Returns the time by the timer's clock.
    ///
    /// If a user-defined clock has been set back, this is the time that a shard has reached: the
    /// shard on which the calling thread schedules, or has scheduled last.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.inner.shards.present_shard().now_instant()
    }

    /// Returns the number of shards.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.inner.shards.handles.len()
    }

    /// Returns what the timer has done and what it holds.
    ///
    /// # Performance
    ///
    /// O(threads + segments) for each shard. It makes no other thread wait.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(&self.inner.shards.handles)
    }

    /// Shuts the timer down: ends its threads, and returns the callbacks that have not fired.
    ///
    /// Pending sleeps, timeouts and intervals resolve to an error. From then on scheduling is an
    /// error. A second shutdown returns nothing, at once.
    ///
    /// The call waits for the callbacks that the timer's threads are running. When it returns, the
    /// threads have ended, except where it does not wait:
    ///
    /// - It does not wait for an executor. A callback that has been passed to the executor may
    ///   still run, and a recurring one is not armed again. A thread that is inside
    ///   [`Executor::execute`] ends after that call. A thread that drops the executor for longer
    ///   than 20 ms ends after the drop.
    /// - A call from a callback, of this timer or of another one, waits for no callback, nor does a
    ///   call from anything else that a timer's thread runs: two callbacks may shut down each
    ///   other's timer. A callback that is running is then the last of its shard, and the thread
    ///   that runs it ends after it.
    ///
    /// While the call waits, the timer may still take timers, for instance from such a callback. It
    /// returns them with the others. Once it has returned, scheduling is an error.
    ///
    /// The [global](Self::global) timer is not shut down: the call returns nothing, and the timer
    /// works on.
    ///
    /// It may be called from anywhere: from callbacks, wakers, drops, executors, clocks, and at the
    /// end of a thread.
    ///
    /// # Performance
    ///
    /// O(nodes in use), without a copy of what is pending: the callbacks stay in the timer's memory
    /// until they are taken or dropped. Sleeps are woken before the call returns.
    pub fn shutdown(&self) -> Unfired {
        if self.is_global() { Unfired::default() } else { self.inner.shutdown() }
    }

    /// Returns a handle that does not keep the timer from being shut down when the last `Timer` is
    /// dropped.
    #[must_use]
    pub fn downgrade(&self) -> WeakTimer {
        WeakTimer { inner: Arc::downgrade(&self.inner), members: self.members.clone() }
    }

    /// The first shard, which each timer has.
    pub(crate) fn first_shard(&self) -> &ShardHandle {
        &self.inner.shards.handles[0]
    }

    /// The shard that the calling thread schedules on.
    #[inline(always)]
    pub(crate) fn handle(&self) -> &Arc<ShardHandle> {
        self.inner.shards.next_shard()
    }

    /// Schedules a callback that runs once, at the tick that `tick` chooses by the clock.
    #[inline]
    #[cfg_attr(feature = "introspect", track_caller)]
    fn schedule_once<F>(
        &self,
        callback: F,
        tick: impl FnOnce(&ShardHandle) -> Tick,
    ) -> Result<TimerKey, ScheduleError<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        let handle = self.handle();
        let (callback, tick) = handle.beside(callback, || tick(handle));
        let has_not_run = "a callback that was refused has not run";
        let key = if const { fits::<Option<F>>() } {
            let scheduled = handle.schedule(self.members.as_ref(), tick, Some(callback));
            scheduled.map_err(|refused| refused.map(|callback| callback.expect(has_not_run)))
        } else {
            let scheduled = handle.schedule(self.members.as_ref(), tick, Some(Box::new(callback)));
            scheduled.map_err(|refused| refused.map(|callback| *callback.expect(has_not_run)))
        };
        Ok(TimerKey::once(key?))
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("shards", &self.shards()).finish_non_exhaustive()
    }
}

/// A handle of a [`Timer`] that does not keep the timer from being shut down. Made by
/// [`Timer::downgrade`].
///
/// A recurring callback that holds a [`Timer`] keeps that timer alive for ever; one that holds a
/// `WeakTimer` does not. The weak handle of a [`Group`] gives a timer within that group.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::Timer;
///
/// let timer = Timer::new()?;
/// let weak = timer.downgrade();
/// timer.schedule_every(Duration::from_secs(1), move || {
///     if let Some(timer) = weak.upgrade() {
///         println!("{} timers are pending", timer.stats().pending);
///     }
/// })?;
/// let weak = timer.downgrade();
/// drop(timer); // ends the recurring timer
/// assert!(weak.upgrade().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct WeakTimer {
    inner: Weak<Inner>,
    members: Option<Arc<Members>>,
}

impl WeakTimer {
    /// Returns the timer; `None` if its last [`Timer`] handle has been dropped.
    ///
    /// A timer that was shut down by [`shutdown`](Timer::shutdown) is returned as long as a handle
    /// exists. If the returned handle is the last one when it is dropped, that drop shuts the timer
    /// down.
    #[must_use]
    pub fn upgrade(&self) -> Option<Timer> {
        self.inner.upgrade().map(|inner| Timer { inner, members: self.members.clone() })
    }
}
