//! Who moves a timer's shards, a thread for each or a manual clock; and how they are stopped.
//!
//! A shutdown tells all workers to stop, and then gets each shard's advancer. It waits for the worker to end, which a
//! worker does after the user code that it is in, but for these:
//!
//! - *The caller is user code that the worker runs*, at whatever depth: the thread that runs the worker is the caller's own.
//! - *The worker is in `Executor::execute`*: an executor may wait for the caller, or for room that the caller has to make.
//! - *The thread that runs the worker waits for the caller*, by itself or through others (see
//!   [`Wait`]): two callbacks that shut down each other's timer.
//!
//! Then the advancer lies in the [post](super::advancer_slot), and the shutdown takes it from there. The worker finds out when the
//! user code returns, and ends.
//!
//! A thread that has ended is joined, so that nothing of it is left when the shutdown returns. One that has not, for one of
//! the reasons above, goes on by itself. So does one that still drops the executor after [`GRACE`].

use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::advancer_slot::Phase;
use super::shard_handle::ShardHandle;
use super::task::Task;
use super::worker::Worker;
use crate::clock::{Wait, unpoisoned};
use crate::shard::Advancer;

/// For how long a shutdown waits for an executor's drop, before it leaves the thread that drops it to itself.
const GRACE: Duration = Duration::from_millis(20);

pub(crate) enum Drive {
    /// A thread for each shard; taken by who shuts the timer down.
    Threads(Mutex<Vec<JoinHandle<()>>>),
    /// A manual clock.
    Manual(ManualWorkers),
}

/// The workers of a timer that a manual clock drives, each in its slot but for the one that is at work.
pub(crate) struct ManualWorkers(Mutex<Vec<Slot>>);

enum Slot {
    In(Box<Worker>),
    /// At work, or ended.
    Out,
}

impl Drive {
    pub(crate) fn threads(threads: Vec<JoinHandle<()>>) -> Self {
        Self::Threads(Mutex::new(threads))
    }

    /// The advancer of a shard that has been told to stop. For how long this waits is told at the head of the file.
    pub(crate) fn retrieve(&self, handle: &ShardHandle, shard: usize) -> Option<Box<Advancer<Task>>> {
        loop {
            // First of all: the wait is for what comes after.
            let seen = handle.advancer_slot.look();
            let is_idle = if let Self::Manual(slots) = self { slots.end_idle(shard) } else { false };
            if is_idle || seen.phase != Phase::AtWork || handle.is_run_here() {
                return handle.advancer_slot.take();
            }
            if let Some(advancer) = handle.advancer_slot.take_from_executor() {
                return Some(advancer);
            }
            let wait = Wait::begin(handle.runner());
            // Where that is refused the worker is in user code, or about to go on, which it makes known.
            if wait.is_none()
                && let Some(advancer) = handle.advancer_slot.take()
            {
                return Some(advancer);
            }
            handle.advancer_slot.wait(seen, None);
        }
    }

    /// Waits for the threads that have ended, their advancers having been retrieved.
    pub(crate) fn join(&self, handles: &[Arc<ShardHandle>]) {
        let Self::Threads(threads) = self else { return };
        let threads = std::mem::take(&mut *unpoisoned(threads.lock()));
        for (handle, thread) in handles.iter().zip(threads) {
            if let Some(_wait) = has_ended(handle).then(|| Wait::begin(handle.runner())).flatten() {
                // It has panicked if it could not be helped; its advancer is in safety.
                let _ = thread.join();
            }
        }
    }
}

/// Whether a thread has come to its end, or does so soon.
fn has_ended(handle: &ShardHandle) -> bool {
    let begin = Instant::now();
    loop {
        let seen = handle.advancer_slot.look();
        let left = GRACE.saturating_sub(begin.elapsed());
        match seen.phase {
            Phase::Ended => return !handle.is_run_here(),
            Phase::Left if !left.is_zero() && !handle.is_run_here() => {
                handle.advancer_slot.wait(seen, Some(left))
            }
            _ => return false,
        }
    }
}

impl ManualWorkers {
    pub(crate) fn new(workers: Vec<Worker>) -> Self {
        Self(Mutex::new(workers.into_iter().map(|worker| Slot::In(Box::new(worker))).collect()))
    }

    /// The least of what `look` makes of the workers that are not at work.
    pub(crate) fn least<R: Ord>(&self, look: impl Fn(&Worker) -> Option<R>) -> Option<R> {
        let slots = self.lock();
        slots.iter().filter_map(|slot| if let Slot::In(worker) = slot { look(worker) } else { None }).min()
    }

    /// Has each worker, one after the other, do all that it has to do by now.
    pub(crate) fn run_due(&self) {
        let shards = self.lock().len();
        for shard in 0..shards {
            self.run_shard(shard);
        }
    }

    fn run_shard(&self, shard: usize) {
        let Some(mut worker) = self.take(shard) else { return };
        while worker.turn() || worker.is_sweeping() {}
        worker.rest();
        let handle = Arc::clone(worker.handle());
        if handle.is_stopping() {
            // The drop ends it.
            return drop(worker);
        }
        self.lock()[shard] = Slot::In(worker);
        // A shutdown that has found the slot empty waits; one that comes after finds the worker there.
        if handle.is_stopping() {
            handle.advancer_slot.note_change();
        }
    }

    /// Takes a worker that is not at work; the calling thread runs it from now on.
    fn take(&self, shard: usize) -> Option<Box<Worker>> {
        let mut slots = self.lock();
        let Slot::In(worker) = std::mem::replace(&mut slots[shard], Slot::Out) else { return None };
        worker.handle().set_runner();
        Some(worker)
    }

    /// Ends a worker that is not at work; false if it is.
    fn end_idle(&self, shard: usize) -> bool {
        self.take(shard).map(drop).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        unpoisoned(self.0.lock())
    }
}
