//! Running what is due: on the shard's thread, or as a job on an executor.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::key::TimerKey;
use super::shard_handle::ShardHandle;
use super::task::{Kind, Task};
use super::time::Nanos;
use crate::shard::RearmTicket;

/// A task that has been taken out because it is due.
pub(crate) struct Work {
    pub(crate) key: TimerKey,
    pub(crate) task: Task,
    /// The node that is kept for it, if it recurs.
    pub(crate) running: Option<RearmTicket>,
}

/// A recurring task that has run, on its way back to its shard.
pub(crate) struct Done {
    pub(crate) running: RearmTicket,
    /// When it is due next, and the task; `None` where it has ended.
    pub(crate) next: Option<(Nanos, Task)>,
}

impl ShardHandle {
    /// Runs a task once. The rest of a recurring one comes back.
    ///
    /// Each piece of user code is watched by itself: the callback, the clock, the schedule, and the drop of both.
    pub(crate) fn run(&self, work: Work) -> Option<Done> {
        let Work { key, mut task, running } = work;
        let named = (task.kind() != Kind::Wake).then_some(key);
        self.panic_guard.run(&self.counts, named, || task.run());
        // A task that runs once holds nothing of the user's any more.
        let running = running?;
        let now = self.present_instant();
        let next = || task.next(running.deadline(), &self.time, now);
        let next = self.panic_guard.run(&self.counts, Some(key), next).flatten();
        if next.is_none() {
            self.panic_guard.run(&self.counts, Some(key), || drop(task));
            return Some(Done { running, next: None });
        }
        Some(Done { running, next: next.map(|at| (at, task)) })
    }

    /// Drops what the user gave.
    pub(crate) fn discard<D>(&self, what: D) {
        self.run_guarded(|| drop(what));
    }

    /// Runs user code that is no timer's; none if it panics.
    pub(crate) fn run_guarded<R>(&self, code: impl FnOnce() -> R) -> Option<R> {
        self.panic_guard.run(&self.counts, None, code)
    }
}

/// How a job gets at its shard.
pub(crate) struct Outlet {
    pub(crate) handle: Arc<ShardHandle>,
    pub(crate) done: Sender<Returned>,
}

/// A recurring task on its way back from an executor. Where its shard has ended before it is received, the task is
/// dropped with it.
pub(crate) struct Returned {
    done: Option<Done>,
    handle: Arc<ShardHandle>,
}

impl Returned {
    pub(crate) fn receive(mut self) -> Option<Done> {
        self.done.take()
    }
}

impl Drop for Returned {
    fn drop(&mut self) {
        if let Some(Done { next, .. }) = self.done.take() {
            self.handle.discard(next);
        }
    }
}

impl Outlet {
    pub(crate) fn run(&self, work: Work) -> Option<Done> {
        let begin = self.handle.present_or_later();
        let done = self.handle.run(work);
        self.handle.counts.note_callback(self.handle.present_or_later().saturating_sub(begin));
        done
    }

    /// What is to be done where the task is not run at all; it is dropped here.
    pub(crate) fn abandon(&self, work: Work) -> Option<Done> {
        let Work { task, running, .. } = work;
        self.handle.discard(task);
        running.map(|running| Done { running, next: None })
    }

    /// Sends a recurring task back. Where its shard has ended meanwhile, the task ends here.
    pub(crate) fn give_back(&self, done: Option<Done>) {
        if done.is_none() {
            return;
        }
        if self.done.send(Returned { done, handle: Arc::clone(&self.handle) }).is_ok() {
            self.handle.parker.notify();
        }
    }
}
