//! A visit: takes a shard's worker out of its pool, lets it work, and puts it back.

use std::sync::Arc;

use super::pool::Pool;
use super::worker::Worker;
use crate::clock::RunByClock;
use crate::tick::Tick;
use crate::time::Instant;
use crate::timer::shard::with_own_shard;
use crate::timer::time::{NEVER, Nanos};

/// Calls `code` with the worker of a shard, and puts the worker back. `code` also returns when the
/// next visit is due.
pub(crate) fn visit<R>(
    pool: &Pool<Box<Worker>>,
    shard: usize,
    mut worker: Box<Worker>,
    code: impl FnOnce(&mut Worker) -> (R, Nanos),
) -> R {
    let (result, due) = with_own_shard(worker.number, || code(&mut worker));
    let handle = Arc::clone(&worker.handle);
    // If the timer has ended meanwhile, the drop ends the worker.
    drop(pool.put_back(shard, worker, due));
    // A shutdown that found the worker out waits for this. A later one finds it in its place.
    if handle.is_stopping() {
        handle.advancer_slot.shutdown.notify();
    }
    result
}

/// A manual clock visits the workers. It holds no handle of the timer: the last one may go while
/// the clock runs a callback, and ends the timer then.
impl RunByClock for Pool<Box<Worker>> {
    fn next_expiration(&self) -> Option<Instant> {
        self.least(|worker, is_requested| {
            let time = &worker.handle.time;
            if is_requested {
                // A job has come back from an executor.
                return time.instant(worker.turned_at);
            }
            // A worker whose clock lags does not move, however often it is run. The last tick never
            // comes.
            let next = worker.next_expiration().filter(|&tick| tick < Tick::MAX && !worker.lags());
            next.and_then(|tick| time.instant(time.start_of(tick)))
        })
    }

    /// Runs the workers one after the other, each until it has nothing left to do at the present
    /// time.
    fn run_due(&self, now: Instant) {
        for shard in 0..self.shards() {
            let Some(worker) = self.take(shard) else { continue };
            visit(self, shard, worker, |worker| {
                while worker.turn() || worker.is_sweeping() {}
                worker.note_clock(now);
                worker.rest();
                ((), NEVER)
            });
        }
    }
}
