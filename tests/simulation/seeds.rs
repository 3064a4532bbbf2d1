//! Plays seeds, one after the other.
//!
//! The order in which timers of one tick fire depends on their nodes, and so on when the reclaimer
//! let nodes be reused, which every thread of the process can delay. So one simulation runs at a
//! time, on a thread of its own: the reclaimer then waits for no other thread, and keeps nothing of
//! earlier simulations.

use std::env;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::log::{Log, Played};

/// Seeds, unless the environment names a number.
const SEEDS: u64 = 100;

/// Virtual seconds per seed that are the least, on average.
const LEAST_SECONDS: u64 = 1_000_000;

#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) play: fn(u64, Log) -> Played,
}

/// Plays all seeds, or the seed that the environment names.
pub(crate) fn run(scenario: Scenario) {
    let number = |name| env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    if let Some(seed) = number("SHARDWHEEL_SIM_SEED") {
        println!("{}: seed {seed}", scenario.name);
        alone(scenario, seed, true);
        return;
    }
    let seeds = number("SHARDWHEEL_SIM_SEEDS").unwrap_or(SEEDS);
    let (begin, mut seconds, mut fired) = (Instant::now(), 0, 0);
    for seed in 0..seeds {
        let played = alone(scenario, seed, false);
        seconds += played.seconds;
        fired += played.fired;
    }
    let took = begin.elapsed();
    println!("{}: {seeds} seeds, {seconds} virtual seconds, {fired} timers fired, {took:.1?}", scenario.name);
    assert!(seconds >= seeds * LEAST_SECONDS, "a simulation that hardly moves its clock");
}

/// Plays one seed while no other is being played.
pub(crate) fn alone(scenario: Scenario, seed: u64, is_printed: bool) -> Played {
    static STAGE: Mutex<()> = Mutex::new(());
    let _on_stage = STAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let actor = thread::spawn(move || (scenario.play)(seed, Log::new(is_printed)));
    actor.join().unwrap_or_else(|panic| {
        let how = format!("SHARDWHEEL_SIM_SEED={seed} cargo test --test simulation -- --nocapture");
        eprintln!("{}, seed {seed} fails; replay it: {how}", scenario.name);
        resume_unwind(panic)
    })
}
