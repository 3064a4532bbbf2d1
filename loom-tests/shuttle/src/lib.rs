//! Shared by all models: how a whole timer runs under random schedules, and a ledger of what has
//! become of its timers.
//!
//! Everything that threads of the crate share is Shuttle's with `--cfg shardwheel_shuttle`, and
//! time is a task of the model (`loom-tests/testing/shuttle.rs`). So one seed makes one schedule,
//! and a schedule that fails is printed as a string, which runs it again:
//!
//! ```text
//! SHARDWHEEL_SCHEDULE=91010c... cargo test --release a_name -- --nocapture
//! ```

#![cfg(shardwheel_shuttle)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use shardwheel::{Timer, TimerBuilder};
use shuttle::scheduler::{
    PctScheduler, RandomScheduler, ReplayScheduler, Scheduler, UncontrolledNondeterminismCheckScheduler,
};
use shuttle::{Config, Runner};

pub use shardwheel::testing::VirtualClock;

/// Schedules of each scheduler, unless `SHARDWHEEL_SCHEDULES` sets another number.
const SCHEDULES: usize = 500;

/// The seed of both schedulers, unless `SHUTTLE_RANDOM_SEED` sets another one.
const SEED: u64 = 37;

/// How often the scheduler of priorities changes a priority in one schedule, plus one.
const DEPTH: usize = 4;

/// Callbacks and panics need more than Shuttle's 60 kB.
const STACK: usize = 1 << 18;

/// A schedule takes thousands of steps. One that takes a million has a thread that waits in vain.
const STEPS: usize = 1_000_000;

/// Schedules that run twice, to see that nothing but the schedule decides what a model does.
const TWICE: usize = 100;

/// Runs a model under random schedules, then under schedules by priorities (PCT). With a schedule
/// in `SHARDWHEEL_SCHEDULE` it runs that one alone.
pub fn explore(name: &str, body: impl Fn() + Send + Sync + 'static) {
    explore_all(name, Arc::new(body));
}

/// As [`explore`], of a model that has two outcomes. Each must come.
pub fn explore_both(name: &str, body: impl Fn() -> bool + Send + Sync + 'static) {
    let seen = Arc::new([false, true].map(|_| AtomicUsize::new(0)));
    let counts = Arc::clone(&seen);
    let body = move || {
        counts[usize::from(body())].fetch_add(1, Ordering::SeqCst);
    };
    if explore_all(name, Arc::new(body)) {
        let [first, second] = [0, 1].map(|outcome| seen[outcome].load(Ordering::SeqCst));
        assert!(first > 0 && second > 0, "{name}: {first} schedules have one outcome, {second} the other");
    }
}

/// Returns whether there was more than one schedule.
fn explore_all(name: &str, body: Arc<impl Fn() + Send + Sync + 'static>) -> bool {
    if let Ok(schedule) = std::env::var("SHARDWHEEL_SCHEDULE") {
        run(ReplayScheduler::new_from_encoded(&schedule), &body);
        return false;
    }
    let schedules = std::env::var("SHARDWHEEL_SCHEDULES").ok();
    let schedules = schedules.map_or(SCHEDULES, |number| number.parse().expect("a number"));
    let random = |schedules| RandomScheduler::new_from_seed(SEED, schedules);
    run(UncontrolledNondeterminismCheckScheduler::new(random(TWICE)), &body);
    let begin = Instant::now();
    run(random(schedules), &body);
    let random = begin.elapsed();
    run(PctScheduler::new_from_seed(SEED, DEPTH, schedules), &body);
    let (random, priorities) = (random.as_secs_f64(), (begin.elapsed() - random).as_secs_f64());
    println!(
        "{name}: {schedules} random schedules in {random:.1} s, as many by priorities in {priorities:.1} s"
    );
    true
}

fn run(scheduler: impl Scheduler + 'static, body: &Arc<impl Fn() + Send + Sync + 'static>) {
    let body = Arc::clone(body);
    Runner::new(scheduler, config()).run(move || {
        VirtualClock::start();
        body();
    });
}

/// The settings of all models.
fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.silence_warnings = true;
    config.max_steps = shuttle::MaxSteps::FailAfter(STEPS);
    config
}

/// A builder of timers with small wheels, so that a model's timers take all paths.
pub fn timer() -> TimerBuilder {
    Timer::builder().wheel_size(4)
}

/// A duration of so many milliseconds.
#[must_use]
pub fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

/// What has become of each callback of a model, by its number.
#[derive(Clone)]
pub struct Ledger(Arc<Vec<Account>>);

#[derive(Default)]
struct Account {
    ran: AtomicUsize,
    early: AtomicUsize,
    dropped: AtomicUsize,
}

/// What a callback owns: it says when the callback runs and is dropped.
pub struct Token {
    number: usize,
    due: Instant,
    ledger: Ledger,
}

impl Ledger {
    /// A ledger of so many callbacks.
    #[must_use]
    pub fn of(callbacks: usize) -> Self {
        Self(Arc::new((0..callbacks).map(|_| Account::default()).collect()))
    }

    /// The token of a callback that must not run until `delay` has passed from now.
    #[must_use]
    pub fn token(&self, number: usize, delay: Duration) -> Token {
        Token { number, due: VirtualClock::now() + delay, ledger: self.clone() }
    }

    /// How often a callback has run.
    #[must_use]
    pub fn ran(&self, number: usize) -> usize {
        // Ordering: SeqCst, as all of Shuttle's are.
        self.0[number].ran.load(Ordering::SeqCst)
    }

    /// Checks that no callback has run too early, and that each was dropped once.
    pub fn check(&self) {
        for (number, account) in self.0.iter().enumerate() {
            let counts = [&account.early, &account.dropped].map(|count| count.load(Ordering::SeqCst));
            assert_eq!(counts, [0, 1], "callback {number}: early, dropped");
        }
    }
}

impl Token {
    /// Notes that the callback runs.
    pub fn run(&self) {
        let account = &self.ledger.0[self.number];
        account.ran.fetch_add(1, Ordering::SeqCst);
        if VirtualClock::now() < self.due {
            account.early.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.ledger.0[self.number].dropped.fetch_add(1, Ordering::SeqCst);
    }
}
