//! A soak: many threads use two timers for minutes, and at the end every count balances.
//!
//! Several threads, more than there are cores, do at random what a timer allows: schedule, cancel,
//! reschedule, and wait by futures that are polled by hand. Callbacks panic, are slow, and schedule
//! and cancel others and themselves. Each timer has an [`Account`](account::Account), which reports
//! a failure when it happens (too early, twice, after a successful cancel) and which is checked
//! when the last holder drops it: one outcome, and its payload dropped once. Keys are kept long
//! after their timers have ended, and never name another timer.
//!
//! | file | what it holds |
//! |---|---|
//! | `account.rs`, `books.rs` | the outcome of one timer; counts and failures |
//! | `scene.rs` | the two timers, and what the threads share |
//! | `placing.rs`, `acts.rs` | how timers are made; what their callbacks do |
//! | `actor.rs`, `waits.rs` | what a thread does; the futures that it polls |
//! | `ending.rs`, `report.rs` | the end, and what must hold then |
//!
//! A short soak is one of the tests. The long one runs on demand:
//!
//! ```text
//! cargo test --release --test soak -- --ignored --nocapture
//! ```
//!
//! `SHARDWHEEL_SOAK_SECONDS` (600) sets its length. `SHARDWHEEL_SOAK_SEED` repeats the choices of
//! an earlier soak, but not the interleaving of the threads.

mod account;
mod actor;
mod acts;
mod books;
mod ending;
mod placing;
mod report;
mod scene;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod waits;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use actor::Actor;
use report::Memory;
use scene::Scene;

/// The length of a soak, and the seed of its threads' choices.
struct Plan {
    length: Duration,
    seed: u64,
}

impl Plan {
    fn new(seconds: u64) -> Self {
        let number = |name| std::env::var(name).ok().map(|text| text.parse().expect(name));
        let seed = number("SHARDWHEEL_SOAK_SEED").unwrap_or_else(|| fastrand::u64(..));
        Self { length: Duration::from_secs(number("SHARDWHEEL_SOAK_SECONDS").unwrap_or(seconds)), seed }
    }
}

#[test]
#[ignore = "ten minutes; on demand"]
fn soak_for_ten_minutes() {
    run(&Plan::new(600));
}

#[test]
fn soak_for_two_seconds() {
    run(&Plan { length: Duration::from_secs(2), ..Plan::new(0) });
}

/// How often memory is read.
const LOOK: Duration = Duration::from_millis(250);

fn run(plan: &Plan) {
    let threads = 2 * thread::available_parallelism().map_or(2, usize::from) + 1;
    println!("soak: {} s, {threads} threads, SHARDWHEEL_SOAK_SEED={}", plan.length.as_secs(), plan.seed);
    let (scene, pool) = Scene::new();
    let actors = (0..threads as u64).map(|number| {
        let actor = Actor::new(&scene, plan.seed.wrapping_add(number), number == 0);
        thread::spawn(move || actor.work())
    });
    let actors: Vec<_> = actors.collect();
    let memory = watch(&scene, plan);
    let unfired = ending::shut_down_at_work(&scene, pool);
    scene.stop();
    let remains = actors.into_iter().map(|actor| actor.join().expect("an actor does not panic")).collect();
    let ended = ending::end(&scene, remains, unfired);
    report::conclude(&scene, &ended, &memory);
    assert!(Arc::into_inner(scene).is_some(), "something holds an account, and by it the scene");
}

/// Lets the time pass, and looks at memory and for failures.
fn watch(scene: &Scene, plan: &Plan) -> Memory {
    let (begin, mut memory) = (Instant::now(), Memory::default());
    while begin.elapsed() < plan.length {
        thread::sleep(LOOK.min(plan.length.saturating_sub(begin.elapsed())));
        memory.look(begin.elapsed() * 2 > plan.length);
        if scene.has_complaints() {
            break;
        }
    }
    memory
}
