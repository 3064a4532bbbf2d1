//! Shared by all models: how a model is run, and a ledger that checks that each timer ended exactly
//! once.
//!
//! With `--cfg shardwheel_loom` a model's body runs under every interleaving that loom finds within
//! its bound of preemptions. Without it, the same body runs natively many times, as a stress test.

#![cfg(any(shardwheel_loom, shardwheel_model))]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use shardwheel::testing::StopAnswer;
use shardwheel::{Advancer, Config, Key, ScheduleError, Scheduler, Tick};

/// The threads of a model.
pub mod thread {
    #[cfg(shardwheel_loom)]
    pub use loom::thread::{JoinHandle, ThreadId, current, spawn};
    #[cfg(not(shardwheel_loom))]
    pub use std::thread::{JoinHandle, ThreadId, current, spawn};
}

/// Preemptions that loom tries in one execution, unless `LOOM_MAX_PREEMPTIONS` sets another number
/// for all models, or `SHARDWHEEL_MORE_PREEMPTIONS` adds to the number of each.
const PREEMPTIONS: usize = 2;

/// How often a model's body runs natively, unless `SHARDWHEEL_RUNS` sets another number.
#[cfg(not(shardwheel_loom))]
const RUNS: usize = 1_000;

/// Runs a model.
pub fn model(body: impl Fn() + Send + Sync + 'static) {
    model_within(PREEMPTIONS, body);
}

/// Runs a model with its own bound of preemptions.
#[cfg(shardwheel_loom)]
pub fn model_within(preemptions: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    let more = number("SHARDWHEEL_MORE_PREEMPTIONS").unwrap_or(0);
    builder.preemption_bound.get_or_insert(preemptions + more);
    builder.max_branches = 100_000;
    builder.check(body);
}

/// Runs a model; without loom there is no bound of preemptions. Each run has a thread of its own,
/// so that no thread uses up its budget of ready answers.
#[cfg(not(shardwheel_loom))]
pub fn model_within(_: usize, body: impl Fn() + Send + Sync + 'static) {
    for _ in 0..number("SHARDWHEEL_RUNS").unwrap_or(RUNS) {
        std::thread::scope(|scope| scope.spawn(&body).join()).expect("the model holds");
    }
}

/// A number from the environment.
fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// Counts how each timer of a model ended, by the timer's number.
#[derive(Clone)]
pub struct Ledger(Arc<Vec<Account>>);

#[derive(Default)]
struct Account {
    fired: AtomicUsize,
    cancelled: AtomicUsize,
    stopped: AtomicUsize,
    handed_back: AtomicUsize,
    dropped: AtomicUsize,
}

/// A timer's payload: its number, and the ledger that counts its end.
pub struct Payload {
    number: usize,
    ledger: Ledger,
}

impl Payload {
    /// Returns the timer's number.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }
}

impl Ledger {
    /// Makes a ledger for `timers` timers.
    #[must_use]
    pub fn new(timers: usize) -> Self {
        Self(Arc::new((0..timers).map(|_| Account::default()).collect()))
    }

    /// Makes the payload of a timer.
    #[must_use]
    pub fn payload(&self, number: usize) -> Payload {
        Payload { number, ledger: self.clone() }
    }

    /// Advances the clock to `now`, and notes the timers that fire; they must be due.
    pub fn advance(&self, advancer: &mut Advancer<Payload>, now: Tick) -> usize {
        self.advance_back(advancer, now, now)
    }

    /// The same after the clock has been at `reached`, where it stays even if `now` is earlier.
    pub fn advance_back(&self, advancer: &mut Advancer<Payload>, now: Tick, reached: Tick) -> usize {
        let noted = advancer.advance(now).map(|fired| {
            assert!(fired.deadline <= reached, "{} fired at {reached}", fired.deadline);
            self.fired(fired.payload.number);
        });
        noted.count()
    }

    /// Notes the result of a cancel; returns true if it won.
    pub fn cancelled(&self, payload: Option<Payload>) -> bool {
        payload.inspect(|payload| note(&self.0[payload.number].cancelled)).is_some()
    }

    /// Notes the result of a stop; returns true if it won.
    pub fn stopped(&self, number: usize, answer: StopAnswer<Payload>) -> bool {
        match answer {
            StopAnswer::Pending(payload) => self.cancelled(Some(payload)),
            StopAnswer::Running => {
                note(&self.0[number].stopped);
                true
            }
            StopAnswer::Gone => false,
        }
    }

    /// Schedules a timer; if the shard has ended and hands the payload back, notes that.
    pub fn schedule(&self, scheduler: &Scheduler<Payload>, deadline: Tick, number: usize) -> Option<Key> {
        let refused = |refused: ScheduleError<Payload>| self.handed_back(&refused.into_payload());
        scheduler.schedule(deadline, self.payload(number)).map_err(refused).ok()
    }

