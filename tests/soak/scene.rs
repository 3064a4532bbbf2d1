//! The two timers, what the threads share, and the end: one timer is shut down while all threads
//! use it, the other when it has become quiet.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures::executor::ThreadPool;
use shardwheel::{CallbackPanic, Job, Timer, TimerBuilder};

use crate::calls::{Held, Made};
use crate::pool::Pool;
use crate::support::ledger::Ledger;
use crate::support::{Built, Count, Log, comes_within, is_balanced, ms, until};

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

/// Pools of keys and sleeps.
const POOLS: usize = 16;
/// Payloads that may be alive at once.
const MOST_ALIVE: usize = 400_000;

/// A due timer is late by less than this, or lost. The threads offer more than the timers can take:
/// under ThreadSanitizer, beside other work, a soak of two seconds takes a minute to end.
const VERY_LATE: Duration = Duration::from_secs(180);

pub(crate) struct Scene {
    pub(crate) timers: [Timer; 2],
    pub(crate) ledger: Ledger,
    start: Instant,
    pools: [Mutex<Pool>; POOLS],
    has_stopped: AtomicBool,
    /// No timer is moved any more, as a timer that is being moved while its shard ends may be lost.
    is_quiet: AtomicBool,
    /// Whether a shutdown has begun, and whether it has returned, by timer.
    is_shut: [AtomicBool; 2],
    has_ended: [AtomicBool; 2],
    /// Callbacks called, those that came back included, and sleeps woken.
    pub(crate) runs: Count,
    /// Successful cancels of recurring timers, the occurrence of which may have been under way.
    pub(crate) stopped: Count,
    /// Deliberate panics, and how many of them the timers' hooks got.
    pub(crate) panics: Count,
    told: Count,
    /// What failed in a callback.
    pub(crate) complaints: Log<String>,
}

impl Scene {
    pub(crate) fn new() -> Arc<Self> {
        let (told, complaints) = (Count::default(), Log::new());
        let hooked = |builder: TimerBuilder| {
            let (told, complaints) = (told.clone(), complaints.clone());
            let hook = move |panic: &CallbackPanic<'_>| match panic.payload().is::<Made>() {
                true => told.one(),
                false => complaints.add(format!("{panic:?}")),
            };
            builder.on_panic(hook).built()
        };
        let threads = ThreadPool::builder().pool_size(2).create().expect("the system has threads");
        let fine = Timer::builder().tick(FINE_TICK).wheel_size(SMALL_WHEEL).shards(3).max_pending(BOUND);
        let fine = fine.executor(move |job: Job| threads.spawn_ok(async { job.run() }));
        Arc::new(Self {
            timers: [hooked(Timer::builder()), hooked(fine)],
            ledger: Ledger::default(),
            start: Instant::now(),
            pools: Default::default(),
            has_stopped: AtomicBool::new(false),
            is_quiet: AtomicBool::new(false),
            is_shut: Default::default(),
            has_ended: Default::default(),
            runs: Count::default(),
            stopped: Count::default(),
            panics: Count::default(),
            told,
            complaints,
        })
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

    pub(crate) fn is_crowded(&self) -> bool {
        self.ledger.living() > MOST_ALIVE
    }

    pub(crate) fn stop(&self) {
        self.has_stopped.store(true, Ordering::Release);
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.has_stopped.load(Ordering::Acquire)
    }

    /// Whether no timer may be moved. Asked with a pool's lock.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_quiet.load(Ordering::Acquire)
    }

    pub(crate) fn is_shut(&self, which: usize) -> bool {
        self.is_shut[which].load(Ordering::Acquire)
    }

    pub(crate) fn has_ended(&self, which: usize) -> bool {
        self.has_ended[which].load(Ordering::Acquire)
    }

    pub(crate) fn pool(&self, at: usize) -> MutexGuard<'_, Pool> {
        self.pools[at % POOLS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pool that no other thread uses at the moment.
    pub(crate) fn free_pool(&self, rng: &mut Rng) -> Option<MutexGuard<'_, Pool>> {
        self.pools[rng.usize(..POOLS)].try_lock().ok()
    }

    /// Shuts down the timer that has an executor, while all threads use both.
    pub(crate) fn end_at_work(&self) {
        self.is_quiet.store(true, Ordering::Release);
        // A move is made with a pool's lock, so none is under way afterwards.
        (0..POOLS).for_each(|at| drop(self.pool(at)));
        self.shut_down(WITH_EXECUTOR, None);
        self.is_quiet.store(false, Ordering::Release);
        thread::sleep(ms(50));
    }

    /// Shuts down the other timer when nothing that is due is left. The threads have ended.
    pub(crate) fn end_at_rest(self: &Arc<Self>, rng: &mut Rng) {
        for at in 0..POOLS {
            let mut pool = self.pool(at);
            pool.try_all_stale(self);
            pool.recurring.drain(..).for_each(|held| self.cancel(&held));
            pool.held.extract_if(.., |_| rng.bool()).for_each(|held| self.cancel(&held));
        }
        let by = Instant::now();
        thread::sleep(ms(300));
        let is_idle = || self.timers[BY_ITSELF].stats().backlog.is_zero();
        assert!(comes_within(VERY_LATE, is_idle), "the timer does not catch up");
        (0..POOLS).for_each(|at| self.pool(at).check_woken(BY_ITSELF, self.nanos(by)));
        self.shut_down(BY_ITSELF, Some(by));
        for at in 0..POOLS {
            let mut pool = std::mem::take(&mut *self.pool(at));
            pool.check_over();
            pool.held.iter().for_each(|held: &Held| self.cancel(held));
            pool.try_all_stale(self);
        }
        let refused = [BY_ITSELF, WITH_EXECUTOR].map(|which| self.once(which, None, rng).is_none());
        assert_eq!(refused, [true; 2], "a timer was taken after the shutdown");
    }

    /// Shuts a timer down, and runs what comes back. What was due by then has fired.
    fn shut_down(&self, which: usize, by: Option<Instant>) {
        self.is_shut[which].store(true, Ordering::Release);
        let unfired = self.timers[which].shutdown();
        self.has_ended[which].store(true, Ordering::Release);
        for task in unfired {
            let is_lost = task.deadline() < by && task.deadline().is_some();
            assert!(!is_lost, "lost: it was due at {:?}, by {by:?}", task.deadline());
            task.run();
        }
    }
}

/// Checks what must hold when both timers have ended.
pub(crate) fn conclude(scene: &Arc<Scene>) {
    until("no callback and no waker has the scene", || Arc::strong_count(scene) == 1);
    let complaints = scene.complaints.take();
    assert!(complaints.is_empty(), "{complaints:#?}");
    scene.ledger.check_all_ended();
    let all = scene.timers.each_ref().map(Timer::stats);
    println!("{all:#?}");
    scene.timers.iter().for_each(is_balanced);
    assert_eq!(all.each_ref().map(|stats| stats.pending), [0; 2]);
    let (runs, stopped) = (scene.runs.get() as u64, scene.stopped.get() as u64);
    let fired: u64 = all.iter().map(|stats| stats.fired + stats.handed_back).sum();
    assert!((runs - stopped..=runs).contains(&fired), "{fired} fired or came back, of {runs}");
    let panics: u64 = all.iter().map(|stats| stats.panics).sum();
    assert_eq!((panics, scene.told.get()), (scene.panics.get() as u64, scene.panics.get()), "panics");
}
