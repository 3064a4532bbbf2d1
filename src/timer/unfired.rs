//! What a timer had not fired when it was shut down.

use std::fmt;
use std::iter::FusedIterator;
use std::time::Instant;

use super::task::Task;

/// The callbacks that a [`Timer`](crate::Timer) had not called when it was shut down, in no order that means anything.
///
/// What is not taken from it is dropped with it.
#[derive(Default)]
#[must_use = "callbacks that never ran are dropped with it"]
pub struct Unfired {
    tasks: std::vec::IntoIter<UnfiredTask>,
}

/// A callback that was not called, because its timer was shut down before.
pub struct UnfiredTask {
    pub(super) deadline: Option<Instant>,
    pub(super) task: Task,
}

impl Unfired {
    pub(super) fn new(tasks: Vec<UnfiredTask>) -> Self {
        Self { tasks: tasks.into_iter() }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.len() == 0
    }
}

impl Iterator for Unfired {
    type Item = UnfiredTask;

    fn next(&mut self) -> Option<UnfiredTask> {
        self.tasks.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.tasks.size_hint()
    }
}

impl ExactSizeIterator for Unfired {}

impl FusedIterator for Unfired {}

impl fmt::Debug for Unfired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unfired").field("len", &self.tasks.len()).finish()
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
