//! What moves a timer's shards (drivers with threads, or a manual clock), and how they are stopped.
//!
//! A shutdown marks all shards as stopping, and then takes each shard's advancer. It waits for the
//! worker to end; the worker ends when the user code that it runs has returned. In three cases the
//! shutdown does not wait:
//!
//! - *The caller is user code that the worker runs*, at any depth: the caller's thread runs the
//!   worker.
//! - *The worker is in `Executor::execute`*: an executor may wait for the caller, or for space that
//!   the caller has to make.
//! - *The thread that runs the worker waits for the caller*, directly or through other threads (see
//!   [`Wait`]): two callbacks that shut down each other's timer.
//!
//! The advancer then lies in the [slot](super::advancer_slot), and the shutdown takes it from
//! there. The worker finds the slot empty when the user code returns, and ends.
//!
//! A thread that has ended is joined, so nothing of it is left when the shutdown returns. A thread
//! that has not ended, for one of the reasons above, continues by itself. So does a thread that
//! still drops the executor after [`GRACE`].
//!
//! Who writes what: the builder sets the threads, and the shutdown takes them. A worker's slot is
//! emptied by the thread that runs or ends the worker; the thread that has run the worker fills it
//! again.

use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::drivers::Crew;
use super::inner::Inner;
use super::phase::{Phase, Progress};
use super::placement;
use super::shard_handle::ShardHandle;
use super::task::Task;
use super::worker::Worker;
use crate::clock::{Driven, Wait, this_thread, unpoisoned};
use crate::shard::Advancer;
use crate::tick::Tick;

/// How long a shutdown waits for the drop of an executor before it leaves the dropping thread
/// alone.
const GRACE: Duration = Duration::from_millis(20);

pub(crate) enum Drive {
    Threads(Threads),
    /// No threads: a manual clock runs the workers.
    Manual(ManualWorkers),
}

/// The drivers of a timer, and their threads in the same order; the shutdown takes the threads.
pub(crate) struct Threads {
    crew: Arc<Crew<Box<Worker>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The workers of a timer that a manual clock drives. Each lies in its worker slot unless it is at
/// work.
pub(crate) struct ManualWorkers(Mutex<Vec<Slot>>);

enum Slot {
    In(Box<Worker>),
    /// The worker is at work, or has ended.
    Out,
}

impl Drive {
    /// Makes all drivers leave. All shards have been marked as stopping.
    pub(crate) fn stop(&self) {
        if let Self::Threads(threads) = self {
            threads.crew.stop();
        }
    }

    /// Takes the advancer of a shard that is stopping. The module docs say how long this waits.
    pub(crate) fn retrieve(&self, handle: &ShardHandle, shard: usize) -> Option<Box<Advancer<Task>>> {
        let advancer_slot = &handle.advancer_slot;
        loop {
            // Comes first: `wait` waits for changes after this look.
            let seen = advancer_slot.progress.look();
            match self.close_idle(shard) {
                Idle::Closed(advancer) => return advancer,
                Idle::Ended => return advancer_slot.take(),
                Idle::AtWork => (),
            }
            if seen.phase != Phase::AtWork || handle.is_run_here() {
                return advancer_slot.take();
            }
            if let Some(advancer) = advancer_slot.take_from_executor() {
                return Some(self.leave_alone(handle, advancer));
            }
            let wait = Wait::begin(handle.runner());
            // If the wait is refused, the worker's thread waits for the caller, directly or through
            // others. So the worker is in user code, or about to continue, which it announces
            // (`note_change`).
            if wait.is_none()
                && let Some(advancer) = advancer_slot.take()
            {
                return Some(self.leave_alone(handle, advancer));
            }
            advancer_slot.progress.wait(seen, None);
        }
    }

    fn close_idle(&self, shard: usize) -> Idle {
        match self {
            Self::Threads(threads) => threads.close_idle(shard),
            Self::Manual(workers) if workers.end_idle(shard) => Idle::Ended,
            Self::Manual(_) => Idle::AtWork,
        }
    }

    /// Notes that the shutdown does not wait for the user code that the shard's worker runs.
    fn leave_alone(&self, handle: &ShardHandle, advancer: Box<Advancer<Task>>) -> Box<Advancer<Task>> {
        if let Self::Threads(threads) = self {
            threads.crew.board.leave_alone(handle.runner());
        }
        advancer
    }

    /// Joins the threads that have ended. Their advancers have been retrieved.
    pub(crate) fn join(&self) {
        if let Self::Threads(threads) = self {
            threads.join();
        }
    }
}

/// What a shutdown has done with a worker that was not at work.
enum Idle {
    /// It has closed the worker, which its driver ends.
    Closed(Option<Box<Advancer<Task>>>),
    /// It has ended the worker.
    Ended,
    /// The worker is at work, or has ended before.
    AtWork,
}

impl Threads {
    pub(crate) fn new(crew: Arc<Crew<Box<Worker>>>, threads: Vec<JoinHandle<()>>) -> Self {
        Self { crew, threads: Mutex::new(threads) }
    }

