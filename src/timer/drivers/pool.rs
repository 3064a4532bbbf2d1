//! The shards of a pool, and the threads that visit them.
//!
//! All of it is under one lock, which drivers and shutdowns hold for a look at each shard, and
//! never while user code runs. So a driver that blocks in a callback keeps one worker, and any
//! other driver can take the others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::notifier::Notifier;
use super::{NEVER, Nanos};
use crate::clock::unpoisoned;
use crate::sync::{Mutex, MutexGuard};
use crate::timer::changes::Changes;

pub(crate) struct Pool<W> {
    pub(crate) notifier: Arc<Notifier>,
    state: Mutex<PoolState<W>>,
    /// Changes when a thread leaves, and when it ends.
    left: Changes,
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
    Driver,
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

/// What a search for a shard to visit has found.
struct Found {
    ready: Option<usize>,
    /// When the first of the other shards is due, or another one that is ready.
    first: Nanos,
    /// How many of the others are late.
    late: usize,
}

impl<W> Pool<W> {
    /// Makes a pool whose first thread leads, and whose other threads are spare.
    pub(crate) fn new(notifier: Arc<Notifier>, workers: impl IntoIterator<Item = W>) -> Arc<Self> {
        let shard = |worker| Shard { worker: Some(worker), visitor: None, due: 0, is_closed: false };
        let role = |(thread, _)| if thread == 0 { Role::Driver } else { Role::Spare };
        let shards = workers.into_iter().map(shard).collect();
        let threads = notifier.parkers().enumerate().map(role).collect();
        let state = PoolState { shards, threads, next: 0, wakes_at: 0, is_stopping: false };
        notifier.set_watchdog(state.watchdog());
        Arc::new(Self { notifier, state: Mutex::new(state), left: Changes::new() })
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
            self.left.note();
            return Step::Leave;
        }
        let is_relief = state.threads[me] == Role::Spare;
        if is_relief {
            let looks_at = self.look(state, me);
            if looks_at > now {
                return Step::Sleep(looks_at);
            }
            state.threads[me] = Role::Driver;
            self.appoint_watchdog(state, me);
        }
        if notifier.leader() == me || notifier.busy_since().is_some() {
            notifier.lead(me, now);
        }
        let since = if is_relief { 0 } else { awake_since };
        let found = state.search(notifier, now, since, is_relief);
        match found.ready {
            Some(shard) => self.begin_visit(state, (me, shard), now, &found),
            None => self.begin_rest(state, me, found.first),
        }
    }

