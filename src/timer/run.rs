//! Running what is due: on the shard's thread, or as a job on an executor.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::home::Home;
use super::key::TimerKey;
use super::task::{Kind, Task};
use super::time::Nanos;
use crate::shard::Running;

/// A task that has been taken out because it is due.
pub(crate) struct Work {
    pub(crate) key: TimerKey,
    pub(crate) task: Task,
    /// The node that is kept for it, if it recurs.
    pub(crate) running: Option<Running>,
}

/// A recurring task that has run, on its way back to its shard.
pub(crate) struct Done {
    pub(crate) running: Running,
    /// When it is due next, and the task; `None` where it has ended.
    pub(crate) next: Option<(Nanos, Task)>,
}

impl Home {
    /// Runs a task once. The rest of a recurring one comes back.
    pub(crate) fn run(&self, work: Work) -> Option<Done> {
        let Work { key, mut task, running } = work;
        let named = (task.kind() != Kind::Wake).then_some(key);
        self.watch.over(&self.counts, named, || task.run());
        let running = running?;
        let due = running.deadline();
        let next = self.watch.over(&self.counts, Some(key), || match task.next(due, &self.time) {
            Some(next) => Some((next, task)),
            None => {
                drop(task);
                None
            }
        });
        Some(Done { running, next: next.flatten() })
    }

    /// Drops what the user gave.
    pub(crate) fn discard<D>(&self, what: D) {
        self.watch.over(&self.counts, None, || drop(what));
    }
}

/// How a job gets at its shard.
pub(crate) struct Outlet {
    pub(crate) home: Arc<Home>,
    pub(crate) done: Sender<Done>,
}

impl Outlet {
    pub(crate) fn run(&self, work: Work) -> Option<Done> {
        let begin = self.home.time.now_or_later();
        let done = self.home.run(work);
        self.home.counts.note_callback(self.home.time.now_or_later().saturating_sub(begin));
        done
    }

    /// What is to be done where the task is not run at all; it is dropped here.
    pub(crate) fn abandon(&self, work: Work) -> Option<Done> {
        let Work { task, running, .. } = work;
        self.home.discard(task);
        running.map(|running| Done { running, next: None })
    }

    /// Sends a recurring task back. Where its shard has ended meanwhile, the task ends here.
    pub(crate) fn give_back(&self, done: Option<Done>) {
        let Some(done) = done else { return };
        match self.done.send(done) {
            Ok(()) => self.home.unpark(),
            Err(unsent) => self.home.discard(unsent.0),
        }
    }
}
