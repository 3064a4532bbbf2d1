//! The two timers, their counts, and what the threads share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fastrand::Rng;
use shardwheel::{CallbackPanic, Executor, Job, Timer};

use crate::account::Cause;
use crate::acts::Made;
use crate::books::Books;
use crate::placing::Held;

/// Nanoseconds since the scene was made.
pub(crate) type Nanos = u64;

/// The timer that calls its callbacks itself, one shard for each core.
pub(crate) const BY_ITSELF: usize = 0;
/// The timer with an executor, a finer tick, smaller wheels, three shards and a limit.
pub(crate) const WITH_EXECUTOR: usize = 1;

const FINE_TICK: Duration = Duration::from_micros(300);
const SMALL_WHEEL: usize = 32;
/// The limit of the second timer, which a burst may reach.
const BOUND: usize = 150_000;
const POOL: usize = 2;
/// One job in this number is dropped instead of run.
const DROPPED_JOBS: u32 = 5_000;

/// Timers on the market.
const MARKET: usize = 1_000;
/// Accounts that may be open at once.
const MOST_OPEN: usize = 400_000;

pub(crate) struct Scene {
    start: Instant,
    timers: [Timer; 2],
    books: [Arc<Books>; 2],
    /// Timers that change hands.
    market: Mutex<Vec<Held>>,
    stopped: AtomicBool,
    /// No timer is moved to an earlier time any more, as a timer that is being moved while its
    /// shard ends may be lost.
    quiet: AtomicBool,
    shut: [AtomicBool; 2],
    /// What was due by this time has fired, by timer.
    caught_up: [AtomicU64; 2],
}

/// The threads that run jobs.
pub(crate) type Pool = Vec<JoinHandle<()>>;

impl Scene {
    pub(crate) fn new() -> (Arc<Self>, Pool) {
        let books = [Arc::<Books>::default(), Arc::default()];
        let (jobs, pool) = pool();
        let fine = Timer::builder().tick(FINE_TICK).wheel_size(SMALL_WHEEL).shards(3).max_pending(BOUND);
        let builders = [Timer::builder(), fine.executor(jobs)];
        let mut hooks = books.iter().map(|books| hook(Arc::clone(books)));
        let timers = builders.map(|builder| {
            builder
                .on_panic(hooks.next().expect("one for each"))
                .build()
                .expect("settings within their limits")
        });
        let scene = Self {
            start: Instant::now(),
            timers,
            books,
            market: Mutex::default(),
            stopped: AtomicBool::new(false),
            quiet: AtomicBool::new(false),
            shut: [AtomicBool::new(false), AtomicBool::new(false)],
            caught_up: [AtomicU64::new(0), AtomicU64::new(0)],
        };
        (Arc::new(scene), pool)
    }

    pub(crate) fn timer(&self, which: usize) -> &Timer {
        &self.timers[which]
    }

    pub(crate) fn books(&self, which: usize) -> &Books {
        &self.books[which]
    }

    pub(crate) fn has_complaints(&self) -> bool {
        self.books.iter().any(|books| !books.complaints().is_empty())
    }

    pub(crate) fn is_crowded(&self) -> bool {
        self.books.iter().map(|books| books.open()).sum::<usize>() > MOST_OPEN
    }

    pub(crate) fn now(&self) -> Nanos {
        self.nanos(Instant::now())
    }

    pub(crate) fn nanos(&self, at: Instant) -> Nanos {
        at.saturating_duration_since(self.start).as_nanos() as Nanos
    }

    pub(crate) fn instant(&self, at: Nanos) -> Instant {
        self.start + Duration::from_nanos(at)
    }

    /// Offers a timer to other threads; returns it if the market is full or busy.
    pub(crate) fn give(&self, held: Held) -> Option<Held> {
        match self.market.try_lock() {
            Ok(mut market) if market.len() < MARKET => {
                market.push(held);
                None
            }
            Ok(_) | Err(TryLockError::WouldBlock) => Some(held),
            Err(TryLockError::Poisoned(_)) => panic!("a thread panicked with the lock"),
        }
    }

    pub(crate) fn take(&self, rng: &mut Rng) -> Option<Held> {
        let mut market = self.market.try_lock().ok()?;
        let at = (!market.is_empty()).then(|| rng.usize(..market.len()))?;
        Some(market.swap_remove(at))
    }

    /// All timers on the market.
    pub(crate) fn close_market(&self) -> Vec<Held> {
        std::mem::take(&mut *self.market.lock().expect("no thread panics with the lock"))
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(crate) fn become_quiet(&self, quiet: bool) {
        self.quiet.store(quiet, Ordering::Release);
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Acquire)
    }

    /// Notes that a timer is about to be shut down.
    pub(crate) fn shut(&self, which: usize) {
        self.shut[which].store(true, Ordering::Release);
    }

    /// Notes that what was due by `due` has fired.
    pub(crate) fn catch_up(&self, which: usize, due: Nanos) {
        self.caught_up[which].store(due, Ordering::Release);
    }

    pub(crate) fn caught_up(&self, which: usize) -> Nanos {
        self.caught_up[which].load(Ordering::Acquire)
    }

    pub(crate) fn is_shut(&self, which: usize) -> bool {
        self.shut[which].load(Ordering::Acquire)
    }
}

/// Counts the deliberate panics of callbacks.
fn hook(books: Arc<Books>) -> impl Fn(&CallbackPanic<'_>) + Send + Sync {
    move |panic| {
        books.told.one();
        let is_ours = panic.payload().is::<Made>() && panic.key().is_some();
        books.expect(is_ours, format_args!("{panic:?}"));
    }
}

/// Threads that run jobs, and the executor that sends jobs to them. They end when the executor is
/// dropped.
fn pool() -> (impl Executor, Pool) {
    let (send, receive) = channel::<Job>();
    let receive = Arc::new(Mutex::new(receive));
    let start = |_| {
        let jobs = Arc::clone(&receive);
        thread::spawn(move || run_jobs(&jobs))
    };
    let pool = (0..POOL).map(start).collect();
    (move |job| send.send(job).expect("the pool is there for as long as the executor"), pool)
}

/// Runs jobs until the executor is gone; drops some.
fn run_jobs(jobs: &Mutex<Receiver<Job>>) {
    let mut rng = Rng::with_seed(0);
    loop {
        let job = jobs.lock().expect("no thread panics with the lock").recv();
        match job {
            Ok(job) if rng.u32(..DROPPED_JOBS) == 0 => Cause::Unrun.of(|| drop(job)),
            Ok(job) => job.run(),
            Err(_) => return,
        }
    }
}