    fn begin_visit(
        &self,
        state: &mut PoolState<W>,
        (me, shard): (usize, usize),
        now: Nanos,
        found: &Found,
    ) -> Step<W> {
        let worker = self.take_from(state, shard, Some(me)).expect("a shard that is ready has its worker");
        state.next = shard + 1;
        if self.notifier.leader() != me {
            self.ensure_leader_wakes(state, found.first);
        } else if found.first < NEVER {
            // That shard is held up if the visit does not end.
            self.notifier.ensure_look(now.max(found.first).saturating_add(self.notifier.limits.patience));
        }
        // A driver that comes back late calls one spare thread. One that relieves a driver which
        // has not come back calls as many as are needed: their callbacks may block, too.
        if (0..found.late).take_while(|_| self.call_spare(state)).count() > 0 {
            self.appoint_watchdog(state, me);
        }
        Step::Visit(shard, worker)
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
            self.notifier.parker(self.notifier.leader()).notify();
        }
    }

    /// Makes the last spare thread a driver. False if there is none.
    fn call_spare(&self, state: &mut PoolState<W>) -> bool {
        let spare = state.threads.iter().rposition(|&role| role == Role::Spare);
        if let Some(spare) = spare {
            state.threads[spare] = Role::Driver;
            self.notifier.parker(spare).notify();
        }
        spare.is_some()
    }

    /// Makes the first spare thread the watchdog.
    fn appoint_watchdog(&self, state: &PoolState<W>, me: usize) {
        let watchdog = state.watchdog();
        if watchdog != self.notifier.watchdog() {
            self.notifier.set_watchdog(watchdog);
            let other = watchdog.filter(|&watchdog| watchdog != me);
            other.into_iter().for_each(|watchdog| self.notifier.parker(watchdog).notify());
        }
    }

    /// Announces when a spare thread looks next, and returns it. If that is no later than now, some
    /// shard is late.
    fn look(&self, state: &PoolState<W>, me: usize) -> Nanos {
        if self.notifier.watchdog() != Some(me) {
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
        self.left.note();
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
        let begin = Instant::now();
        loop {
            let seen = self.left.look();
            let limit = match self.role(thread) {
                Some(Role::Ended) => return true,
                Some(Role::Left) => Some(grace.saturating_sub(begin.elapsed())),
                Some(_) => None,
                None => return false,
            };
            if limit == Some(Duration::ZERO) {
                return false;
            }
            self.left.wait(seen, limit);
        }
    }

    /// `None` if the thread is at work.
    fn role(&self, thread: usize) -> Option<Role> {
        let state = self.state();
        let is_at_work = state.shards.iter().any(|shard| shard.visitor == Some(thread));
        (!is_at_work).then(|| state.threads[thread])
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

    /// Searches for a shard whose visit is due, and among the others, up to the next one that is
    /// ready: a look at all of them for each visit would take too long. A driver that relieves
    /// another one looks at `all`. A shard is late if it has been due for a tick, counted from
    /// `since` on at the earliest.
    fn search(&self, notifier: &Notifier, now: Nanos, since: Nanos, all: bool) -> Found {
        let mut found = Found { ready: None, first: NEVER, late: 0 };
        for (shard, due) in self.dues(notifier) {
            if due <= now && found.ready.is_none() {
                found.ready = Some(shard);
                continue;
            }
            found.first = found.first.min(due);
            found.late += usize::from(due.max(since).saturating_add(notifier.limits.slack) <= now);
            if due <= now && !all {
                break;
            }
        }
        found
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
        held_up.saturating_add(if held_up == NEVER { 0 } else { notifier.limits.patience })
    }

    fn watchdog(&self) -> Option<usize> {
        self.threads.iter().position(|&role| role == Role::Spare)
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use super::super::Limits;
    use super::*;

    const MILLIS: Nanos = 1_000_000;
    const LIMITS: Limits = Limits { patience: 9 * MILLIS, slack: MILLIS };

    /// A pool with a thread for each shard; the shards are due at these times.
    fn pool<const SHARDS: usize>(dues: [Nanos; SHARDS]) -> Arc<Pool<()>> {
        let pool = Pool::new(Notifier::new(SHARDS, SHARDS, LIMITS), [(); SHARDS]);
        for (shard, due) in dues.into_iter().enumerate() {
            pool.take(shard).expect("it is in");
            assert!(pool.put_back(shard, (), due).is_none());
        }
        pool
    }

    /// What the driver does, which has just been woken: the shard that it visits, or until when it
    /// sleeps.
    fn wakes(pool: &Pool<()>, driver: usize, now: Nanos) -> Result<usize, Nanos> {
        goes_on(pool, driver, now, now)
    }

    fn goes_on(pool: &Pool<()>, driver: usize, now: Nanos, awake_since: Nanos) -> Result<usize, Nanos> {
        match pool.next(driver, now, awake_since) {
            Step::Visit(shard, ()) => Ok(shard),
            Step::Sleep(until) => Err(until),
            Step::Leave => unreachable!("it is not stopped"),
        }
    }

    /// The driver comes back from a shard, which is due again at `due`.
    fn comes_back(pool: &Pool<()>, shard: usize, due: Nanos) {
        assert!(pool.put_back(shard, (), due).is_none());
    }

    #[test]
    fn the_leader_visits_all_shards_of_a_tick() {
        let pool = pool([5 * MILLIS; 4]);
        assert_eq!(wakes(&pool, 0, MILLIS), Err(5 * MILLIS));
        for shard in 0..4 {
            let now = 5 * MILLIS + shard as Nanos * MILLIS / 4;
            assert_eq!(goes_on(&pool, 0, now, 5 * MILLIS), Ok(shard));
            comes_back(&pool, shard, 6 * MILLIS);
        }
        assert_eq!(wakes(&pool, 0, 6 * MILLIS - 1), Err(6 * MILLIS));
        assert_eq!(
            [2, 3].map(|spare| wakes(&pool, spare, 6 * MILLIS)),
            [Err(NEVER); 2],
            "no thread is called"
        );
    }

    #[test]
    fn a_leader_that_leaves_shards_a_tick_late_calls_one_thread() {
        let pool = pool([5 * MILLIS; 4]);
        assert_eq!(wakes(&pool, 0, 7 * MILLIS), Ok(0), "it was woken late, and has not worked for a tick");
        comes_back(&pool, 0, NEVER);
        assert_eq!(wakes(&pool, 3, 7 * MILLIS), Err(NEVER));
        assert_eq!(goes_on(&pool, 0, 8 * MILLIS, 7 * MILLIS), Ok(1));
        assert_eq!((wakes(&pool, 2, 8 * MILLIS), wakes(&pool, 3, 8 * MILLIS)), (Err(NEVER), Ok(2)));
        comes_back(&pool, 2, 9 * MILLIS);
        comes_back(&pool, 1, 9 * MILLIS);
        assert_eq!(goes_on(&pool, 0, 8 * MILLIS, 7 * MILLIS), Ok(3));
        assert_eq!(wakes(&pool, 3, 8 * MILLIS), Err(9 * MILLIS), "the leader is in a visit: this one leads");
        comes_back(&pool, 3, 9 * MILLIS);
        assert_eq!(wakes(&pool, 0, 8 * MILLIS), Err(18 * MILLIS), "it is the watchdog");
    }

    #[test]
    fn a_leader_that_sleeps_is_late_for_its_second_shard() {
        let pool = pool([5 * MILLIS, 7 * MILLIS, NEVER]);
        assert_eq!(wakes(&pool, 1, 0), Err(16 * MILLIS));
        assert_eq!(wakes(&pool, 2, 0), Err(NEVER), "the first spare thread is the watchdog");
        pool.notifier.request(2);
        assert_eq!(wakes(&pool, 1, 0), Err(14 * MILLIS));
    }

    #[test]
    fn one_shard_with_timers_needs_no_watchdog() {
        let pool = pool([5 * MILLIS, NEVER]);
        assert_eq!(wakes(&pool, 1, 0), Err(NEVER));
        assert_eq!(wakes(&pool, 0, 5 * MILLIS), Ok(0));
        assert_eq!(wakes(&pool, 1, 20 * MILLIS), Err(NEVER));
    }

    #[test]
    fn a_driver_that_does_not_come_back_keeps_what_it_is_at() {
        let pool = pool([5 * MILLIS, 7 * MILLIS, 30 * MILLIS]);
        assert_eq!(wakes(&pool, 0, 6 * MILLIS), Ok(0));
        assert_eq!(wakes(&pool, 1, 7 * MILLIS), Err(16 * MILLIS));
        assert_eq!(wakes(&pool, 1, 16 * MILLIS), Ok(1));
        assert_eq!(wakes(&pool, 2, 16 * MILLIS), Err(39 * MILLIS), "the next one is the watchdog");
        comes_back(&pool, 1, 40 * MILLIS);
        assert_eq!(wakes(&pool, 1, 17 * MILLIS), Err(30 * MILLIS), "it leads");
        comes_back(&pool, 0, 20 * MILLIS);
        assert_eq!(wakes(&pool, 0, 18 * MILLIS), Err(39 * MILLIS), "it is spare, and the watchdog");
        assert_eq!(wakes(&pool, 1, 20 * MILLIS), Ok(0), "it was woken for that");
    }

    /// The callbacks of shards that are late may block, too.
    #[test]
    fn shards_that_are_late_get_a_thread_each() {
        let pool = pool([0, 0, 0, NEVER, 0]);
        assert_eq!(wakes(&pool, 0, MILLIS), Ok(0));
        assert_eq!(
            [1, 4, 3, 2].map(|driver| wakes(&pool, driver, 10 * MILLIS)),
            [Ok(1), Ok(2), Ok(4), Err(NEVER)]
        );
    }
}
