//! The shards of a pool, and the threads that visit them.
//!
//! All of it is under one lock, which drivers and shutdowns hold for a look at each shard, and
//! never while user code runs. So a driver that blocks in a callback keeps one worker, and any
//! other driver can take the others.

use std::sync::Arc;
use std::time::Duration;

use super::notifier::Notifier;
use crate::clock::unpoisoned;
use crate::sync::{Mutex, MutexGuard, now};
use crate::timer::parker::Parker;
use crate::timer::time::{NEVER, Nanos};

pub(crate) struct Pool<W> {
    pub(crate) notifier: Arc<Notifier>,
    state: Mutex<PoolState<W>>,
    /// Where a shutdown waits. Notified when a thread leaves, and when it ends.
    left: Parker,
}

struct PoolState<W> {
    shards: Box<[Shard<W>]>,
    threads: Box<[Role]>,
    /// Where the next search begins.
    next: usize,
    /// When the leader that sleeps wakes.
    wakes_at: Nanos,
    /// The threads leave.
    is_stopping: bool,
}

struct Shard<W> {
    /// `None` while a thread is at work with it, and at the end.
    worker: Option<W>,
    /// The thread of the pool that is at work with the worker.
    visitor: Option<usize>,
    /// When the next visit is due.
    due: Nanos,
    /// A shutdown has taken the worker's advancer, so no driver visits it any more.
    is_closed: bool,
}

/// What a thread of a pool is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It visits shards, or leads.
    Visitor,
    /// It waits until it is called. The first spare thread is the watchdog.
    Spare,
    /// It ends the workers that are left, and itself.
    Left,
    Ended,
}

/// What a driver does next.
#[derive(Debug)]
pub(crate) enum Step<W> {
    /// It visits this shard, and puts the worker back.
    Visit(usize, W),
    /// It sleeps until that time, or until it is notified.
    Sleep(Nanos),
    /// It leaves: the timer is stopping.
    Leave,
}

impl<W> Pool<W> {
    /// Makes a pool whose first thread leads, and whose other threads are spare.
    pub(crate) fn new(notifier: Arc<Notifier>, workers: impl IntoIterator<Item = W>) -> Arc<Self> {
        let shard = |worker| Shard { worker: Some(worker), visitor: None, due: 0, is_closed: false };
        let role = |(thread, _)| if thread == 0 { Role::Visitor } else { Role::Spare };
        let shards = workers.into_iter().map(shard).collect();
        let threads = notifier.parkers().enumerate().map(role).collect();
        let state = PoolState { shards, threads, next: 0, wakes_at: 0, is_stopping: false };
        notifier.set_watchdog(state.watchdog());
        Arc::new(Self { notifier, state: Mutex::new(state), left: Parker::new() })
    }

    pub(crate) fn shards(&self) -> usize {
        self.state().shards.len()
    }

    // ---- for the threads ----------------------------------------------------------------------

    /// Says what the driver does next. It has worked without a rest since `awake_since`.
    pub(crate) fn next(&self, me: usize, now: Nanos, awake_since: Nanos) -> Step<W> {
        let notifier = &*self.notifier;
        notifier.parker(me).clear();
        let state = &mut *self.state();
        // After the clear, which may have erased the notification of the stop.
        if state.is_stopping {
            state.threads[me] = Role::Left;
            self.left.notify();
            return Step::Leave;
        }
        let is_relief = state.threads[me] == Role::Spare;
        if is_relief {
            let looks_at = self.look(state, me);
            if looks_at > now {
                return Step::Sleep(looks_at);
            }
            state.threads[me] = Role::Visitor;
            self.appoint_watchdog(state, me);
        }
        if notifier.leader() == me || notifier.busy_since().is_some() {
            notifier.lead(me, now);
        }
        let since = if is_relief { 0 } else { awake_since };
        let (ready, first, late) = state.search(notifier, now, since, is_relief);
        match ready {
            Some(shard) => {
                let worker = self.take_from(state, shard, Some(me));
                self.prepare_visit(state, me, now, (first, late));
                state.next = shard + 1;
                Step::Visit(shard, worker.expect("a shard that is ready has its worker"))
            }
            None => self.begin_rest(state, me, first),
        }
    }

