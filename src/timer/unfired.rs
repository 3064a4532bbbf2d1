//! What a timer had not fired when it was shut down.
//!
//! The end of each shard is one walk over its nodes: it wakes what sleeps, and leaves callbacks where they are. From there
//! they are taken out one at a time, so neither a shutdown nor a drop copies what is pending, or asks for memory.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use super::shard_handle::ShardHandle;
use super::task::{Kind, Task};
use crate::clock::unpoisoned;
use crate::shard::Kept;
use crate::{Advancer, Tick};

/// The callbacks that a [`Timer`](crate::Timer) had not called when it was shut down, in no order that means anything.
///
/// What is not taken from it is dropped with it; a callback that panics when it is dropped is counted and reported like
/// one that panics when it is called. The callbacks stay in the timer's memory until they are taken.
#[derive(Default)]
#[must_use = "callbacks that never ran are dropped with it"]
pub struct Unfired {
    /// The shards that may have any, the first last.
    /// Those that have been ended, if any: what is left of each is with its home.
    handles: Option<Arc<[Arc<ShardHandle>]>>,
    /// The shard that is being gone through, and what is left of it.
    place: usize,
    current: Option<Kept<Task>>,
}

/// What a shutdown has made of a shard. It lies with the shard's home, so that a shutdown needs no memory.
#[derive(Default)]
pub(super) enum Ended {
    #[default]
    Not,
    /// It has its advancer.
    Retrieved(Box<Advancer<Task>>),
    /// It has ended the shard.
    Closed(Kept<Task>),
}

/// A callback that was not called, because its timer was shut down before.
pub struct UnfiredTask {
    deadline: Option<Instant>,
    task: Task,
}

impl Unfired {
    /// Ends the shards whose advancers have been retrieved: wakes what sleeps there, and keeps the callbacks.
    pub(super) fn of(handles: Arc<[Arc<ShardHandle>]>) -> Self {
        // All refuse timers before the first waker runs.
        for handle in &handles[..] {
            if let Ended::Retrieved(advancer) = &*handle.ended() {
                advancer.close();
            }
        }
        for handle in &handles[..] {
            // The lock is free while wakers run.
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

    /// The next callback, and the home of its shard.
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

    /// Whether there is none.
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

impl ShardHandle {
    pub(super) fn ended(&self) -> MutexGuard<'_, Ended> {
        unpoisoned(self.ended.lock())
    }

    fn take_kept(&self) -> Option<Kept<Task>> {
        let ended = std::mem::take(&mut *self.ended());
        if let Ended::Closed(kept) = ended { Some(kept) } else { None }
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
    /// Each callback's drop by itself.
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
    /// When it was due, rounded up to a tick; `None` if that is further off than the system can say.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Calls the callback, here and now; a recurring one once.
    pub fn run(mut self) {
        self.task.run();
    }
}

impl fmt::Debug for UnfiredTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnfiredTask").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
