//! A soak: many threads use two timers, and at the end every count balances.
//!
//! The threads do at random what a timer allows: schedule, cancel, reschedule, and wait by sleeps
//! that are polled by hand. Callbacks panic, are slow, and schedule and cancel others and
//! themselves. What became of each payload stands in a ledger, which is checked when both timers
//! have ended: one outcome, one drop, never early. Keys are kept long after their timers have
//! ended, and never name another timer.
//!
//! | file | what it holds |
//! |---|---|
//! | `scene.rs` | the two timers, what the threads share, and the end |
//! | `calls.rs` | how timers are made, cancelled and moved; what their callbacks do |
//! | `pool.rs` | what a thread does, with the keys and the sleeps of a pool |
//!
//! A [`Plan`] has the numbers: few threads for long, or crowds of threads that come and go. A short
//! soak is one of the tests. The long one, of many rounds, runs on demand:
//!
//! ```text
//! cargo test --release --test soak -- --ignored --nocapture
//! ```
//!
//! `SHARDWHEEL_SOAK_SECONDS` (600) sets its length. `SHARDWHEEL_SOAK_SEED` repeats the choices of
//! an earlier soak, but not the interleaving of the threads.

mod calls;
mod pool;
mod scene;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;

use std::sync::Arc;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use fastrand::Rng;

use scene::Scene;
use support::{ms, resident, secs};

/// Timers of a burst, with which a round of a soak begins.
const BURST: usize = 100_000;

/// The load of one round. Each round has its own timers.
struct Plan {
    rounds: u64,
    length: Duration,
    /// Threads that are alive at once.
    threads: usize,
    /// Steps between two rests of a thread.
    steps: usize,
    /// How often a thread rests. Then it ends, and another one begins.
    rests: usize,
    burst: usize,
}

impl Plan {
    fn soak(rounds: u64, length: Duration) -> Self {
        let threads = 2 * thread::available_parallelism().map_or(2, usize::from) + 1;
        Self { rounds, length, threads, steps: 256, rests: usize::MAX, burst: BURST }
    }

    fn crowd(threads: usize) -> Self {
        Self { rounds: 1, length: secs(1), threads, steps: 16, rests: 1, burst: 0 }
    }
}

#[test]
#[ignore = "ten minutes; on demand"]
fn soak_for_ten_minutes() {
    run(&Plan::soak(number("SHARDWHEEL_SOAK_SECONDS").unwrap_or(600) / 10, secs(10)));
}

#[test]
fn soak_for_two_seconds() {
    run(&Plan::soak(1, secs(2)));
}

/// Thousands of threads, each of which does a few steps and ends.
#[test]
fn no_timer_of_threads_that_come_and_go_is_lost() {
    run(&Plan::crowd(50));
}

#[test]
fn no_timer_of_a_thousand_threads_is_lost() {
    run(&Plan::crowd(1_000));
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect(name))
}

fn run(plan: &Plan) {
    let seed = number("SHARDWHEEL_SOAK_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("{} threads, SHARDWHEEL_SOAK_SEED={seed}", plan.threads);
    let mut rng = Rng::with_seed(seed);
    let most: Vec<_> = (0..plan.rounds).map(|_| play(plan, &mut rng)).collect();
    // A few rounds prove nothing.
    if cfg!(target_os = "linux") && plan.rounds >= 10 {
        let (first, second) = most.split_at(most.len() / 2);
        println!("most resident bytes: {first:?} in the first half, {second:?} in the second");
        assert!(
            second.iter().max() <= first.iter().max().map(|most| most + most / 4).as_ref(),
            "memory grows"
        );
    }
}

/// Plays a round. Returns the most resident memory.
fn play(plan: &Plan, rng: &mut Rng) -> usize {
    let (scene, begin, mut most) = (Scene::new(), Instant::now(), 0);
    thread::scope(|scope| {
        for number in 0..plan.threads {
            let (scene, rng) = (&scene, rng.fork());
            scope.spawn(move || live(scope, scene, plan, number, rng));
        }
        scene.burst(plan.burst, rng);
        while begin.elapsed() < plan.length && scene.complaints.len() == 0 {
            thread::sleep(ms(50));
            most = most.max(if cfg!(target_os = "linux") { resident() } else { 0 });
        }
        scene.end_at_work();
        scene.stop();
    });
    scene.end_at_rest(rng);
    scene::conclude(&scene);
    most
}

/// The life of a thread. At its end the next one begins.
fn live<'a>(scope: &'a Scope<'a, '_>, scene: &'a Arc<Scene>, plan: &'a Plan, number: usize, mut rng: Rng) {
    for _ in 0..plan.rests {
        if scene.has_stopped() {
            return;
        }
        (0..plan.steps).for_each(|_| scene.step(number, &mut rng));
        // Of a thousand threads, most rest.
        let crowd = 1 + plan.threads as u32 / 50;
        thread::sleep(crowd * Duration::from_micros(rng.u64(500..6_000)));
    }
    scope.spawn(move || live(scope, scene, plan, number, rng));
}
