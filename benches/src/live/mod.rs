//! The suite `live`: `Timer` beside timers that run in real time, each run in a process of its own.

mod costs;
mod fire;
mod ledger;
mod own_thread;
mod switches;
mod timer;

use crate::names::{LIVE_FIRE, MILLION};
use crate::suite::{Run, Section, Sizes, Suite, runs};
use costs::{idle, schedule, sleeps};
use fire::fire;
use own_thread::{Exact, Flat};
use timer::{Live, OneShard, Shardwheel, ShardwheelSleeps, Tokio, TokioAlternative};

pub(crate) static SUITE: Suite = Suite {
    name: "live",
    title: "Live timers",
    method: "real time, a process for each run, the engines in turns",
    options: &[("timers", "100k,1M"), ("span", "10")],
    operations: 1,
    pinned: false,
    backing: 0,
    sections: &[
        Section::new(LIVE_FIRE, "Fire: due evenly, placed from two threads, ticks of 1 ms", FIRE_RUNS)
            .with(Sizes::Many),
        Section::new("sleep", "Sleeps of 30 minutes, all threads together", SLEEP_RUNS)
            .with(Sizes::Fixed(&[SLEEPS])),
        Section::new(
            "schedule",
            "Closures, one thread, within 30 minutes",
            runs!(schedule: Shardwheel, Exact),
        )
        .with(Sizes::Fixed(&[MILLION])),
        Section::new("idle", "A timer an hour away, watched for 5 s", IDLE_RUNS).with(Sizes::Fixed(&[1])),
    ],
};

/// Sleeps of each thread.
const SLEEPS: usize = 2 * MILLION;

const FIRE_RUNS: &[Run] =
    runs!(fire: Shardwheel, ShardwheelSleeps, OneShard, Tokio, TokioAlternative, Exact, Flat);
const SLEEP_RUNS: &[Run] = runs!(sleeps: Shardwheel, Tokio);
const IDLE_RUNS: &[Run] = runs!(idle: Shardwheel, Tokio, TokioAlternative, Exact);
