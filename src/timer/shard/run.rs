//! Runs what is due: on the driver's thread, or as a job on an executor.
//!
//! The thread that runs a task owns it. A recurring task goes back to its shard's worker, which
//! arms it anew: directly, or through the shard's handle if an executor ran it.
//!
//! All user code runs under the shard's [`PanicGuard`](crate::timer::guard::PanicGuard).

use super::handle::ShardHandle;
use crate::clock::unpoisoned;
use crate::shard::Due;
use crate::tick::Tick;
use crate::timer::key::TimerKey;
use crate::timer::task::{RanTask, RunContext, Task};

impl ShardHandle {
    /// The circumstances in which the shard's task `key` runs.
    pub(in crate::timer) fn context(&self, key: TimerKey, deadline: Tick) -> RunContext<'_> {
        let Self { time, guard, .. } = self;
        RunContext { key, deadline, time, guard, reached: self.scheduler.reached() }
    }

    /// Runs a task once. Returns what is left of a recurring task.
    ///
    /// Each piece of user code has its own guard: the callback, the clock, the schedule, and the
    /// drop of the task.
    pub(crate) fn run(&self, due: Due<Task>) -> Option<RanTask> {
        let key = due.timer_key();
        let Due { deadline, payload: mut task, ticket, .. } = due;
        let named = task.kind().is_callback().then_some(key);
        self.guard.run(named, || task.run(|| self.context(key, deadline)));
        // A task that runs once holds no user value any more.
        let ticket = ticket?;
        let now = self.present_instant();
        let next = || task.callback_mut()?.next(deadline, &self.time, now);
        let Some(at) = self.guard.run(Some(key), next).flatten() else {
            task.discard(&self.guard, Some(key));
            return Some(RanTask { ticket, next: None });
        };
        Some(RanTask { ticket, next: Some((at, task)) })
    }

    /// Runs a task as a job, unless it was cancelled while it waited for this. A cancel that comes
    /// during the look may meet a callback that is about to begin, as one that has begun.
    pub(in crate::timer) fn run_job(&self, due: Due<Task>) -> Option<RanTask> {
        let begin = self.present_or_later();
        if due.ticket.is_some() && self.scheduler.is_stopped(due.key) {
            return self.abandon(due);
        }
        let done = self.run(due);
        self.counts.note_callback(self.present_or_later().saturating_sub(begin));
        done
    }

    /// Drops a task that does not run.
    pub(in crate::timer) fn abandon(&self, due: Due<Task>) -> Option<RanTask> {
        due.payload.discard(&self.guard, None);
        due.ticket.map(|ticket| RanTask { ticket, next: None })
    }

    /// Sends a recurring task back from an executor. If its worker has ended, it is dropped here.
    pub(in crate::timer) fn send_back(&self, mut done: Option<RanTask>) {
        if done.is_none() {
            return;
        }
        if let Some(returned) = &mut *unpoisoned(self.returned.lock()) {
            returned.extend(done.take());
        }
        match done {
            None => self.waker.wake_by_ref(),
            Some(done) => self.discard_ran(done),
        }
    }

    /// Drops a recurring task whose worker has ended.
    pub(in crate::timer) fn discard_ran(&self, done: RanTask) {
        done.next.into_iter().for_each(|(_, task)| task.discard(&self.guard, None));
    }
}