    /// Returns whether the timer was stopped, pending or running.
    #[must_use]
    pub fn is_stopped(&self, number: usize) -> bool {
        let Account { cancelled, stopped, .. } = &self.0[number];
        cancelled.load(Ordering::Relaxed) + stopped.load(Ordering::Relaxed) > 0
    }

    /// Notes that a timer has fired; a recurring timer, for the last time.
    pub fn fired(&self, number: usize) {
        note(&self.0[number].fired);
    }

    /// Notes a payload that came back at shutdown or with an error.
    pub fn handed_back(&self, payload: &Payload) {
        note(&self.0[payload.number].handed_back);
    }

    /// Returns whether the timer has fired.
    #[must_use]
    pub fn has_fired(&self, number: usize) -> bool {
        self.0[number].fired.load(Ordering::Relaxed) == 1
    }

    /// Asserts that each timer has ended in one way, once, and that its payload has been dropped
    /// once.
    pub fn balance(&self) {
        for (number, account) in self.0.iter().enumerate() {
            let ends = [&account.fired, &account.cancelled, &account.stopped, &account.handed_back];
            let ends = ends.map(|end| end.load(Ordering::Relaxed));
            let dropped = account.dropped.load(Ordering::Relaxed);
            assert_eq!(
                ends.iter().sum::<usize>(),
                1,
                "timer {number}: fired, cancelled, stopped, handed back: {ends:?}"
            );
            assert_eq!(dropped, 1, "timer {number}: dropped {dropped} times");
        }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        note(&self.ledger.0[self.number].dropped);
    }
}

fn note(count: &AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
}

/// Makes a shard with wheels of four buckets: level 0 reaches 3 ticks ahead, level 1 reaches 12 or
/// more.
#[must_use]
pub fn small_shard() -> (Scheduler<Payload>, Advancer<Payload>) {
    small_shard_from(0)
}

/// The same, with a clock that starts at `start`.
#[must_use]
pub fn small_shard_from(start: Tick) -> (Scheduler<Payload>, Advancer<Payload>) {
    let config = Config::builder().wheel_size(4).start(start).build();
    shardwheel::shard(&config.expect("4 is a power of two"))
}

/// The same, with producers that hold nodes.
#[must_use]
pub fn holding_shard() -> (Scheduler<Payload>, Advancer<Payload>) {
    let (scheduler, advancer) = small_shard();
    shardwheel::testing::let_producers_reuse(&scheduler);
    (scheduler, advancer)
}

/// A waker that counts its calls.
#[derive(Default)]
pub struct CountingWake(AtomicUsize);

impl CountingWake {
    /// Makes a waker and its counter.
    #[must_use]
    pub fn waker() -> (Arc<Self>, Waker) {
        let count = Arc::new(Self::default());
        (Arc::clone(&count), Waker::from(count))
    }

    /// Returns how often it was woken.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for CountingWake {
    fn wake(self: Arc<Self>) {
        note(&self.0);
    }
}

/// A waker that stops each calling thread, except the thread that made it, until it is released. It
/// counts the calls that have returned.
pub struct StoppedWake {
    maker: thread::ThreadId,
    release: sync::Release,
    count: AtomicUsize,
}

impl StoppedWake {
    /// Makes a waker and its counter.
    #[must_use]
    pub fn waker() -> (Arc<Self>, Waker) {
        let (maker, release) = (thread::current().id(), sync::Release::new());
        let count = Arc::new(Self { maker, release, count: AtomicUsize::new(0) });
        (Arc::clone(&count), Waker::from(count))
    }

    /// Returns how many calls have returned.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Lets the stopped thread continue.
    pub fn release(&self) {
        self.release.open();
    }
}

impl Wake for StoppedWake {
    fn wake(self: Arc<Self>) {
        if thread::current().id() != self.maker {
            self.release.wait();
        }
        note(&self.count);
    }
}

/// An event that one thread waits for.
mod sync {
    #[cfg(shardwheel_loom)]
    pub(crate) struct Release(loom::sync::Notify);

    #[cfg(shardwheel_loom)]
    impl Release {
        pub(crate) fn new() -> Self {
            Self(loom::sync::Notify::new())
        }

        pub(crate) fn open(&self) {
            self.0.notify();
        }

        pub(crate) fn wait(&self) {
            self.0.wait();
        }
    }

    #[cfg(not(shardwheel_loom))]
    pub(crate) struct Release(std::sync::atomic::AtomicBool);

    #[cfg(not(shardwheel_loom))]
    impl Release {
        pub(crate) fn new() -> Self {
            Self(std::sync::atomic::AtomicBool::new(false))
        }

        pub(crate) fn open(&self) {
            self.0.store(true, std::sync::atomic::Ordering::Release);
        }

        pub(crate) fn wait(&self) {
            while !self.0.load(std::sync::atomic::Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
    }
}
