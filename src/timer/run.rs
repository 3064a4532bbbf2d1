//! Runs what is due: on the driver's thread, or as a job on an executor. Catches the panics of all
//! user code.
//!
//! The thread that runs a task owns it. A recurring task goes back to its shard's worker, which
//! arms it anew: directly, or through the shard's handle if an executor ran it.
//!
//! All user code runs under [`guard`](ShardHandle::guard): a panic in it is caught, counted and
//! reported, and goes no further. Two user values are dropped under two guards: a second panic
//! while the first unwinds would end the process.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;

use super::inline::{Occasion, Run};
use super::key::TimerKey;
use super::shard_handle::ShardHandle;
use super::task::Task;
use super::time::Nanos;
use crate::clock::unpoisoned;
use crate::shard::RearmTicket;
use crate::sync::Ordering;
use crate::tick::Tick;
use crate::unwind::{DropQuietly, Payload, drop_quietly, quietly};

/// Describes a panic to the hook given to
/// [`TimerBuilder::on_panic`](crate::TimerBuilder::on_panic).
pub struct CallbackPanic<'a> {
    key: Option<TimerKey>,
    payload: &'a (dyn Any + Send),
}

impl CallbackPanic<'_> {
    /// Returns the timer whose callback, schedule or call of
    /// [`Executor::execute`](crate::Executor::execute) panicked.
    ///
    /// `None` for a panic in a waker or its drop, in the timer's clock, in the drop of an executor,
    /// or in the drop of a callback, schedule or value. One drop has the key all the same: the drop
    /// of a recurring timer's callback and schedule after the schedule has ended the timer.
    #[must_use]
    pub fn key(&self) -> Option<TimerKey> {
        self.key
    }

    /// Returns the panic's payload.
    #[must_use]
    pub fn payload(&self) -> &(dyn Any + Send) {
        self.payload
    }

    /// Returns the message, if the payload is a string, as with `panic!`.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        let text = self.payload.downcast_ref::<&'static str>().copied();
        text.or_else(|| self.payload.downcast_ref::<String>().map(String::as_str))
    }
}

impl fmt::Debug for CallbackPanic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackPanic").field("key", &self.key).field("message", &self.message()).finish()
    }
}

/// A user's function that is called for each panic.
pub(crate) type Hook = DropQuietly<Arc<dyn Fn(&CallbackPanic<'_>) + Send + Sync>>;

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
        self.guard(named, || task.run(occasion));
        // A task that runs once holds no user value any more.
        let running = running?;
        let now = self.present_instant();
        let next = || task.callback_mut()?.next(deadline, &self.time, now);
        let Some(at) = self.guard(Some(key), next).flatten() else {
            self.discard_task(Some(key), task);
            return Some(Done { running, next: None });
        };
        Some(Done { running, next: Some((at, task)) })
    }

    /// Runs a task as a job, unless it was cancelled while it waited for this. A cancel that comes
    /// during the look may meet a callback that is about to begin, as one that has begun.
    pub(super) fn run_job(&self, work: Work) -> Option<Done> {
        let begin = self.present_or_later();
        if work.running.is_some() && self.scheduler.is_stopped(work.key.key()) {
            return self.abandon(work);
        }
        let done = self.run(work);
        self.counts.note_callback(self.present_or_later().saturating_sub(begin));
        done
    }

    /// Drops a task that does not run.
    pub(super) fn abandon(&self, work: Work) -> Option<Done> {
        self.discard_task(None, work.task);
        work.running.map(|running| Done { running, next: None })
    }

    /// Sends a recurring task back from an executor. If its worker has ended, it is dropped here.
    pub(super) fn give_back(&self, mut done: Option<Done>) {
        if done.is_none() {
            return;
        }
        if let Some(returned) = &mut *unpoisoned(self.returned.lock()) {
            returned.extend(done.take());
        }
        match done {
            None => self.waker.wake_by_ref(),
            Some(done) => self.discard_done(done),
        }
    }

    /// Drops a recurring task whose worker has ended.
    pub(super) fn discard_done(&self, done: Done) {
        done.next.into_iter().for_each(|(_, task)| self.discard_task(None, task));
    }

    /// Drops a task under the guard; a recurring one in two pieces.
    pub(crate) fn discard_task(&self, key: Option<TimerKey>, mut task: Task) {
        self.guard(key, || task.callback_mut().map(Run::drop_schedule));
        self.guard(key, || drop(task));
    }

    /// Runs code for the caller that drops what it takes out of a timer. A panic is the caller's,
    /// unless another one unwinds the thread already: a second one would end the process, so it is
    /// counted and reported, and the result is `None`.
    #[inline]
    pub(crate) fn run_for_caller<R>(&self, code: impl FnOnce() -> R) -> Option<R> {
        if thread::panicking() { self.guard(None, code) } else { Some(code()) }
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
        self.guard(None, || drop(what));
    }

    /// Runs user code of the timer `key`, or of none; `None` if it panics.
    #[inline]
    pub(crate) fn guard<R>(&self, key: Option<TimerKey>, code: impl FnOnce() -> R) -> Option<R> {
        match catch_unwind(AssertUnwindSafe(code)) {
            Ok(result) => Some(result),
            Err(payload) => self.end_panic(key, payload),
        }
    }

    /// Counts and reports a panic.
    ///
    /// The hook may panic too, and so may the drop of either panic's payload. Each is caught on its
    /// own: a drop that panics while another panic unwinds would end the process.
    #[cold]
    fn end_panic<R>(&self, key: Option<TimerKey>, payload: Payload) -> Option<R> {
        // Ordering: Relaxed, a count.
        self.counts.panics.fetch_add(1, Ordering::Relaxed);
        if let Some(hook) = &self.hook {
            quietly(|| hook(&CallbackPanic { key, payload: &*payload }));
        }
        drop_quietly(payload);
        None
    }
}
