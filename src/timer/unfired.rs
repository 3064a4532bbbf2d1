//! What a timer had not fired when it was shut down.
//!
//! The end of each shard is one walk over its nodes: it wakes what sleeps, and leaves callbacks where they are. From there
//! they are taken out one at a time, so neither a shutdown nor a drop copies what is pending, or allocates more than a
//! few words a shard.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;
use std::time::Instant;

use super::home::Home;
use super::task::{Kind, Task};
use crate::Advancer;
use crate::shard::Kept;

/// The callbacks that a [`Timer`](crate::Timer) had not called when it was shut down, in no order that means anything.
///
/// What is not taken from it is dropped with it; a callback that panics when it is dropped is counted and reported like
/// one that panics when it is called. The callbacks stay in the timer's memory until they are taken.
#[derive(Default)]
#[must_use = "callbacks that never ran are dropped with it"]
pub struct Unfired {
    /// The shards that may have any, the first last.
    shards: Vec<(Arc<Home>, Kept<Task>)>,
}

/// A callback that was not called, because its timer was shut down before.
pub struct UnfiredTask {
    deadline: Option<Instant>,
    task: Task,
}

impl Unfired {
    /// Ends those shards: wakes what sleeps there, and keeps the callbacks.
    pub(super) fn of(ended: Vec<(Arc<Home>, Box<Advancer<Task>>)>) -> Self {
        // All refuse timers before the first waker runs.
        ended.iter().for_each(|(_, advancer)| advancer.close());
        let end = |(home, advancer): (Arc<Home>, Box<Advancer<Task>>)| {
            let wake = |mut task: Task| _ = home.watched(move || task.run());
            let kept = advancer.end(|task| task.kind() != Kind::Wake, wake);
            (home, kept)
        };
        let mut shards: Vec<_> = ended.into_iter().map(end).collect();
        shards.reverse();
        Self { shards }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn left(&self) -> usize {
        self.shards.iter().map(|(_, kept)| kept.len()).sum()
    }
}

impl Iterator for Unfired {
    type Item = UnfiredTask;

    fn next(&mut self) -> Option<UnfiredTask> {
        loop {
            let (home, kept) = self.shards.last_mut()?;
            if let Some((tick, task)) = kept.next() {
                return Some(UnfiredTask { deadline: home.time.instant(home.time.start_of(tick)), task });
            }
            self.shards.pop();
        }
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
        while let Some((home, kept)) = self.shards.pop() {
            kept.for_each(|(_, task)| home.discard(task));
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
