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
//! Then the advancer lies in the [post](super::lending), and the shutdown takes it from there. The worker finds out when the
//! user code returns, and ends.
//!
//! A thread that has ended is joined, so that nothing of it is left when the shutdown returns. One that has not, for one of
//! the reasons above, goes on by itself. So does one that still drops the executor after [`GRACE`].

use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::lending::Phase;
use super::shard_handle::Home;
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
    Hand(Slots),
}

/// The workers of a timer that a manual clock drives, each in its slot but for the one that is at work.
pub(crate) struct Slots(Mutex<Vec<Slot>>);

enum Slot {
    In(Box<Worker>),
    /// At work, or ended.
    Out,
}

impl Drive {
    pub(crate) fn threads(handles: Vec<JoinHandle<()>>) -> Self {
        Self::Threads(Mutex::new(handles))
    }

    /// The advancer of a shard that has been told to stop. For how long this waits is told at the head of the file.
    pub(crate) fn retrieve(&self, home: &Home, shard: usize) -> Option<Box<Advancer<Task>>> {
        loop {
            // First of all: the wait is for what comes after.
            let seen = home.post.look();
            let is_idle = if let Self::Hand(slots) = self { slots.end_idle(shard) } else { false };
            if is_idle || seen.phase != Phase::AtWork || home.is_run_here() {
                return home.post.take();
            }
            if let Some(advancer) = home.post.take_from_executor() {
                return Some(advancer);
            }
            let wait = Wait::begin(home.runner());
            // Where that is refused the worker is in user code, or about to go on, which it makes known.
            if wait.is_none()
                && let Some(advancer) = home.post.take()
            {
                return Some(advancer);
            }
            home.post.wait(seen, None);
        }
    }

    /// Waits for the threads that have ended, their advancers having been retrieved.
    pub(crate) fn join(&self, homes: &[Arc<Home>]) {
        let Self::Threads(handles) = self else { return };
        let handles = std::mem::take(&mut *unpoisoned(handles.lock()));
        for (home, handle) in homes.iter().zip(handles) {
            if let Some(_wait) = has_ended(home).then(|| Wait::begin(home.runner())).flatten() {
                // It has panicked if it could not be helped; its advancer is in safety.
                let _ = handle.join();
            }
        }
    }
}

/// Whether a thread has come to its end, or does so soon.
fn has_ended(home: &Home) -> bool {
    let begin = Instant::now();
    loop {
        let seen = home.post.look();
        let left = GRACE.saturating_sub(begin.elapsed());
        match seen.phase {
            Phase::Ended => return !home.is_run_here(),
            Phase::Left if !left.is_zero() && !home.is_run_here() => home.post.wait(seen, Some(left)),
            _ => return false,
        }
    }
}

impl Slots {
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
        let home = Arc::clone(worker.home());
        if home.is_stopping() {
            // The drop ends it.
            return drop(worker);
        }
        self.lock()[shard] = Slot::In(worker);
        // A shutdown that has found the slot empty waits; one that comes after finds the worker there.
        if home.is_stopping() {
            home.post.note_change();
        }
    }

    /// Takes a worker that is not at work; the calling thread runs it from now on.
    fn take(&self, shard: usize) -> Option<Box<Worker>> {
        let mut slots = self.lock();
        let Slot::In(worker) = std::mem::replace(&mut slots[shard], Slot::Out) else { return None };
        worker.home().set_runner();
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
