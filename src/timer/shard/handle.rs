//! A shard as producers use it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::task::Waker;

use crossbeam_utils::CachePadded;

use super::advancer_slot::AdvancerSlot;
use super::counts::Counts;
use crate::clock::unpoisoned;
use crate::error::ScheduleError;
use crate::shard::Kept;
use crate::shard::{Advancer, Key, Scheduler};
use crate::sync::Ordering;
use crate::sync::plain::AtomicU32;
use crate::tick::Tick;
use crate::time::{Duration, Instant};
use crate::timer::guard::{PanicGuard, PanicHook};
use crate::timer::task::{Inline, Members, RanTask, Task, TaskBody};
use crate::timer::time::{Nanos, Time, nanos};

/// One shard of a timer. Its worker, the timer and all its futures share it. Producers on different
/// shards share no counter, except for the bound on pending timers.
pub struct ShardHandle {
    pub(crate) scheduler: Scheduler<Task>,
    pub(crate) time: Time,
    pub(crate) counts: Counts,
    /// Catches the panics of user code.
    pub(crate) guard: Arc<PanicGuard>,
    /// Recurring tasks that an executor has run, on their way back to the worker; `None` once that
    /// has ended. Written under the lock, by jobs and by the worker.
    pub(in crate::timer) returned: Mutex<Option<VecDeque<RanTask>>>,
    /// The core to which the shard's driver is pinned. That driver sets it before `build` returns.
    pub(crate) core: OnceLock<usize>,
    /// How many living threads have got the shard as their own. Written by these threads.
    pub(in crate::timer) users: Arc<AtomicU32>,
    /// Makes a driver visit the shard.
    pub(crate) waker: Waker,
    /// Where the advancer lies while user code runs. The worker writes it at each callback, so it
    /// is padded apart from what producers read.
    pub(crate) advancer_slot: CachePadded<AdvancerSlot<Advancer<Task>>>,
    /// The state of the shard's end. Written by the shutdown, then by [`Unfired`](crate::Unfired).
    pub(in crate::timer) ended: Mutex<Ended>,
    /// What a shutdown calls after all timers of the shard have ended, by a watcher's number.
    /// `None` after the shutdown has called them. Written under its lock, by any thread.
    watchers: Mutex<Option<BTreeMap<u64, Weak<dyn WatchesEnd>>>>,
}

// User code runs where no structure is half changed: a panic in it leaves none behind.
impl UnwindSafe for ShardHandle {}
impl RefUnwindSafe for ShardHandle {}

impl fmt::Debug for ShardHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShardHandle(..)")
    }
}

/// What a shutdown calls at the end of a shard: a delay queue, whose consumer may wait although no
/// timer of the shard is pending.
pub(crate) trait WatchesEnd: Send + Sync {
    /// Runs user code under the shard's guard.
    fn end(&self, guard: &PanicGuard);
}

/// How far a shutdown has ended a shard. It lies in the shard's handle, so a shutdown allocates
/// nothing.
#[derive(Default)]
pub(in crate::timer) enum Ended {
    #[default]
    Not,
    /// The shutdown has taken the advancer.
    Retrieved(Box<Advancer<Task>>),
    /// The shutdown has ended the shard.
    Closed(Kept<Task>),
}

impl ShardHandle {
    pub(crate) fn new(scheduler: Scheduler<Task>, time: Time, hook: Option<PanicHook>, waker: Waker) -> Self {
        Self {
            scheduler,
            time,
            counts: Counts::new(),
            guard: PanicGuard::new(hook),
            returned: Mutex::new(Some(VecDeque::new())),
            core: OnceLock::new(),
            users: Arc::default(),
            waker,
            advancer_slot: CachePadded::new(AdvancerSlot::new()),
            ended: Mutex::new(Ended::default()),
            watchers: Mutex::new(Some(BTreeMap::new())),
        }
    }

    /// Schedules a content that [fits](crate::timer::task::fits) into a task, as a box does; as a
    /// member if there is a group. If it is refused, the error returns it.
    #[inline]
    #[cfg_attr(feature = "introspect", track_caller)]
    pub(crate) fn schedule<R: TaskBody>(
        &self,
        group: Option<&Arc<Members>>,
        tick: Tick,
        content: R,
    ) -> Result<Key, ScheduleError<R>> {
        let make = || Task::Callback(Inline::hold(content));
        let scheduled = match group {
            None => self.scheduler.schedule_by(self.tag_here(), tick, make),
            Some(members) => members.schedule(&self.scheduler, self.tag_here(), tick, make()),
        };
        scheduled.map_err(|refused| refused.map(Task::into_content))
    }

    /// Reads the user's clock by `code`, beside a value of the user's: see
    /// [`run_beside`](PanicGuard::run_beside).
    #[inline]
    pub(crate) fn read_clock_beside<K, R>(&self, kept: K, code: impl FnOnce() -> R) -> (K, R) {
        if self.time.is_users() { self.guard.run_beside(kept, |_| code()) } else { (kept, code()) }
    }

