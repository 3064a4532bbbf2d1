//! `Timer`: shards that run by themselves.
//!
//! | file | what it holds |
//! |---|---|
//! | `builder.rs` | The settings, validated once; makes the shards and their threads. |
//! | `shard_handle.rs`, `key.rs` | A shard as a scheduling thread sees it; which shard is a thread's own. |
//! | `time.rs`, `schedule.rs` | Nanoseconds and ticks; when a recurring timer is due next. |
//! | `task.rs`, `inline.rs`, `run.rs`, `executor.rs`, `panics.rs` | What a node holds; running it, here or on an executor; its panics. |
//! | `worker.rs`, `parker.rs`, `pace.rs` | A shard's turns and its sleep: what ends a sleep, and how long it lasts. |
//! | `drive.rs`, `advancer_slot.rs` | A thread for each shard, or a manual clock for all; how a shutdown reaches their advancers. |
//! | `stats.rs`, `unfired.rs` | What the timer has done; what had not fired when it was shut down. |

mod advancer_slot;
mod builder;
mod drive;
mod executor;
mod inline;
mod key;
mod pace;
mod panics;
mod parker;
mod run;
pub(crate) mod schedule;
mod shard_handle;
mod stats;
mod task;
mod time;
mod unfired;
mod worker;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use builder::TimerBuilder;
pub use executor::{Executor, Job};
pub use key::TimerKey;
pub use panics::CallbackPanic;
pub use schedule::{Every, Missed, Schedule};
pub use stats::{Figures, Lateness, Stats};
use unfired::Ended;
pub use unfired::{Unfired, UnfiredTask};

pub(crate) use shard_handle::ShardHandle;
pub(crate) use task::{Task, ToWake};
pub(crate) use time::{NEVER, Nanos, nanos};

use crate::clock::Driven;
use crate::error::{ScheduleError, ScheduleErrorKind};
use crate::future::{Interval, Sleep, Timeout};
use crate::shard::{ShardId, Stopped};
use crate::tick::Tick;
use drive::Drive;
use task::{Once, Recurring};

/// Runs callbacks and wakes futures when they are due: a shard for each core, each with a thread that sleeps
/// until the next one is.
///
/// Scheduling, cancelling and rescheduling take no lock and wait for nobody, from any thread. Clones are handles
/// of the same timer; when the last one is dropped the timer is shut down. (A callback that holds a handle keeps
/// the timer from that until it has run.)
///
/// A thread schedules on a shard of its own: that of the core that it is pinned to (when it first uses a timer), or
/// else one that it is given and keeps.
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
/// let (told, heard) = mpsc::channel();
/// timer.schedule_after(Duration::from_millis(20), move || told.send(begin.elapsed()).unwrap())?;
/// let never = timer.schedule_after(Duration::from_secs(3600), || unreachable!("it is cancelled"))?;
/// assert!(timer.cancel(never));
///
/// assert!(heard.recv()? >= Duration::from_millis(20)); // never early
/// assert_eq!(timer.stats().pending, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Timer {
    inner: Arc<Inner>,
}

struct Inner {
    /// Tells this timer from others in thread locals.
    id: u64,
    handles: Arc<[Arc<ShardHandle>]>,
    /// The first shard's number; the others' follow.
    first: ShardId,
    drive: Drive,
}

impl Timer {
    /// A builder with the defaults: a tick of 1 ms, a shard for each core that is available, threads that are not
    /// pinned, no bound on pending timers, the system's monotonic clock.
    pub fn builder() -> TimerBuilder {
        TimerBuilder::new()
    }