    /// Makes sure that other drivers come to the other shards: the first of them is due at `first`,
    /// and so many are late.
    fn prepare_visit(&self, state: &mut PoolState<W>, me: usize, now: Nanos, (first, late): (Nanos, usize)) {
        if self.notifier.leader() != me {
            self.ensure_leader_wakes(state, first);
        } else if first < NEVER {
            // That shard is held up if the visit does not end.
            self.notifier.ensure_look(now.max(first).saturating_add(self.notifier.patience));
        }
        // A driver that comes back late calls one spare thread. One that relieves a driver which
        // has not come back calls as many as are needed: their callbacks may block, too.
        for _ in 0..late {
            let Some(spare) = state.threads.iter().rposition(|&role| role == Role::Spare) else { break };
            state.threads[spare] = Role::Visitor;
            self.notifier.notify(spare);
            self.appoint_watchdog(state, me);
        }
    }

    fn begin_rest(&self, state: &mut PoolState<W>, me: usize, first: Nanos) -> Step<W> {
        if self.notifier.leader() == me {
            self.notifier.rest();
            state.wakes_at = first;
            return Step::Sleep(first);
        }
        self.ensure_leader_wakes(state, first);
        state.threads[me] = Role::Spare;
        self.appoint_watchdog(state, me);
        Step::Sleep(self.look(state, me))
    }

    /// Wakes the leader, which sleeps, if it would sleep for longer than until `first`.
    fn ensure_leader_wakes(&self, state: &PoolState<W>, first: Nanos) {
        if first < state.wakes_at {
            self.notifier.notify(self.notifier.leader());
        }
    }

    /// Makes the first spare thread the watchdog.
    fn appoint_watchdog(&self, state: &PoolState<W>, me: usize) {
        let watchdog = state.watchdog();
        if watchdog != self.notifier.watchdog() {
            self.notifier.set_watchdog(watchdog);
            if watchdog != me {
                self.notifier.notify(watchdog);
            }
        }
    }

    /// Announces when a spare thread looks next, and returns it. If that is no later than now, some
    /// shard is late.
    fn look(&self, state: &PoolState<W>, me: usize) -> Nanos {
        if self.notifier.watchdog() != me {
            return NEVER;
        }
        loop {
            let announced = state.late_at(&self.notifier);
            self.notifier.announce_look(announced);
            // Again: a request that came before the announcement has not seen it.
            if state.late_at(&self.notifier) >= announced {
                return announced;
            }
        }
    }

    /// Notes that a thread that has left runs nothing any more.
    pub(crate) fn note_ended(&self, me: usize) {
        self.state().threads[me] = Role::Ended;
        self.left.notify();
    }

    // ---- workers ------------------------------------------------------------------------------

    /// Takes a shard's worker; for a thread that is not one of the pool.
    pub(crate) fn take(&self, shard: usize) -> Option<W> {
        self.take_from(&mut self.state(), shard, None)
    }

    fn take_from(&self, state: &mut PoolState<W>, number: usize, visitor: Option<usize>) -> Option<W> {
        let shard = &mut state.shards[number];
        let worker = shard.worker.take_if(|_| !shard.is_closed)?;
        shard.visitor = visitor;
        self.notifier.take_request(number);
        Some(worker)
    }

    /// Puts a worker back, whose next visit is due at `due`. Returns it if the pool has been
    /// stopped.
    #[must_use = "the drop of the worker ends it"]
    pub(crate) fn put_back(&self, shard: usize, worker: W, due: Nanos) -> Option<W> {
        let mut state = self.state();
        let is_stopping = state.is_stopping;
        let shard = &mut state.shards[shard];
        (shard.visitor, shard.due) = (None, due);
        if is_stopping { Some(worker) } else { shard.worker.replace(worker) }
    }

    /// The least value that `look` returns for the workers that are not at work. It also learns
    /// whether a visit is requested.
    pub(crate) fn least<R: Ord>(&self, look: impl Fn(&W, bool) -> Option<R>) -> Option<R> {
        let state = self.state();
        let look = |(number, shard): (usize, &Shard<W>)| {
            look(shard.worker.as_ref()?, self.notifier.is_requested(number))
        };
        state.shards.iter().enumerate().filter(|(_, shard)| !shard.is_closed).filter_map(look).min()
    }

