//! A shard's worker: moves its clock, runs what is due, sleeps.
//!
//! A worker works in turns. A turn settles the recurring tasks that come back from the executor,
//! moves the shard's clock to the present, and runs what is due, one task after the other and at
//! most [`BUDGET`]. The rest stays due and comes first in the next turn. So a slow callback delays
//! what comes after it, and nothing is lost.
//!
//! While user code runs (a callback, a waker, a drop, an executor, a user's clock), the worker
//! holds no lock and no pin, and the advancer lies in the shard's [slot](super::advancer_slot),
//! where a shutdown finds it. A worker that finds the slot empty afterwards has been shut down, and
//! ends. All user code runs under a guard: a panic in it does not end the worker.
//!
//! One thread at a time runs a worker, and that thread alone writes its fields.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::advancer_slot::{Code, Phase};
use super::executor::{Executor, Job};
use super::key::TimerKey;
use super::pace::Pace;
use super::run::{Done, Outlet, Returned, Work};
use super::shard_handle::ShardHandle;
use super::task::Task;
use super::time::Nanos;
use crate::shard::{Advancer, Due};
use crate::tick::Tick;

/// At most this many timers run in one turn.
const BUDGET: usize = 1024;

/// The longest sleep of an idle shard while memory waits to be given back.
const UNTIL_NEXT_SHARE: Duration = Duration::from_millis(50);

/// How many times in turn a user-defined clock may lag behind the manual clock inside it before the
/// manual clock stops waiting for the worker.
const LAGS_FORGIVEN: u32 = 3;

/// A timer's number, and the number of a shard within the timer.
pub(crate) type ShardNumber = (u64, u32);

pub(crate) struct Worker {
    /// `None` once user code has shut the timer down.
    advancer: Option<Box<Advancer<Task>>>,
    handle: Arc<ShardHandle>,
    number: ShardNumber,
    executor: Option<Arc<dyn Executor>>,
    done: (Sender<Returned>, Receiver<Returned>),
    /// Whether a recurring task was armed for a time that has passed: it runs in the next turn.
    is_behind: bool,
    /// The time at the last turn.
    turned_at: Nanos,
    /// How many times in turn [`note_clock`](Self::note_clock) has found the clock to lag.
    lagged: u32,
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
        Self {
            advancer,
            handle,
            number,
            executor,
            done: channel(),
            is_behind: false,
            turned_at: 0,
            lagged: 0,
            pace,
        }
    }

    pub(crate) fn handle(&self) -> &Arc<ShardHandle> {
        &self.handle
    }

    pub(crate) fn number(&self) -> ShardNumber {
        self.number
    }

    /// Runs what is due, within the budget; true if more may be due.
    pub(crate) fn turn(&mut self) -> bool {
        let Some(mut now) = self.present() else { return false };
        self.pace.end_sleep(now);
        self.turned_at = now;
        self.is_behind = false;
        self.take_back();
        let Some(advancer) = &mut self.advancer else { return false };
        advancer.move_to(self.handle.time.tick_at(now));
        for _ in 0..BUDGET {
            let Some(due) = self.next_due() else {
                // Otherwise a task that an executor has run at once would wait for the next turn.
                self.take_back();
                return self.is_behind;
            };
            now = self.fire(due, now);
        }
        self.end_turn();
        true
    }

    /// Notes whether the clock lags: the last turn was before `now`, the time of the manual clock
    /// that drives the worker. A user-defined clock around a manual one does so if it panics, or
    /// shows another time.
    pub(crate) fn note_clock(&mut self, now: Instant) {
        let turned_at = self.handle.time.instant(self.turned_at);
        let lags = turned_at.is_some_and(|turned_at| turned_at < now);
        self.lagged = if lags { self.lagged.saturating_add(1) } else { 0 };
    }

    /// Whether the clock has lagged several times in turn. A clock that panics once may show the
    /// time when it is read again.
    pub(crate) fn lags(&self) -> bool {
        self.lagged > LAGS_FORGIVEN
    }

    /// Takes out the next task that is due. If there is none, the turn ends.
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
                let deadline = fired.deadline;
                (deadline, Work { key, deadline, task: fired.payload, running: None })
            }
            Due::Recurring(running, task) => {
                let key = TimerKey::recurring(running.key());
                let deadline = running.deadline();
                (deadline, Work { key, deadline, task, running: Some(running) })
            }
        })
    }

    fn end_turn(&mut self) {
        if let Some(advancer) = &mut self.advancer {
            advancer.end_drain();
        }
    }

    /// Runs a task, or passes it to the executor. Returns the time after that.
    fn fire(&mut self, (deadline, work): (Tick, Work), begin: Nanos) -> Nanos {
        self.handle.counts.note_fired(deadline, begin.saturating_sub(self.handle.time.start_of(deadline)));
        let executor = self.executor.clone().filter(|_| work.task.kind().is_callback());
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

    /// The time by the clock; `None` if the worker has been shut down.
    fn present(&mut self) -> Option<Nanos> {
        if self.handle.time.is_users() {
            self.in_user_code(Code::Own, ShardHandle::present)
        } else {
            Some(self.handle.time.now())
        }
    }

    /// Settles the recurring tasks that an executor has run.
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
        if tick == Tick::MAX && self.handle.scheduler.clock() == Tick::MAX - 1 {
            // At the end of time there is no later occurrence.
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

    /// Runs user code while the advancer lies in the slot. If the worker has been shut down, the
    /// code does not run, and the result is `None`.
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

    /// Whether a sweep still has nodes of cancelled timers to free.
    pub(crate) fn is_sweeping(&self) -> bool {
        self.advancer.as_ref().is_some_and(|advancer| advancer.is_sweeping())
    }

    /// Notes that nothing is to be done until the next expiration.
    pub(crate) fn rest(&self) {
        self.handle.counts.note_sleep(self.next_expiration());
    }

    // ---- on a thread of its own ---------------------------------------------------------------

    /// Works until the shard is stopping.
    pub(crate) fn work(mut self) {
        let waker = Waker::from(Arc::clone(&self.handle.parker));
        while !self.handle.is_stopping() {
            if !self.turn() && !self.is_sweeping() {
                self.sleep(&waker);
            }
        }
    }

    /// Sleeps until the next expiration, or until a notification. The parker is cleared before the
    /// look at everything that a notification can be about. So no notification between the look and
    /// the wait is lost, whatever user code runs in between.
    fn sleep(&mut self, waker: &Waker) {
        self.handle.parker.clear();
        // The clear has erased the notification of a job that came back before it.
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

    /// The longest time to sleep before `tick`. Reads the clock, which is user code if the clock is
    /// the user's.
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
    /// Ends the worker. The work that is left is with the advancer, which the shutdown takes from
    /// the slot, unless it has taken it before.
    ///
    /// The executor is dropped last: its drop is user code, and may wait for a thread that waits
    /// for the shutdown.
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
