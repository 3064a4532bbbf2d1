//! A shard's worker: moves its clock, runs what is due, sleeps.
//!
//! It works in turns. A turn takes in the recurring tasks that come back from the executor, moves the shard's clock to
//! the present, and runs what is due, one after the other and [`BUDGET`] at most; what is left stays
//! due and comes first in the next turn. So a slow callback makes what comes after it late, and loses nothing.
//!
//! While user code runs (a callback, a waker, a drop, an executor, a clock of the user's), nothing is held and the
//! advancer lies in the shard's [post](super::advancer_slot), where a `shutdown` finds it. A worker that finds the post empty
//! afterwards has been shut down, and ends. All user code is watched: a panic in it ends nothing.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::Waker;
use std::time::Duration;

use super::advancer_slot::{Code, Phase};
use super::executor::{Executor, Job};
use super::key::TimerKey;
use super::pace::Pace;
use super::run::{Done, Outlet, Returned, Work};
use super::shard_handle::ShardHandle;
use super::task::{Kind, Task};
use super::time::Nanos;
use crate::shard::{Advancer, Due};
use crate::tick::Tick;

/// Timers run in a turn at most.
const BUDGET: usize = 1024;

/// How long an idle shard sleeps at most while memory waits to be given back.
const UNTIL_NEXT_SHARE: Duration = Duration::from_millis(50);

/// A timer's number, and a shard's within it.
pub(crate) type ShardNumber = (u64, u32);

pub(crate) struct Worker {
    /// None once user code has shut the timer down.
    advancer: Option<Box<Advancer<Task>>>,
    handle: Arc<ShardHandle>,
    number: ShardNumber,
    executor: Option<Arc<dyn Executor>>,
    done: (Sender<Returned>, Receiver<Returned>),
    /// Whether a recurring task was armed for a time that has passed: it comes in the next turn.
    is_behind: bool,
    pace: Pace,
}

impl Worker {
    pub(crate) fn new(
        number: ShardNumber,
        advancer: Advancer<Task>,
        handle: Arc<ShardHandle>,
        executor: Option<Arc<dyn Executor>>,
    ) -> Self {
        let (advancer, pace) = (Some(Box::new(advancer)), Pace::default());
        Self { advancer, handle, number, executor, done: channel(), is_behind: false, pace }
    }

    pub(crate) fn handle(&self) -> &Arc<ShardHandle> {
        &self.handle
    }

    pub(crate) fn number(&self) -> ShardNumber {
        self.number
    }

    /// Runs what is due, as far as the budget goes; true if more may be.
    pub(crate) fn turn(&mut self) -> bool {
        let Some(mut now) = self.present() else { return false };
        self.pace.end_sleep(now);
        self.is_behind = false;
        self.take_back();
        let Some(advancer) = &mut self.advancer else { return false };
        advancer.move_to(self.handle.time.tick_at(now));
        for _ in 0..BUDGET {
            let Some(due) = self.next_due() else {
                // What an executor has run at once would otherwise wait for the next turn.
                self.take_back();
                return self.is_behind;
            };
            now = self.fire(due, now);
        }
        self.end_turn();
        true
    }

    /// The next task that is due; the turn is over if there is none.
    fn next_due(&mut self) -> Option<(Tick, Work)> {
        if self.handle.is_stopping() {
            return None;
        }
        let due = self.advancer.as_mut()?.next_due(Task::recurs);
        let Some(due) = due else {
            self.end_turn();
            return None;
        };
        Some(match due {
            Due::Fired(fired) => {
                let key = TimerKey::once(fired.key);
                (fired.deadline, Work { key, task: fired.payload, running: None })
            }
            Due::Recurring(running, task) => {
                let key = TimerKey::recurring(running.key());
                (running.deadline(), Work { key, task, running: Some(running) })
            }
        })
    }

    fn end_turn(&mut self) {
        if let Some(advancer) = &mut self.advancer {
            advancer.end_drain();
        }
    }

    /// Runs a task, or hands it to the executor; returns the time after that.
    fn fire(&mut self, (deadline, work): (Tick, Work), begin: Nanos) -> Nanos {
        self.handle.counts.note_fired(deadline, begin.saturating_sub(self.handle.time.start_of(deadline)));
        let executor = self.executor.clone().filter(|_| work.task.kind() != Kind::Wake);
        let end = match executor {
            Some(executor) => self.hand_over(&*executor, work),
            None => self.run(work),
        };
        let end = end.unwrap_or(begin);
        self.handle.counts.note_callback(end.saturating_sub(begin));
        end
    }

    fn run(&mut self, work: Work) -> Option<Nanos> {
        let (done, end) =
            self.in_user_code(Code::Own, |handle| (handle.run(work), handle.present_or_later()))?;
        self.settle(done);
        Some(end)
    }

