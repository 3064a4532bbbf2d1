//! A shard's worker: moves the shard's clock and runs what is due.
//!
//! A worker works in turns. A turn settles the recurring tasks that come back from the executor,
//! moves the shard's clock to the present, and runs what is due, one task after the other and at
//! most [`BUDGET`]. The rest stays due and comes first in the next turn. So a slow callback delays
//! what comes after it, and nothing is lost.
//!
//! While user code runs (a callback, a waker, a drop, an executor, a user's clock), the worker
//! holds no lock and no pin, and the advancer lies in the shard's [slot](crate::timer::shard),
//! where a shutdown finds it. A worker that finds the slot empty afterwards has been shut down. All
//! user code runs under a guard: a panic in it does not end the worker.
//!
//! One thread at a time runs a worker, and that thread alone writes its fields: a driver (see
//! [`threads`](crate::timer::threads)), or the thread that moves a manual clock.

use std::sync::Arc;

use super::pace::Pace;
use crate::clock::unpoisoned;
use crate::shard::{Advancer, Due};
use crate::tick::Tick;
use crate::time::{Duration, Instant};
use crate::timer::shard::{Executor, Job, ShardHandle};
use crate::timer::task::{RanTask, Task};
use crate::timer::time::{NEVER, Nanos};

/// At most this many timers run in one turn.
const BUDGET: usize = 1024;

/// A shard that would sleep for longer than this gives memory back first, if some waits for that.
const UNTIL_NEXT_SHARE: Nanos = 50_000_000;

/// The time between two shares of that memory, each a sixteenth: after 74 of them, less than a
/// second, a hundredth is left.
const BETWEEN_SHARES: Nanos = 10_000_000;

/// How many times in turn a user-defined clock may lag behind the manual clock inside it before the
/// manual clock stops waiting for the worker.
const LAGS_FORGIVEN: u32 = 3;

/// For how many tasks that come back from an executor the shard keeps memory.
const ROOM_FOR_RETURNED: usize = 64;

pub(crate) struct Worker {
    /// `None` once user code has shut the timer down.
    advancer: Option<Box<Advancer<Task>>>,
    pub(in crate::timer) handle: Arc<ShardHandle>,
    /// The timer's number, and that of the shard within the timer.
    pub(in crate::timer) number: (u64, usize),
    executor: Option<Arc<dyn Executor>>,
    /// Whether more was due than the last turn has run, or a recurring task was armed for a time
    /// that has passed. The next turn runs it.
    is_behind: bool,
    /// How many timers it has fired.
    fired: usize,
    /// The time at the last turn.
    pub(crate) turned_at: Nanos,
    /// How many times in turn [`note_clock`](Self::note_clock) has found the clock to lag.
    lagged: u32,
    pace: Pace,
    /// Whether memory waits to be given back at the next visit.
    owes_maintenance: bool,
}

impl Worker {
    pub(crate) fn new(
        number: (u64, usize),
        advancer: Advancer<Task>,
        handle: Arc<ShardHandle>,
        executor: Option<Arc<dyn Executor>>,
    ) -> Self {
        Self {
            advancer: Some(Box::new(advancer)),
            handle,
            number,
            executor,
            is_behind: false,
            fired: 0,
            turned_at: 0,
            lagged: 0,
            pace: Pace::default(),
            owes_maintenance: false,
        }
    }

