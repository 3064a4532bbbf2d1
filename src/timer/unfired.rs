//! What had not fired when a timer was shut down.
//!
//! The end of each shard is one walk over its nodes. It wakes sleeps and leaves callbacks in their
//! nodes. From there they are taken out one at a time, so neither a shutdown nor a drop copies what
//! is pending or allocates.
//!
//! The shutdown writes each shard's [`Ended`]. [`Unfired`] takes from there, shard by shard.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;
use std::time::Instant;

use super::inline::Kind;
use super::shard_handle::{Ended, ShardHandle};
use super::task::Task;
use crate::Tick;
use crate::shard::Kept;

/// Yields the callbacks that a [`Timer`](crate::Timer) had not called when it was shut down, in no
/// particular order.
///
/// Dropping it drops the callbacks that are left. A panic in such a drop is counted and reported,
/// like a panic in a callback that fires. The callbacks stay in the timer's memory until they are
/// taken.
#[derive(Default)]
#[must_use = "callbacks that never ran are dropped with it"]
pub struct Unfired {
    /// All shards of the timer, in order. Each keeps its remaining callbacks in its handle. `None`
    /// in the default value, which yields nothing.
    handles: Option<Arc<[Arc<ShardHandle>]>>,
    /// The shard whose callbacks are being taken, and those that are left there.
    place: usize,
    current: Option<Kept<Task>>,
}

/// A callback that was not called before its timer was shut down.
pub struct UnfiredTask {
    deadline: Option<Instant>,
    task: Task,
}

impl Unfired {
    /// Ends the shards whose advancers have been retrieved: wakes their sleeps and keeps the
    /// callbacks.
    pub(super) fn of(handles: Arc<[Arc<ShardHandle>]>) -> Self {
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
                let wake = |mut task: Task| _ = handle.run_guarded(move || task.run());
                let kept = advancer.end(|task| task.kind() != Kind::Wake, wake);
                *handle.ended() = Ended::Closed(kept);
            }
        }
        Self { handles: Some(handles), place: 0, current: None }
    }

    fn handles(&self) -> &[Arc<ShardHandle>] {
        self.handles.as_deref().unwrap_or_default()
    }

    /// The next callback, and its shard's handle.
    fn take_next(&mut self) -> Option<(Arc<ShardHandle>, Tick, Task)> {
        loop {
            let handle = Arc::clone(self.handles().get(self.place)?);
            self.current = self.current.take().or_else(|| handle.take_kept());
            if let Some((tick, task)) = self.current.as_mut().and_then(Iterator::next) {
                return Some((handle, tick, task));
            }
            (self.place, self.current) = (self.place + 1, None);
        }
    }

    /// Returns whether no callback is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn left(&self) -> usize {
        let untouched = self.handles().iter().map(|handle| handle.ended().len()).sum::<usize>();
        untouched + self.current.as_ref().map_or(0, Kept::len)
    }
}

impl Ended {
    fn len(&self) -> usize {
        if let Self::Closed(kept) = self { kept.len() } else { 0 }
    }
}

impl Iterator for Unfired {
    type Item = UnfiredTask;

    fn next(&mut self) -> Option<UnfiredTask> {
        let (handle, tick, task) = self.take_next()?;
        Some(UnfiredTask { deadline: handle.time.instant(handle.time.start_of(tick)), task })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left(), Some(self.left()))
    }
}

impl ExactSizeIterator for Unfired {}

impl FusedIterator for Unfired {}

impl Drop for Unfired {
    /// Drops each callback under a guard of its own.
    fn drop(&mut self) {
        while let Some((handle, _, task)) = self.take_next() {
            handle.discard(task);
        }
    }
}

impl fmt::Debug for Unfired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unfired").field("len", &self.len()).finish()
    }
}

impl UnfiredTask {
    /// Returns when the callback was due, rounded up to a tick; `None` if the system cannot
    /// represent that time.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Calls the callback on the calling thread; a recurring one once.
    pub fn run(mut self) {
        self.task.run();
    }
}

impl fmt::Debug for UnfiredTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnfiredTask").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
