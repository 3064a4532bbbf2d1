//! A simulation: one seed determines everything, and a failing seed replays exactly.
//!
//! | file | what it holds |
//! |---|---|
//! | `seeds.rs` | plays seeds, each alone on a thread of its own; the message of a failure |
//! | `log.rs`, `draw.rs` | the log, printed or hashed; what is random: a seed, or bytes |
//! | `timers/` | timers on a manual clock: producers, callbacks, futures, stalls, shutdowns |
//! | `shards.rs` | several shards, with a clock that goes backwards and jumps, and limited drains |
//! | `queues.rs` | a delay queue on a driven timer, whose clock is set back and forth |
//!
//! Beside each simulation stands a model, a map of what is pending, which knows when each timer
//! must fire: with a manual clock there is one right answer.
//!
//! ```text
//! cargo test --test simulation                                a hundred seeds of each
//! SHARDWHEEL_SIM_SEEDS=1000 cargo test --release --test simulation
//! SHARDWHEEL_SIM_SEED=17 cargo test --test simulation -- --nocapture      that seed, with its log
//! ```

#[path = "../model/bytes.rs"]
mod bytes;
#[allow(dead_code, reason = "as `shards`")]
mod draw;
mod log;
mod queues;
mod seeds;
#[allow(dead_code, reason = "bytes are for `tests/model` and the fuzzers")]
mod shards;
#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;
mod timers;

use seeds::{Scenario, alone};

const TIMERS: Scenario = Scenario { name: "timers", play: timers::play };
const SHARDS: Scenario = Scenario { name: "shards", play: shards::play_seed };
const QUEUES: Scenario = Scenario { name: "queues", play: queues::play };

/// Timers on a manual clock do what the model says, for each seed.
#[test]
fn timers_match_their_model() {
    seeds::run(TIMERS);
}

/// Shards on a clock that jumps and goes backwards do what the model says, for each seed.
#[test]
fn shards_match_their_model() {
    seeds::run(SHARDS);
}

/// A delay queue on a clock that is set back gives each value in time, for each seed.
#[test]
fn queues_match_their_model() {
    seeds::run(QUEUES);
}

/// A seed replays exactly, although other simulations have run in the process before.
#[test]
fn a_seed_replays_exactly() {
    for scenario in [TIMERS, SHARDS, QUEUES] {
        let hashes = |seeds: &mut dyn Iterator<Item = u64>| {
            let mut hashes: Vec<_> = seeds.map(|seed| (seed, alone(scenario, seed, false).hash)).collect();
            hashes.sort_unstable();
            hashes
        };
        let first = hashes(&mut (0..12));
        assert_eq!(hashes(&mut (0..12).rev()), first, "{}", scenario.name);
        assert!(first.windows(2).all(|pair| pair[0].1 != pair[1].1), "seeds that do the same");
    }
}
