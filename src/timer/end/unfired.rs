//! What had not fired when a `Timer` was shut down.
//!
//! The end of each shard is one walk over its nodes. It wakes sleeps and leaves callbacks in their
//! nodes. From there they are taken out one at a time, so neither a shutdown nor a drop copies what
//! is pending or allocates.
//!
//! The shutdown writes each shard's [`Ended`]. [`Unfired`] takes from there, shard by shard. The end
//! of a group makes a list of its members' callbacks instead: their shards go on.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::{Arc, Mutex};
use std::task::Waker;

use crate::shard::Stopped;
use crate::tick::Tick;
use crate::time::Instant;
use crate::timer::key::TimerKey;
use crate::timer::shard::{Ended, ShardHandle};
use crate::timer::task::{Task, TaskKind};
use crate::unwind::unpoisoned;

/// Yields the callbacks that a [`Timer`](crate::Timer) had not called when it was shut down, in no
/// particular order.
///
/// Dropping it drops the callbacks that are left. A panic in such a drop is counted and reported,
/// like a panic in a callback that fires. The callbacks stay in the `Timer`'s memory until they are
/// taken.
#[derive(Default)]
#[must_use = "callbacks that never ran are dropped with it"]
pub struct Unfired {
    /// All shards of the timer, in order; none in the default value, which yields nothing. Each has
    /// its remaining callbacks in its handle.
    handles: Arc<[Arc<ShardHandle>]>,
    /// The shard whose callbacks are being taken.
    place: usize,
    /// The callbacks of a group that has ended. A callback need not be `Sync`; the mutex is.
    members: Mutex<std::vec::IntoIter<UnfiredTask>>,
}

/// A callback that was not called before its `Timer` was shut down.
///
/// A panic in its drop is counted and reported, like a panic in a callback that fires.
pub struct UnfiredTask {
    key: TimerKey,
    deadline: Tick,
    handle: Arc<ShardHandle>,
    /// `None` while it is dropped. A sleep comes from a scope alone, not from a shutdown.
    pub(in crate::timer) task: Option<Task>,
}

impl Unfired {
    /// Ends the shards whose advancers have been retrieved: keeps the tasks of the kinds that
    /// `keeps` accepts, and wakes other sleeps.
    pub(in crate::timer) fn of(handles: Arc<[Arc<ShardHandle>]>, keeps: fn(TaskKind) -> bool) -> Self {
        // All shards refuse timers before the first waker runs.
        for handle in &handles[..] {
            if let Ended::Retrieved(advancer) = &*handle.ended() {
                advancer.close();
            }
        }
        for handle in &handles[..] {
            // The lock is released before the wakers run.
            let ended = std::mem::take(&mut *handle.ended());
            if let Ended::Retrieved(advancer) = ended {
                // The drop of a delay queue's entry gives the value back to the queue.
                let wake =
                    |mut task: Task| _ = handle.guard.run(None, move || task.take_waker().map(Waker::wake));
                let kept = advancer.end(|task| keeps(task.kind()), wake);
                *handle.ended() = Ended::Closed(kept);
            }
        }
        handles.iter().for_each(|handle| handle.end_watchers());
        Self { handles, place: 0, members: Mutex::default() }
    }

    /// Takes out the callbacks of timers that are pending on these shards, and wakes the sleeps
    /// among them.
    pub(in crate::timer) fn of_keys<'a>(
        keys: impl Iterator<Item = (&'a Arc<ShardHandle>, TimerKey)>,
    ) -> Self {
        let tasks: Vec<_> = keys.filter_map(|(handle, key)| UnfiredTask::take(handle, key)).collect();
        Self { handles: Arc::default(), place: 0, members: Mutex::new(tasks.into_iter()) }
    }

    /// Returns whether no callback is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Iterator for Unfired {
    type Item = UnfiredTask;

    fn next(&mut self) -> Option<UnfiredTask> {
        while let Some(handle) = self.handles.get(self.place) {
            let mut ended = handle.ended();
            if let Ended::Closed(kept) = &mut *ended
                && let Some((key, deadline, task)) = kept.next()
            {
                let key = TimerKey::new(key, task.recurs());
                return Some(UnfiredTask { key, deadline, handle: Arc::clone(handle), task: Some(task) });
            }
            *ended = Ended::Not;
            self.place += 1;
        }
        unpoisoned(self.members.get_mut()).next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let kept = |handle: &Arc<ShardHandle>| {
            if let Ended::Closed(kept) = &*handle.ended() { kept.len() } else { 0 }
        };
        let left = self.handles.iter().map(kept).sum::<usize>() + unpoisoned(self.members.lock()).len();
        (left, Some(left))
    }
}

impl ExactSizeIterator for Unfired {}

impl FusedIterator for Unfired {}

impl Drop for Unfired {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

impl fmt::Debug for Unfired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unfired").field("len", &self.len()).finish()
    }
}

impl UnfiredTask {
    /// Cancels a pending timer, and returns its callback. A sleep is woken.
    fn take(handle: &Arc<ShardHandle>, key: TimerKey) -> Option<Self> {
        let deadline = handle.scheduler.deadline(key.key()).unwrap_or(Tick::MAX);
        let Stopped::Pending(task) = handle.scheduler.stop(key.key()) else { return None };
        let is_callback = task.kind().is_callback();
        let unfired = Self { key, deadline, handle: Arc::clone(handle), task: Some(task) };
        // The drop wakes the sleep.
        is_callback.then_some(unfired)
    }

    /// Returns the timer's key: the one that the schedule, or the last reschedule, has returned. It
    /// finds no timer any more. By it, a program knows which callback this is.
    #[must_use]
    pub fn key(&self) -> TimerKey {
        self.key
    }

    /// Returns when the callback was due, rounded up to a tick; `None` if the system cannot
    /// represent that time, or it is more than 2^61 ticks after the `Timer`'s start.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.handle.time.instant(self.handle.time.start_of(self.deadline))
    }

    /// Calls the callback on the calling thread; a recurring one once.
    ///
    /// # Panics
    ///
    /// If the callback panics: the panic is the caller's, and is not counted.
    pub fn run(mut self) {
        let context = || self.handle.context(self.key, self.deadline);
        self.task.iter_mut().for_each(|task| task.run(context));
    }
}

impl Drop for UnfiredTask {
    /// Drops the callback under the guard. A sleep is woken.
    fn drop(&mut self) {
        let waker = self.task.as_mut().and_then(Task::take_waker);
        self.handle.guard.run(None, || waker.map(Waker::wake));
        self.task.take().into_iter().for_each(|task| task.discard(&self.handle.guard, None));
    }
}

impl fmt::Debug for UnfiredTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnfiredTask")
            .field("key", &self.key)
            .field("deadline", &self.deadline())
            .finish_non_exhaustive()
    }
}