    // ---- time --------------------------------------------------------------------------------

    /// The time now, or a little later: for deadlines. If a user's clock has been set back behind
    /// the shard's own time, this is the shard's own time.
    #[inline]
    pub(crate) fn now_or_later(&self) -> Nanos {
        self.time.fast_now().unwrap_or_else(|| self.now())
    }

    /// The time now, for deadlines; at least the shard's own time.
    pub(crate) fn now(&self) -> Nanos {
        self.time.now_since(|| self.scheduler.reached())
    }

    /// As [`now`](Self::now), for schedules.
    pub(crate) fn now_instant(&self) -> Instant {
        self.time.instant_shown(self.now())
    }

    /// The time by the clock, or the shard's own time if the clock panics; for the worker and for
    /// jobs.
    pub(crate) fn present(&self) -> Nanos {
        self.time.present(&self.guard, || self.scheduler.reached())
    }

    /// As [`present`](Self::present), or a little later: for statistics, where a microsecond does
    /// not matter.
    #[inline]
    pub(crate) fn present_or_later(&self) -> Nanos {
        self.time.fast_now().unwrap_or_else(|| self.present())
    }

    /// [`now_instant`](Self::now_instant), or the shard's own time where the clock panics.
    pub(crate) fn present_instant(&self) -> Instant {
        self.time.present_instant(&self.guard, || self.scheduler.reached())
    }

    /// The deadline `delay` from now. The fast clock may be ahead by microseconds, so it is not used
    /// for a delay of zero, which is over at once.
    #[inline]
    pub(crate) fn deadline_after(&self, delay: Duration) -> Nanos {
        let now = if delay.is_zero() { self.now() } else { self.now_or_later() };
        now.saturating_add(nanos(delay))
    }

    /// The tick for a timer that is due `delay` from now: never early, and not before the next
    /// tick.
    #[inline]
    pub(crate) fn tick_after(&self, delay: Duration) -> Tick {
        let now = self.now_or_later();
        let tick = self.time.tick_for(now.saturating_add(nanos(delay)));
        tick.max(self.time.tick_at(now).saturating_add(1))
    }

    /// The tick for a timer that is due at `deadline`: never early. If the shard has flushed that
    /// tick or the tick before it, the result is at least the next tick by the clock, so time
    /// passes for a callback that keeps scheduling for the past. Only then is the clock read.
    #[inline]
    pub(crate) fn tick_for(&self, deadline: Instant) -> Tick {
        self.tick_within(self.time.since_start(deadline), self.time.slack)
    }

    /// Likewise for a timer that is due at `start` or up to `slack` later.
    #[inline]
    pub(crate) fn tick_within(&self, start: Nanos, slack: Nanos) -> Tick {
        let is_near = self.time.tick_within(start, 0, 0) <= self.scheduler.now().saturating_add(1);
        let least = if is_near { self.time.tick_at(self.now()).saturating_add(1) } else { 0 };
        self.time.tick_within(start, slack, least)
    }

    // ---- the worker and the end --------------------------------------------------------------

    pub(in crate::timer) fn ended(&self) -> MutexGuard<'_, Ended> {
        unpoisoned(self.ended.lock())
    }

    /// Makes the shutdown call `watcher`, whose number no other one has. False if the shard has
    /// ended.
    ///
    /// A shard that is marked as stopping takes timers until it is closed. So the shutdown calls
    /// the watchers when the shard is closed, not when it is marked.
    pub(crate) fn watch_end(&self, number: u64, watcher: Weak<dyn WatchesEnd>) -> bool {
        let mut watchers = unpoisoned(self.watchers.lock());
        watchers.as_mut().map(|watchers| watchers.insert(number, watcher)).is_some()
    }

    /// The watcher ends before the shard.
    pub(crate) fn forget_watcher(&self, number: u64) {
        if let Some(watchers) = unpoisoned(self.watchers.lock()).as_mut() {
            watchers.remove(&number);
        }
    }

    #[cfg(test)]
    pub(crate) fn watchers(&self) -> usize {
        unpoisoned(self.watchers.lock()).as_ref().map_or(0, BTreeMap::len)
    }

    /// Calls all watchers, once, after all timers have ended. The lock is released before they run.
    pub(in crate::timer) fn end_watchers(&self) {
        let watchers = unpoisoned(self.watchers.lock()).take().unwrap_or_default();
        for watcher in watchers.values().filter_map(Weak::upgrade) {
            watcher.end(&self.guard);
        }
    }

    /// Whether the timer has been shut down.
    pub(crate) fn is_stopping(&self) -> bool {
        // Ordering: Relaxed. The worker is woken after the store. A thread that finds its timer
        // gone because the shard has ended is ordered by the fence in `close`.
        self.advancer_slot.stopping.load(Ordering::Relaxed)
    }
}
