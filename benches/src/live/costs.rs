//! What single calls cost, and what an idle timer does.

use std::fs;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::ledger::Ledger;
use super::timer::{Live, MILLISECOND, Schedules, Sleeps};
use crate::machine::{back_memory, field};
use crate::passes::{race, time};
use crate::suite::{Outcome, Task};
use crate::workload::{Spread, Workload};

const SLEEP: [&str; 2] = ["create, poll and drop, one thread, ns", "create, poll and drop, two threads, ns"];
const AFTER_FIRED: &str = "schedule_after, after as many have fired, ns";
const WAKES: &str = "wake-ups of its threads";

/// Bytes that are backed: more than an engine takes for a timer, its key and its closure.
const BYTES: usize = 256;
const SEED: u64 = 7;

const MINUTE: Duration = Duration::from_secs(60);

/// How long an idle engine is watched, and how long its threads have to settle before that.
const WATCHED: Duration = if cfg!(test) { MILLISECOND } else { Duration::from_secs(5) };
const SETTLING: Duration = if cfg!(test) { MILLISECOND } else { Duration::from_secs(1) };

/// A sleep that is created, polled once and dropped, as the timeout of an operation that ends in time.
///
/// Each thread polls with one waker that counts its references, as a task's does. Another sleep of
/// the thread, due earlier, is pending: without it each sleep would wake the engine's thread.
pub(super) fn sleeps<E: Sleeps>(task: &Task) -> Outcome {
    let engine = E::start();
    let prepare = || {
        let (entered, waker) = (engine.enter(), Waker::from(Arc::new(Ignore)));
        let mut standing = Box::pin(engine.sleep(10 * MINUTE));
        assert!(standing.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        doze(&engine, &waker, task.timers / 10);
        let engine = &engine;
        move || {
            doze(engine, &waker, task.timers);
            drop((standing, entered));
        }
    };
    let mut outcome = Outcome::default();
    for (threads, what) in (1..).zip(SLEEP) {
        outcome.time(what, race(vec![prepare; threads], drop), threads * task.timers);
    }
    outcome
}

fn doze<E: Sleeps>(engine: &E, waker: &Waker, sleeps: usize) {
    let mut context = Context::from_waker(waker);
    for _ in 0..sleeps {
        let mut sleep = pin!(engine.sleep(black_box(30 * MINUTE)));
        assert!(black_box(sleep.as_mut().poll(&mut context)).is_pending(), "30 minutes have not passed");
    }
}

struct Ignore;

impl Wake for Ignore {
    fn wake(self: Arc<Self>) {}
}

/// `schedule_after` with a small closure.
pub(super) fn schedule<E: Schedules>(task: &Task) -> Outcome {
    let (closures, mut outcome) = (Closures::<E>::new(task.timers), Outcome::default());
    let mut keys = closures.fire_as_many();
    outcome.time(AFTER_FIRED, closures.schedule(&mut keys), task.timers);
    outcome
}

struct Closures<E> {
    engine: E,
    /// Uniform over 30 minutes and a minute more, so that none fires while the clock is read.
    delays: Vec<Duration>,
    /// The sum of the numbers of all timers that fired.
    sum: &'static AtomicU64,
}

impl<E: Schedules> Closures<E> {
    fn new(timers: usize) -> Self {
        let work = Workload::new(Spread::ThirtyMinutes, timers, SEED);
        back_memory(timers * BYTES);
        let delays = work.delays.iter().map(|&millis| MINUTE + Duration::from_millis(millis)).collect();
        Self { engine: E::start(), delays, sum: Box::leak(Box::default()) }
    }

    /// Schedules as many timers as the measured passes do, all pending at once, and waits until
    /// they have fired. Their keys are stale; the memory of the keys is touched.
    fn fire_as_many(&self) -> Vec<E::Key> {
        let mut rng = fastrand::Rng::with_seed(SEED);
        let timers = 0..self.delays.len() as u64;
        let lead = Duration::from_micros(timers.end);
        let all = timers.clone().sum::<u64>();
        let keys = timers.map(|timer| self.one(lead + lead.mul_f64(rng.f64()), timer)).collect();
        // Ordering: Relaxed; only the sum matters.
        while self.sum.load(Ordering::Relaxed) < all {
            thread::sleep(MILLISECOND);
        }
        assert_eq!(self.sum.swap(0, Ordering::Relaxed), all, "{} fired a timer twice", E::NAME);
        keys
    }

    #[inline]
    fn one(&self, delay: Duration, timer: u64) -> E::Key {
        let sum = self.sum;
        self.engine.schedule_after(delay, move || {
            sum.fetch_add(timer, Ordering::Relaxed);
        })
    }

    fn schedule(&self, keys: &mut Vec<E::Key>) -> Duration {
        keys.clear();
        time(|| keys.extend(self.delays.iter().zip(0..).map(|(&delay, timer)| self.one(delay, timer))))
    }
}

/// One timer, an hour away: how often other threads woke.
pub(super) fn idle<E: Live>(_: &Task) -> Outcome {
    let engine = E::start();
    let _entered = engine.enter();
    let kept = engine.place(Instant::now() + 60 * MINUTE, Ledger::leak(1).note(0));
    thread::sleep(SETTLING);
    let before = switches();
    thread::sleep(WATCHED);
    let mut outcome = Outcome::default();
    outcome.figure(WAKES, before.zip(switches()).map(|(before, after)| after - before));
    drop(kept);
    outcome
}

/// Returns the voluntary context switches of all other threads: a thread that goes to sleep is woken
/// once. On Linux only.
fn switches() -> Option<f64> {
    let me = fs::read_link("/proc/thread-self").ok()?;
    let threads = fs::read_dir("/proc/self/task").ok()?.flatten();
    let others = threads.filter(|thread| Some(thread.file_name().as_os_str()) != me.file_name());
    // A thread may end before its file is read.
    let statuses = others.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    statuses.map(|status| field(&status, "voluntary_ctxt_switches")?.parse::<f64>().ok()).sum()
}
