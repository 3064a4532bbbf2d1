//! A thread that drives shards.
//!
//! In a round the driver visits each of its shards that is due or was rung: it takes the shard's
//! worker out of its slot, lets it run what is due, and puts it back. If no shard is ready, the
//! driver sleeps until the first one is due; if it holds none, it stands by.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::affinity::Core;
use super::drivers::{APART, Crew, IDLE, Step, Watch, Window, balance};
use super::phase::Phase;
use super::placement;
use super::shard_handle::ShardHandle;
use super::time::{Nanos, nanos};
use super::worker::{Rest, Worker};
use crate::unwind::DropQuietly;

pub(crate) struct DriverThread {
    crew: Arc<Crew<Box<Worker>>>,
    me: usize,
    /// The shard of the same number.
    home: Arc<ShardHandle>,
    /// Dues count from here, for all drivers of the timer.
    start: Instant,
    window: Window,
    watch: Watch,
    hooks: ThreadHooks,
}

/// The user's functions that each thread calls first and last.
#[derive(Clone, Default)]
pub(crate) struct ThreadHooks {
    pub(crate) start: Option<DropQuietly<Hook>>,
    pub(crate) stop: Option<DropQuietly<Hook>>,
}

type Hook = Arc<dyn Fn() + Send + Sync>;

impl DriverThread {
    pub(crate) fn new(
        crew: Arc<Crew<Box<Worker>>>,
        me: usize,
        home: Arc<ShardHandle>,
        start: Instant,
        hooks: ThreadHooks,
    ) -> Self {
        let watch = Watch::new(crew.board.drivers());
        Self { crew, me, home, start, window: Window::default(), watch, hooks }
    }

    pub(crate) fn number(&self) -> usize {
        self.me
    }

    /// Makes the calling thread the driver's, pinned to the core, and calls the user's hook.
    pub(crate) fn take_seat(&self, core: Option<Core>) {
        self.crew.board.seat(self.me).set_thread();
        // Set here only, so `set` succeeds.
        if let Some(core) = core.filter(|core| core.pin()) {
            let _ = self.home.core.set(core.id());
        }
        self.call(self.hooks.start.as_ref());
    }

    fn call(&self, hook: Option<&DropQuietly<Hook>>) {
        if let Some(hook) = hook {
            self.home.run_guarded(&***hook);
        }
    }

    /// Drives its shards until the timer is stopping.
    pub(crate) fn run(mut self) {
        while self.round() {}
        // A shutdown that finds a worker's slot empty finds its runner as well.
        self.crew.leave(self.me, |worker| worker.handle().set_runner(), drop);
        self.call(self.hooks.stop.as_ref());
        // Its drop is user code as well.
        drop(std::mem::take(&mut self.hooks));
        self.crew.board.seat(self.me).progress.enter(Phase::Ended);
    }

    /// Returns false at the end.
    fn round(&mut self) -> bool {
        let begin = self.now();
        match self.crew.begin_round(self.me, begin) {
            Step::Visit => self.visit_ready(begin),
            Step::Sleep(due) => self.sleep_until(due),
            Step::StandBy => self.stand_by(begin),
            Step::Leave => return false,
        }
        true
    }

    /// Visits the shards that are due, or were rung, by `begin`, and ends the round.
    fn visit_ready(&mut self, begin: Nanos) {
        let board = &*self.crew.board;
        for shard in 0..board.shards() {
            if board.is_ready(shard, self.me, begin) && !self.crew.is_stopping() {
                self.visit(shard);
            }
        }
        board.end_round(self.me);
        let end = self.now();
        let load = self.window.note(begin, end);
        balance(&self.crew, self.me, load, end);
    }

    fn visit(&self, shard: usize) {
        // Under the slot's lock: a shutdown that finds the worker out finds its runner as well.
        let worker = self.crew.take(self.me, shard, |worker| worker.handle().set_runner());
        let Some(mut worker) = worker else { return };
        let (timer, number) = worker.number();
        let visit = placement::visit(timer, number as usize);
        let begin = self.now();
        let rest = worker.visit();
        drop(visit);
        let end = self.now();
        if end.saturating_sub(begin) > self.crew.board.limits.patience {
            self.crew.board.set_apart(shard, end.saturating_add(APART));
        }
        let due = match rest {
            Rest::Again => 0,
            Rest::Until(at) => at,
            Rest::For(length) => end.saturating_add(nanos(length)),
            Rest::Idle => IDLE,
        };
        let handle = Arc::clone(worker.handle());
        self.crew.put_back(shard, worker, due);
        // A shutdown that found the worker out waits for this. A later one finds it in its slot.
        if handle.is_stopping() {
            handle.advancer_slot.progress.note_change();
        }
    }

    fn stand_by(&mut self, now: Nanos) {
        let board = Arc::clone(&self.crew.board);
        let next_look = self.watch.next_look(&board, self.me);
        if next_look > now {
            return self.sleep_until(next_look);
        }
        self.watch.relieve(&self.crew, self.me, now);
        if board.held_by(self.me).next().is_none() {
            // A slot's lock was taken. Its holder is about to continue, or never does.
            self.sleep_until(now.saturating_add(board.limits.patience));
        }
    }

    fn sleep_until(&self, due: Nanos) {
        let left = (due < IDLE).then(|| Duration::from_nanos(due.saturating_sub(self.now())));
        self.crew.wait(self.me, left);
    }

    fn now(&self) -> Nanos {
        nanos(self.start.elapsed())
    }
}
