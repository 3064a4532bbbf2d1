//! A thread that visits shards: see [`threads`](crate::timer::threads).

use std::sync::Arc;

use super::pool::{Pool, Step};
use super::visit::visit;
use super::worker::Worker;
use crate::clock::UserCode;
use crate::time::{Duration, Instant};
use crate::timer::shard::{ShardHandle, pin};
use crate::timer::time::{NEVER, Nanos, nanos};
use crate::unwind::DropQuietly;

pub(crate) struct PoolThread {
    pub(crate) pool: Arc<Pool<Box<Worker>>>,
    /// Its number in the pool.
    pub(crate) number: usize,
    /// The shard of the same number.
    pub(crate) home: Arc<ShardHandle>,
    /// Dues count from here, for all drivers of the timer.
    pub(crate) start: Instant,
    /// The user's functions that the thread calls first and last.
    pub(crate) on_start: Option<ThreadHook>,
    pub(crate) on_stop: Option<ThreadHook>,
}

pub(crate) type ThreadHook = DropQuietly<Arc<dyn Fn() + Send + Sync>>;

impl PoolThread {
    /// Drives shards on the calling thread, pinned to the core, until the timer is stopping. Calls
    /// `begun` when the thread is set up.
    pub(crate) fn run(mut self, core: Option<usize>, begun: impl FnOnce()) {
        let _user_code = UserCode::begin();
        self.pool.notifier.parker(self.number).set_thread();
        // Set here only, so `set` succeeds.
        if let Some(core) = core.filter(|&core| pin(core)) {
            let _ = self.home.core.set(core);
        }
        self.on_start.iter().for_each(|hook| _ = self.home.guard.run(None, &***hook));
        begun();
        self.visit_all();
        while self.pool.take_to_end().map(drop).is_some() {}
        self.on_stop.iter().for_each(|hook| _ = self.home.guard.run(None, &***hook));
        // Their drops are user code as well.
        drop((self.on_start.take(), self.on_stop.take()));
        self.pool.note_ended(self.number);
    }

    fn visit_all(&self) {
        let mut awake_since = None;
        loop {
            let now = self.now();
            match self.pool.next(self.number, now, *awake_since.get_or_insert(now)) {
                Step::Visit(shard, worker) => visit(&self.pool, shard, worker, |worker| {
                    worker.visit();
                    let due = worker.next_visit();
                    // By the system's time.
                    let paced = worker.pace_to(due);
                    ((), paced.map_or(due, |rest| self.now().saturating_add(nanos(rest))))
                }),
                Step::Sleep(until) => {
                    awake_since = None;
                    let left = Duration::from_nanos(until.saturating_sub(now));
                    self.pool.notifier.parker(self.number).wait((until < NEVER).then_some(left));
                }
                Step::Leave => return,
            }
        }
    }

    fn now(&self) -> Nanos {
        nanos(crate::sync::now().saturating_duration_since(self.start))
    }
}