    // ---- the end ------------------------------------------------------------------------------

    /// Puts a worker back that no driver visits any more.
    pub(crate) fn put_closed(&self, shard: usize, worker: W) {
        let shard = &mut self.state().shards[shard];
        (shard.worker, shard.is_closed) = (Some(worker), true);
    }

    /// Makes all threads leave. All workers are closed, except for those that threads are at work
    /// with.
    pub(crate) fn stop(&self) {
        self.state().is_stopping = true;
        self.notifier.parkers().for_each(|parker| parker.notify());
    }

    /// Takes a worker that is left, for good. The pool has been stopped.
    pub(crate) fn take_to_end(&self) -> Option<W> {
        self.state().shards.iter_mut().find_map(|shard| shard.worker.take())
    }

    /// Whether a thread has ended. Waits until it has left, and for `grace` after that. Does not
    /// wait for a thread that is at work.
    pub(crate) fn has_ended(&self, thread: usize, grace: Duration) -> bool {
        let begin = now();
        self.left.set_thread();
        loop {
            self.left.clear();
            let state = self.state();
            let is_at_work = state.shards.iter().any(|shard| shard.visitor == Some(thread));
            let limit = match state.threads[thread] {
                _ if is_at_work => return false,
                Role::Ended => return true,
                Role::Left => Some(grace.saturating_sub(now().saturating_duration_since(begin))),
                Role::Visitor | Role::Spare => None,
            };
            drop(state);
            if limit == Some(Duration::ZERO) {
                return false;
            }
            self.left.wait(limit);
        }
    }

    fn state(&self) -> MutexGuard<'_, PoolState<W>> {
        unpoisoned(self.state.lock())
    }
}

impl<W> PoolState<W> {
    /// The shards whose workers are in, from `next` on, and when they are due: at 0 if a visit is
    /// requested.
    fn dues(&self, notifier: &Notifier) -> impl Iterator<Item = (usize, Nanos)> {
        let (before, after) = self.shards.split_at(self.next);
        let after = (self.next..).zip(after);
        after.chain((0..).zip(before)).filter_map(|(number, shard)| {
            let can_be_visited = shard.worker.is_some() && !shard.is_closed;
            can_be_visited.then(|| (number, if notifier.is_requested(number) { 0 } else { shard.due }))
        })
    }

    /// Searches for a shard whose visit is due. Returns it, when the first of the others is due,
    /// and how many of them are late.
    ///
    /// Of the others it looks at those up to the next one that is ready: a look at all of them for
    /// each visit would take too long. A driver that relieves another one looks at `all`. A shard
    /// is late if it has been due for a tick, counted from `since` on at the earliest.
    fn search(
        &self,
        notifier: &Notifier,
        now: Nanos,
        since: Nanos,
        all: bool,
    ) -> (Option<usize>, Nanos, usize) {
        let (mut ready, mut first, mut late) = (None, NEVER, 0);
        for (shard, due) in self.dues(notifier) {
            if due <= now && ready.is_none() {
                ready = Some(shard);
                continue;
            }
            first = first.min(due);
            late += usize::from(due.max(since).saturating_add(notifier.leeway) <= now);
            if due <= now && !all {
                break;
            }
        }
        (ready, first, late)
    }

    /// When a shard is late, if the leader does not come.
    fn late_at(&self, notifier: &Notifier) -> Nanos {
        let [mut first, mut second] = [NEVER; 2];
        for (_, due) in self.dues(notifier) {
            second = second.min(due.max(first));
            first = first.min(due);
        }
        // A leader that sleeps wakes for the first shard; only the second can be held up.
        let held_up = notifier.busy_since().map_or(second, |since| first.max(since));
        held_up.saturating_add(if held_up == NEVER { 0 } else { notifier.patience })
    }

    fn watchdog(&self) -> usize {
        self.threads.iter().position(|&role| role == Role::Spare).unwrap_or(self.threads.len())
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests;