    /// Calls `callback` once, when `delay` has passed from now: no earlier, and at most a tick later (plus the
    /// time for which its shard is held up by other callbacks). A delay of zero comes at the next tick; one that
    /// is longer than 584 years, never.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`], with the callback, if the timer has been shut down, as many timers are pending as it may
    /// hold, or the system gives no memory.
    ///
    /// # Performance
    ///
    /// O(1), lock-free. A callback of up to three words is stored in the timer's node, without an allocation; the
    /// shard allocates when it grows. A larger one is boxed (four words fit if one of them is never zero, as a
    /// reference is).
    #[inline]
    pub fn schedule_after<F>(&self, delay: Duration, callback: F) -> Result<TimerKey, ScheduleError<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        let handle = self.handle();
        self.schedule_once(handle, handle.tick_after(delay), callback)
    }

    /// Calls `callback` once, at `deadline`; as [`schedule_after`](Self::schedule_after). A deadline that has passed
    /// comes as soon as may be, at the next tick at the latest.
    ///
    /// # Errors
    ///
    /// As [`schedule_after`](Self::schedule_after).
    #[inline]
    pub fn schedule_at<F>(&self, deadline: Instant, callback: F) -> Result<TimerKey, ScheduleError<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        let handle = self.handle();
        self.schedule_once(handle, handle.tick_for(deadline), callback)
    }

    /// Calls `callback` every `period` from now on, the first time after one, at a fixed rate: what is missed is
    /// made up for. [`Every`] with [`schedule_with`](Self::schedule_with) chooses otherwise.
    ///
    /// The key names the timer for all its occurrences. While the callback runs, cancelling keeps the next ones from
    /// coming.
    ///
    /// # Errors
    ///
    /// As [`schedule_after`](Self::schedule_after), and if the period is zero.
    ///
    /// # Performance
    ///
    /// As [`schedule_after`](Self::schedule_after); the callback is boxed, once. An occurrence allocates nothing: the
    /// same node is armed anew.
    pub fn schedule_every<F>(&self, period: Duration, callback: F) -> Result<TimerKey, ScheduleError<F>>
    where
        F: FnMut() + Send + 'static,
    {
        if period.is_zero() {
            return Err(ScheduleError::new(ScheduleErrorKind::ZeroPeriod, callback));
        }
        self.schedule_with(Every::new(period), callback)
    }

    /// Calls `callback` whenever `schedule` says so, until it says no more.
    ///
    /// # Errors
    ///
    /// As [`schedule_after`](Self::schedule_after), and if the schedule has no first occurrence. A period so long
    /// that the system cannot name its end is none.
    ///
    /// # Performance
    ///
    /// As [`schedule_every`](Self::schedule_every).
    pub fn schedule_with<S, F>(&self, mut schedule: S, callback: F) -> Result<TimerKey, ScheduleError<F>>
    where
        S: Schedule,
        F: FnMut() + Send + 'static,
    {
        let handle = self.handle();
        let Some(first) = schedule.next(handle.now_instant()) else {
            handle.discard(schedule);
            return Err(ScheduleError::new(ScheduleErrorKind::NoOccurrence, callback));
        };
        let tick = handle.tick_for(first);
        let scheduled =
            task::schedule_in_place(&handle.scheduler, tick, Recurring::new(schedule, first, tick, callback));
        let key = scheduled.map_err(|refused| {
            refused.map(|mut recurring| {
                let callback = recurring.take_callback();
                handle.discard(recurring);
                callback
            })
        })?;
        Ok(TimerKey::recurring(key))
    }

    /// Cancels a timer. True if it will not fire (any more); false if it has fired, is being fired, or was cancelled
    /// before: the answer is final at once. The callback is dropped here, before the call returns.
    ///
    /// A recurring timer can be cancelled while its callback runs, also by the callback itself: true, and the
    /// occurrence under way is its last.
    ///
    /// # Performance
    ///
    /// O(1), lock-free, no allocation.
    pub fn cancel(&self, key: TimerKey) -> bool {
        let Some(handle) = self.inner.home_of(key) else { return false };
        if key.recurs() {
            !matches!(handle.scheduler.stop(key.key()), Stopped::Gone)
        } else {
            handle.scheduler.cancel(key.key()).is_some()
        }
    }

    /// Has a pending timer fire when `delay` has passed from now, and returns the key that it has then. `None` means
    /// that it has fired, is being fired, or was cancelled before. A recurring timer goes on
    /// from there: its schedule takes this for the time at which it was due.
    ///
    /// # Performance
    ///
    /// O(1), lock-free; to a later time usually one compare-and-swap, and the key stays the same.
    pub fn reschedule_after(&self, key: TimerKey, delay: Duration) -> Option<TimerKey> {
        self.reschedule(key, |handle| handle.tick_after(delay))
    }

    /// Has a pending timer fire at `deadline`; as [`reschedule_after`](Self::reschedule_after).
    pub fn reschedule_at(&self, key: TimerKey, deadline: Instant) -> Option<TimerKey> {
        self.reschedule(key, |handle| handle.tick_for(deadline))
    }

    /// A future that is ready when `duration` has passed from now.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        let handle = self.handle();
        Sleep::new(Arc::clone(handle), handle.now_or_later().saturating_add(nanos(duration)))
    }

    /// A future that is ready at `deadline`.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        let handle = self.handle();
        Sleep::new(Arc::clone(handle), handle.time.since_start(deadline))
    }

    /// Gives `future` that much time from now.
    pub fn timeout<F: Future>(&self, duration: Duration, future: F) -> Timeout<F> {
        Timeout::new(future, self.sleep(duration))
    }

    /// Gives `future` until `deadline`.
    pub fn timeout_at<F: Future>(&self, deadline: Instant, future: F) -> Timeout<F> {
        Timeout::new(future, self.sleep_until(deadline))
    }

    /// A stream of moments `period` apart, the first after one.
    pub fn interval(&self, period: Duration) -> Interval {
        Interval::new(self.sleep(period), period)
    }

    /// The time by the timer's clock; where a clock of your own has been set back, the time that the calling thread's shard
    /// has come to.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.handle().now_instant()
    }

    /// How many shards there are.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.inner.handles.len()
    }

    /// What the timer has done and what it holds. O(threads + segments) a shard; it disturbs nobody.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(self.inner.handles.iter().map(|handle| &**handle))
    }

    /// Stops the timer: its threads end, and what they had not fired is returned. Sleeps, timeouts and intervals that
    /// are pending resolve to an error. From then on scheduling is an error. A second shutdown returns nothing, at
    /// once.
    ///
    /// It waits for the callbacks that its threads are running; called by one of these, for the others. When it returns,
    /// its threads have ended, but for those that it does not wait for:
    ///
    /// - It does not wait for an executor: a callback that has been handed over runs or does not as the executor will, and
    ///   a recurring one is not armed again. A thread that is inside [`Executor::execute`] ends after that.
    /// - It does not wait where that would never end, because a callback that it would wait for waits for the caller: two
    ///   callbacks that shut down each other's timer, or one that moves a [`ManualClock`](crate::ManualClock) that the
    ///   calling thread drives. Such a callback is then the last of its shard, and its thread ends after it. Known are
    ///   waits in `shutdown`, in the drop of a timer's last handle and in the manual clock's `advance` and `jump`. A
    ///   callback that waits for the caller by other means (a lock, a channel) is waited for.
    ///
    /// It may be called from anywhere: from callbacks, wakers, drops, executors, clocks, and at the end of a thread.
    ///
    /// # Performance
    ///
    /// O(nodes in use), without a copy of what is pending: the callbacks stay in the timer's memory until they are taken
    /// or dropped. Sleeps are woken before it returns.
    pub fn shutdown(&self) -> Unfired {
        self.inner.shutdown()
    }

    /// The calling thread's own shard.
    #[inline]
    fn handle(&self) -> &Arc<ShardHandle> {
        &self.inner.handles[shard_handle::own_shard(self.inner.id, &self.inner.handles)]
    }

    #[inline]
    fn schedule_once<F>(
        &self,
        handle: &ShardHandle,
        tick: Tick,
        callback: F,
    ) -> Result<TimerKey, ScheduleError<F>>
    where
        F: FnOnce() + Send + 'static,
    {
        let scheduled = task::schedule_in_place(&handle.scheduler, tick, Once::new(callback));
        let key = scheduled.map_err(|refused| refused.map(Once::into_callback))?;
        Ok(TimerKey::once(key))
    }

    fn reschedule(&self, key: TimerKey, tick: impl FnOnce(&ShardHandle) -> Tick) -> Option<TimerKey> {
        let handle = self.inner.home_of(key)?;
        let tick = tick(handle);
        if key.recurs() {
            handle.scheduler.relocate_recurring(key.key(), tick).map(TimerKey::recurring)
        } else {
            handle.scheduler.reschedule(key.key(), tick).map(TimerKey::once)
        }
    }
}