    /// Runs what is due, within the budget; true if more may be due.
    pub(crate) fn turn(&mut self) -> bool {
        let Some(mut now) = self.present() else { return false };
        self.pace.end_sleep(now);
        self.turned_at = now;
        self.is_behind = false;
        self.receive_returned();
        let Some(advancer) = &mut self.advancer else { return false };
        advancer.move_to(self.handle.time.tick_at(now));
        for _ in 0..BUDGET {
            let Some(due) = self.next_due() else {
                // Otherwise a task that an executor has run at once would wait for the next turn.
                self.receive_returned();
                if !self.is_behind {
                    // What comes next is known when it is asked for, which a loop need not do.
                    self.handle.counts.note_sleep(None);
                }
                return self.is_behind;
            };
            now = self.fire(due, now);
        }
        self.advancer.iter_mut().for_each(|advancer| advancer.end_drain());
        self.is_behind = true;
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

    /// Takes out the next task that is due. If there is none, the drain ends.
    fn next_due(&mut self) -> Option<Due<Task>> {
        if self.handle.is_stopping() {
            return None;
        }
        let advancer = self.advancer.as_mut()?;
        let due = advancer.take_due(Task::recurs);
        if due.is_none() {
            advancer.end_drain();
        }
        due
    }

    /// Runs a task, or passes it to the executor. Returns the time after that.
    fn fire(&mut self, due: Due<Task>, begin: Nanos) -> Nanos {
        self.fired += 1;
        let late = begin.saturating_sub(self.handle.time.start_of(due.deadline));
        self.handle.counts.note_fired(due.deadline, late);
        let executor = self.executor.clone().filter(|_| due.payload.kind().is_callback());
        let ran = match executor {
            Some(executor) => self.hand_over(&*executor, due),
            None => self.in_user_code(|handle| (handle.run(due), handle.present_or_later())),
        };
        let (done, end) = ran.unwrap_or((None, begin));
        self.rearm(done);
        self.handle.counts.note_callback(end.saturating_sub(begin));
        end
    }

    fn hand_over(&mut self, executor: &dyn Executor, due: Due<Task>) -> Option<(Option<RanTask>, Nanos)> {
        let key = due.timer_key();
        let job = Job { due: Some(due), handle: Arc::clone(&self.handle) };
        self.handle.advancer_slot.note_executor(true);
        let end = self.in_user_code(|handle| {
            handle.guard.run(Some(key), || executor.execute(job));
            (None, handle.present_or_later())
        });
        self.handle.advancer_slot.note_executor(false);
        end
    }

    /// The time by the clock; `None` if the worker has been shut down.
    fn present(&mut self) -> Option<Nanos> {
        let is_users = self.handle.time.is_users();
        if is_users { self.in_user_code(ShardHandle::present) } else { Some(self.handle.present()) }
    }

    /// Settles the recurring tasks that an executor has run.
    fn receive_returned(&mut self) {
        if self.executor.is_none() {
            return;
        }
        let next = |handle: &ShardHandle| {
            let mut returned = unpoisoned(handle.returned.lock());
            let returned = returned.as_mut()?;
            let done = returned.pop_front();
            if done.is_none() {
                returned.shrink_to(ROOM_FOR_RETURNED);
            }
            done
        };
        while let Some(done) = next(&self.handle) {
            self.rearm(Some(done));
        }
    }

    /// Arms a recurring task anew, or ends it.
    fn rearm(&mut self, done: Option<RanTask>) {
        let Some(done) = done else { return };
        let Some(advancer) = &mut self.advancer else { return self.handle.discard_ran(done) };
        let RanTask { ticket, next } = done;
        let Some((at, task)) = next else { return advancer.end_running(ticket) };
        let tick = self.handle.time.tick_for(at);
        let stopped = if tick == Tick::MAX && self.handle.scheduler.reached() == Tick::MAX - 1 {
            // At the end of time there is no later occurrence.
            advancer.end_running(ticket);
            Some(task)
        } else {
            self.is_behind |= tick <= self.handle.scheduler.now();
            advancer.rearm(ticket, tick, task).err()
        };
        if let Some(task) = stopped {
            self.in_user_code(|handle| task.discard(&handle.guard, None));
        }
    }

    /// Runs user code while the advancer lies in the slot. If the worker has been shut down, the
    /// code does not run, and the result is `None`.
    fn in_user_code<R>(&mut self, code: impl FnOnce(&ShardHandle) -> R) -> Option<R> {
        self.handle.advancer_slot.put(self.advancer.take()?);
        let result = code(&self.handle);
        self.advancer = self.handle.advancer_slot.take();
        Some(result)
    }

    /// Whether all that is pending are recurring timers that an executor has.
    pub(crate) fn awaits_executor(&self) -> bool {
        let scheduler = &self.handle.scheduler;
        self.next_expiration().is_none() && !scheduler.is_empty() && !self.handle.is_stopping()
    }

    /// When to take the next turn.
    pub(crate) fn next_expiration(&self) -> Option<Tick> {
        self.advancer.as_ref()?.begin_sleep().0
    }

    /// Whether a sweep still has nodes of cancelled timers to free.
    pub(crate) fn is_sweeping(&self) -> bool {
        self.advancer.as_ref().is_some_and(|advancer| advancer.is_sweeping())
    }

    /// Notes that nothing is to be done until the next expiration.
    pub(crate) fn rest(&self) {
        self.handle.counts.note_sleep(self.next_expiration());
    }

    // ---- for a driver -------------------------------------------------------------------------

    /// Runs what is due, within the budget. Returns how many timers have fired. The request for the
    /// visit has been cleared: one from now on is about the next visit.
    pub(crate) fn visit(&mut self) -> usize {
        if std::mem::take(&mut self.owes_maintenance)
            && let Some(advancer) = &mut self.advancer
        {
            advancer.maintain();
        }
        self.fired = 0;
        self.turn();
        self.fired
    }

    /// When the next visit has something to do, by the timer's time. An earlier timer requests a
    /// visit from now on, as does a job that comes back.
    pub(crate) fn next_visit(&mut self) -> Nanos {
        self.receive_returned();
        if self.is_behind || self.is_sweeping() {
            return self.turned_at;
        }
        let Some(advancer) = self.advancer.as_mut().filter(|_| !self.handle.is_stopping()) else {
            return NEVER;
        };
        // The advancer announces the tick.
        advancer.register_waker(&self.handle.waker);
        // Does not wake: this call has the worker, and a user's waker may run any code.
        let (next, owes_sweep) = advancer.begin_sleep();
        if owes_sweep {
            return self.turned_at;
        }
        self.handle.counts.note_sleep(next);
        let due = next.map_or(NEVER, |tick| self.handle.time.start_of(tick));
        let rest = due.saturating_sub(self.turned_at);
        self.owes_maintenance = rest > UNTIL_NEXT_SHARE && advancer.needs_maintenance();
        if self.owes_maintenance { self.turned_at.saturating_add(BETWEEN_SHARES) } else { due }
    }

    /// For how long to sleep before the next visit, which is at `due`, if the clock is the user's.
    pub(crate) fn pace_to(&mut self, due: Nanos) -> Option<Duration> {
        if due == NEVER || !self.handle.time.is_users() {
            return None;
        }
        if due <= self.turned_at {
            return Some(Duration::ZERO);
        }
        let now = self.present()?;
        Some(self.pace.begin_sleep(now, due, self.handle.time.tick()))
    }

    /// Takes the steps of the epoch that are owed. A loop would have to come back for them alone.
    pub(crate) fn help(&mut self) {
        self.advancer.iter_mut().for_each(|advancer| advancer.help());
    }

    /// Takes the advancer, which ends the work; for a shutdown.
    pub(crate) fn close(&mut self) -> Option<Box<Advancer<Task>>> {
        self.receive_returned();
        self.advancer.take()
    }
}

impl Drop for Worker {
    /// Ends the worker, whose advancer a shutdown has taken. The drops of what an executor has
    /// returned and of the executor are user code.
    fn drop(&mut self) {
        let returned = unpoisoned(self.handle.returned.lock()).take();
        returned.into_iter().flatten().for_each(|done| self.handle.discard_ran(done));
        self.handle.guard.discard(self.executor.take());
    }
}
