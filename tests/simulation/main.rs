//! A simulation of timers in virtual time: one seed determines everything, and a failing seed
//! replays exactly. Beside it stands a model, a map of what is pending, which knows when each timer
//! must fire: with a manual clock there is one right answer. (`tests/model` does this for a shard.)
//!
//! | file | what it holds |
//! |---|---|
//! | `log.rs`, `draw.rs` | the log, printed or hashed; what is random |
//! | `timers/` | timers on a manual clock: producers, callbacks, sleeps, stalls, shutdowns |
//!
//! ```text
//! cargo test --test simulation                                forty seeds
//! SHARDWHEEL_SIM_SEEDS=1000 cargo test --release --test simulation
//! SHARDWHEEL_SIM_SEED=17 cargo test --test simulation -- --nocapture      that seed, with its log
//! ```
//!
//! The order in which timers of one tick fire depends on their nodes, and so on when the reclaimer
//! let nodes be reused, which every thread of the process can delay. So one simulation runs at a
//! time, on a thread of its own: the reclaimer then waits for no other thread, and keeps nothing of
//! earlier simulations.

mod draw;
mod log;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod timers;

use std::env;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use log::{Log, Played};

/// Seeds, unless the environment names a number.
const SEEDS: u64 = 40;

/// Virtual seconds per seed that are the least, on average.
const LEAST_SECONDS: u64 = 1_000_000;

/// Timers on a manual clock do what the model says, for each seed, or for the one that the
/// environment names.
#[test]
fn timers_match_their_model() {
    let number = |name| env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    if let Some(seed) = number("SHARDWHEEL_SIM_SEED") {
        println!("seed {seed}");
        alone(seed, true);
        return;
    }
    let seeds = number("SHARDWHEEL_SIM_SEEDS").unwrap_or(SEEDS);
    let (begin, mut seconds, mut fired) = (Instant::now(), 0, 0);
    for seed in 0..seeds {
        let played = alone(seed, false);
        seconds += played.seconds;
        fired += played.fired;
    }
    let took = begin.elapsed();
    println!("{seeds} seeds, {seconds} virtual seconds, {fired} timers fired, {took:.1?}");
    assert!(seconds >= seeds * LEAST_SECONDS, "a simulation that hardly moves its clock");
}

/// A seed replays exactly, although other simulations have run in the process before.
#[test]
fn a_seed_replays_exactly() {
    let hashes = |seeds: &mut dyn Iterator<Item = u64>| {
        let mut hashes: Vec<_> = seeds.map(|seed| (seed, alone(seed, false).hash)).collect();
        hashes.sort_unstable();
        hashes
    };
    let first = hashes(&mut (0..12));
    assert_eq!(hashes(&mut (0..12).rev()), first);
    assert!(first.windows(2).all(|pair| pair[0].1 != pair[1].1), "seeds that do the same");
}

/// Plays one seed while no other is being played.
fn alone(seed: u64, is_printed: bool) -> Played {
    static STAGE: Mutex<()> = Mutex::new(());
    let _on_stage = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let actor = thread::spawn(move || timers::play(seed, Log::new(is_printed)));
    actor.join().unwrap_or_else(|panic| {
        let how = format!("SHARDWHEEL_SIM_SEED={seed} cargo test --test simulation -- --nocapture");
        eprintln!("seed {seed} fails; replay it: {how}");
        resume_unwind(panic)
    })
}