impl Inner {
    /// The shard that the key is of, if it is of one of ours.
    #[inline]
    fn home_of(&self, key: TimerKey) -> Option<&ShardHandle> {
        self.handles.get(key.key().shards_after(self.first)).map(|handle| &**handle)
    }

    fn shutdown(&self) -> Unfired {
        let Some((first, others)) = self.handles.split_first() else { return Unfired::default() };
        if !first.stop() {
            return Unfired::default();
        }
        for handle in others {
            handle.stop();
        }
        for (shard, handle) in self.handles.iter().enumerate() {
            if let Some(advancer) = self.drive.retrieve(handle, shard) {
                *handle.ended() = Ended::Retrieved(advancer);
            }
        }
        self.drive.join(&self.handles);
        Unfired::of(Arc::clone(&self.handles))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop(self.shutdown());
    }
}

impl Driven for Inner {
    fn next_expiration(&self) -> Option<Instant> {
        let Drive::Manual(slots) = &self.drive else { return None };
        slots.least(|worker| {
            let time = &worker.handle().time;
            worker.next_expiration().and_then(|tick| time.instant(time.start_of(tick)))
        })
    }

    fn run_due(&self) {
        if let Drive::Manual(slots) = &self.drive {
            slots.run_due();
        }
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("shards", &self.shards()).finish_non_exhaustive()
    }
}