    fn hand_over(&mut self, executor: &dyn Executor, work: Work) -> Option<Nanos> {
        let key = work.key;
        let outlet = Outlet { handle: Arc::clone(&self.handle), done: self.done.0.clone() };
        let job = Job::new(work, outlet);
        self.in_user_code(Code::Executor, |handle| {
            handle.panic_guard.run(&handle.counts, Some(key), || executor.execute(job));
            handle.present_or_later()
        })
    }

    /// The time by the clock; none if the worker has been shut down.
    fn present(&mut self) -> Option<Nanos> {
        if self.handle.time.is_users() {
            self.in_user_code(Code::Own, ShardHandle::present)
        } else {
            Some(self.handle.time.now())
        }
    }

    /// Takes in the recurring tasks that have run elsewhere.
    fn take_back(&mut self) {
        while let Ok(returned) = self.done.1.try_recv() {
            self.settle(returned.receive());
        }
    }

    /// Arms a recurring task anew, or ends it.
    fn settle(&mut self, done: Option<Done>) {
        let Some(Done { running, next }) = done else { return };
        let Some(advancer) = &mut self.advancer else {
            self.handle.discard(next);
            return;
        };
        let Some((at, task)) = next else { return advancer.end_running(running) };
        let tick = self.handle.time.tick_for(at);
        if tick == Tick::MAX && self.handle.scheduler.now() == Tick::MAX {
            // At the end of time no later occurrence comes.
            advancer.end_running(running);
            self.in_user_code(Code::Own, |handle| handle.discard(task));
            return;
        }
        self.is_behind |= tick <= self.handle.scheduler.now();
        let stopped = advancer.rearm(running, tick, task).err();
        if let Some(task) = stopped {
            self.in_user_code(Code::Own, |handle| handle.discard(task));
        }
    }

    /// Runs user code, the advancer in the post. None, and the code does not run, if the worker has been shut down.
    fn in_user_code<R>(&mut self, what: Code, code: impl FnOnce(&ShardHandle) -> R) -> Option<R> {
        self.handle.advancer_slot.put(self.advancer.take()?, what);
        let result = code(&self.handle);
        self.advancer = self.handle.advancer_slot.take();
        Some(result)
    }

    /// When to take the next turn.
    pub(crate) fn next_expiration(&self) -> Option<Tick> {
        self.advancer.as_ref()?.next_expiration()
    }

    /// Whether nodes of cancelled timers are still to be given back.
    pub(crate) fn is_sweeping(&self) -> bool {
        self.advancer.as_ref().is_some_and(|advancer| advancer.is_sweeping())
    }

    /// Notes that there is nothing to do until the next expiration.
    pub(crate) fn rest(&self) {
        self.handle.counts.note_sleep(self.next_expiration());
    }

    // ---- on a thread of its own -------------------------------------------------------------------

    /// Works until told to stop.
    pub(crate) fn work(mut self) {
        let waker = Waker::from(Arc::clone(&self.handle.parker));
        while !self.handle.is_stopping() {
            if !self.turn() && !self.is_sweeping() {
                self.sleep(&waker);
            }
        }
    }

    /// Sleeps until the next expiration, or until something needs attention before. The bell is cleared before the look
    /// at all that it can ring for, so nothing is missed between the look and the wait, whatever runs there.
    fn sleep(&mut self, waker: &Waker) {
        self.handle.parker.clear();
        // A job that came back before the clear has notified in vain.
        self.take_back();
        if self.is_behind {
            return;
        }
        let Some(advancer) = self.advancer.as_mut().filter(|_| !self.handle.is_stopping()) else { return };
        advancer.register_waker(waker);
        let next = advancer.next_expiration();
        self.handle.counts.note_sleep(next);
        let left = next.map(|next| self.time_until(next));
        let Some(advancer) = &mut self.advancer else { return };
        if advancer.needs_maintenance() && left.is_none_or(|left| left > UNTIL_NEXT_SHARE) {
            self.handle.parker.wait(Some(UNTIL_NEXT_SHARE));
            advancer.maintain();
        } else {
            self.handle.parker.wait(left);
        }
    }

    /// For how long to sleep, at most, until that tick. The clock of the user's is read, which is user code.
    fn time_until(&mut self, tick: Tick) -> Duration {
        let due = self.handle.time.start_of(tick);
        let Some(now) = self.present() else { return Duration::ZERO };
        if self.handle.time.is_users() {
            self.pace.begin_sleep(now, due, self.handle.time.tick())
        } else {
            Duration::from_nanos(due.saturating_sub(now))
        }
    }
}

impl Drop for Worker {
    /// Ends: what is left to be done is with the advancer, which is left to the shutdown, unless that has taken it.
    ///
    /// The executor goes last: its drop is the user's, and may wait for a thread that waits for the shutdown.
    fn drop(&mut self) {
        self.take_back();
        if let Some(advancer) = self.advancer.take() {
            self.handle.advancer_slot.put(advancer, Code::Own);
        }
        self.handle.advancer_slot.enter(Phase::Left);
        self.handle.discard(self.executor.take());
        self.handle.advancer_slot.enter(Phase::Ended);
    }
}