    fn close_idle(&self, shard: usize) -> Idle {
        let worker = self.crew.take_to_close(shard, |worker| worker.handle().set_runner());
        let Some(mut worker) = worker else { return Idle::AtWork };
        let advancer = worker.close();
        self.crew.put_back(shard, worker, 0);
        // Its holder ends it now.
        self.crew.board.ring(shard);
        Idle::Closed(advancer)
    }

    fn join(&self) {
        let threads = std::mem::take(&mut *unpoisoned(self.threads.lock()));
        let started = threads.len();
        for (driver, thread) in threads.into_iter().enumerate() {
            let seat = self.crew.board.seat(driver);
            let has_ended =
                seat.thread() != this_thread() && has_ended(&seat.progress, || seat.is_left_alone());
            if let Some(_wait) = has_ended.then(|| Wait::begin(seat.thread())).flatten() {
                // An error means that the thread panicked. Its advancers have been retrieved all
                // the same.
                let _ = thread.join();
            }
        }
        // A driver whose thread did not start ends no worker.
        for driver in started..self.crew.board.drivers() {
            let shards = 0..self.crew.board.shards();
            shards.for_each(|shard| drop(self.crew.take_to_end(driver, shard, |_| ())));
        }
    }
}

/// Whether a driver has ended, or ends within [`GRACE`] of its last work. Waits for a driver that
/// is at work, unless the shutdown leaves it alone.
fn has_ended(progress: &Progress, is_left_alone: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    loop {
        let seen = progress.look();
        match seen.phase {
            Phase::Ended => return true,
            Phase::Left => {
                let left = GRACE.saturating_sub(begin.elapsed());
                if left.is_zero() {
                    return false;
                }
                progress.wait(seen, Some(left));
            }
            Phase::AtWork if is_left_alone() => return false,
            Phase::AtWork => progress.wait(seen, None),
        }
    }
}

impl Driven for Inner {
    fn next_expiration(&self) -> Option<Instant> {
        let Drive::Manual(slots) = &self.drive else { return None };
        slots.least(|worker| {
            let time = &worker.handle().time;
            // A worker whose clock lags does not move, however often it is run. The last tick never
            // comes.
            let next = worker.next_expiration().filter(|&tick| tick < Tick::MAX && !worker.lags());
            next.and_then(|tick| time.instant(time.start_of(tick)))
        })
    }

    fn run_due(&self, now: Instant) {
        if let Drive::Manual(slots) = &self.drive {
            slots.run_due(now);
        }
    }
}

impl ManualWorkers {
    pub(crate) fn new(workers: Vec<Worker>) -> Self {
        Self(Mutex::new(workers.into_iter().map(|worker| Slot::In(Box::new(worker))).collect()))
    }

    /// The least value that `look` returns for the workers that are not at work.
    pub(crate) fn least<R: Ord>(&self, look: impl Fn(&Worker) -> Option<R>) -> Option<R> {
        let slots = self.lock();
        slots.iter().filter_map(|slot| if let Slot::In(worker) = slot { look(worker) } else { None }).min()
    }

    /// Runs the workers one after the other, each until it has nothing left to do at the present
    /// time.
    pub(crate) fn run_due(&self, now: Instant) {
        let shards = self.lock().len();
        for shard in 0..shards {
            self.run_shard(shard, now);
        }
    }

    fn run_shard(&self, shard: usize, now: Instant) {
        let Some(mut worker) = self.take(shard) else { return };
        let (timer, number) = worker.number();
        let visit = placement::visit(timer, number as usize);
        while worker.turn() || worker.is_sweeping() {}
        drop(visit);
        worker.note_clock(now);
        worker.rest();
        let handle = Arc::clone(worker.handle());
        if handle.is_stopping() {
            // The drop ends the worker.
            return drop(worker);
        }
        self.lock()[shard] = Slot::In(worker);
        // A shutdown that found the worker slot empty waits for this. A later shutdown finds the
        // worker in its slot.
        if handle.is_stopping() {
            handle.advancer_slot.progress.note_change();
        }
    }

    /// Takes a worker that is not at work. The calling thread runs it from now on.
    fn take(&self, shard: usize) -> Option<Box<Worker>> {
        let mut slots = self.lock();
        let Slot::In(worker) = std::mem::replace(&mut slots[shard], Slot::Out) else { return None };
        worker.handle().set_runner();
        Some(worker)
    }

    /// Ends a worker that is not at work; false if it is at work or has ended.
    fn end_idle(&self, shard: usize) -> bool {
        self.take(shard).map(drop).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        unpoisoned(self.0.lock())
    }
}
