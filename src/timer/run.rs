//! Runs what is due: on the driver's thread, or as a job on an executor.
//!
//! The thread that runs a task owns it. A recurring task goes back to its shard's worker, which
//! arms it anew: directly, or through a channel if an executor ran it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::task::Wake;
use std::thread;

use super::key::TimerKey;
use super::occurrence::Occasion;
use super::shard_handle::ShardHandle;
use super::task::Task;
use super::time::Nanos;
use crate::shard::RearmTicket;
use crate::tick::Tick;

/// A task that has been taken out of its node because it is due.
pub(crate) struct Work {
    pub(crate) key: TimerKey,
    /// The tick at which it was due.
    pub(crate) deadline: Tick,
    pub(crate) task: Task,
    /// The right to the node, which is kept for a recurring task.
    pub(crate) running: Option<RearmTicket>,
}

/// A recurring task that has run, on its way back to its shard.
pub(crate) struct Done {
    pub(crate) running: RearmTicket,
    /// When the task is due next, and the task; `None` if it has ended.
    pub(crate) next: Option<(Nanos, Task)>,
}

impl ShardHandle {
    /// Runs a task once. Returns what is left of a recurring task.
    ///
    /// Each piece of user code has its own guard: the callback, the clock, the schedule, and the
    /// drop of the task.
    pub(crate) fn run(&self, work: Work) -> Option<Done> {
        let Work { key, deadline, mut task, running } = work;
        let named = task.kind().is_callback().then_some(key);
        let occasion = Occasion { key, deadline, handle: self };
        self.panic_guard.run(&self.counts, named, || task.run(occasion));
        // A task that runs once holds no user value any more.
        let running = running?;
        let now = self.present_instant();
        let next = || task.next(deadline, &self.time, now);
        let next = self.panic_guard.run(&self.counts, Some(key), next).flatten();
        if next.is_none() {
            self.discard_task(Some(key), task);
            return Some(Done { running, next: None });
        }
        Some(Done { running, next: next.map(|at| (at, task)) })
    }

    /// Drops a task under the guard; a recurring one in two pieces.
    pub(crate) fn discard_task(&self, key: Option<TimerKey>, mut task: Task) {
        self.panic_guard.run(&self.counts, key, || task.drop_schedule());
        self.panic_guard.run(&self.counts, key, || drop(task));
    }

    /// Runs code for the caller that drops what it takes out of a timer. A panic is the caller's,
    /// unless another one unwinds the thread already: a second one would end the process, so it is
    /// counted and reported, and the result is `None`.
    #[inline]
    pub(crate) fn run_for_caller<R>(&self, code: impl FnOnce() -> R) -> Option<R> {
        match catch_unwind(AssertUnwindSafe(code)) {
            Ok(result) => Some(result),
            Err(panic) if thread::panicking() => self.panic_guard.end(&self.counts, None, panic),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Runs the caller's code with `value`, which is the caller's too. If the code panics, `value`
    /// is dropped on its own first, and then the panic continues.
    pub(crate) fn with<V, R>(&self, mut value: V, code: impl FnOnce(&mut V) -> R) -> (V, R) {
        match catch_unwind(AssertUnwindSafe(|| code(&mut value))) {
            Ok(result) => (value, result),
            Err(panic) => {
                self.discard(value);
                resume_unwind(panic)
            }
        }
    }

    /// Drops a user's value under the guard.
    pub(crate) fn discard<D>(&self, what: D) {
        self.run_guarded(|| drop(what));
    }

    /// Runs user code that belongs to no timer; `None` if it panics.
    pub(crate) fn run_guarded<R>(&self, code: impl FnOnce() -> R) -> Option<R> {
        self.panic_guard.run(&self.counts, None, code)
    }
}

/// A job's connection to its shard.
pub(crate) struct Outlet {
    pub(crate) handle: Arc<ShardHandle>,
    pub(crate) done: Sender<Returned>,
}

/// A recurring task on its way back from an executor. If the shard ends before its worker receives
/// the task, the task is dropped with this.
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
        if let Some(Done { next: Some((_, task)), .. }) = self.done.take() {
            self.handle.discard_task(None, task);
        }
    }
}

impl Outlet {
    /// Runs a task, unless it was cancelled while it waited for this. A cancel that comes during
    /// the look may meet a callback that is about to begin, as one that has begun.
    pub(crate) fn run(&self, work: Work) -> Option<Done> {
        let begin = self.handle.present_or_later();
        if work.running.is_some() && self.handle.scheduler.is_stopped(work.key.key()) {
            return self.abandon(work);
        }
        let done = self.handle.run(work);
        self.handle.counts.note_callback(self.handle.present_or_later().saturating_sub(begin));
        done
    }

    /// Drops a task that does not run.
    pub(crate) fn abandon(&self, work: Work) -> Option<Done> {
        let Work { task, running, .. } = work;
        self.handle.discard_task(None, task);
        running.map(|running| Done { running, next: None })
    }

    /// Sends a recurring task back to its shard. If the shard has ended, the task is dropped here.
    pub(crate) fn give_back(&self, done: Option<Done>) {
        if done.is_none() {
            return;
        }
        if self.done.send(Returned { done, handle: Arc::clone(&self.handle) }).is_ok() {
            self.handle.waker.wake_by_ref();
        }
    }
}
