//! The suite `live`: `Timer` beside timers that run in real time, each run in a process of its own.

mod costs;
mod fire;
mod ledger;
mod own_thread;
mod timer;

use crate::names::{LIVE_FIRE, MILLION};
use crate::suite::{Run, Section, Sizes, Suite, runs};
use costs::{idle, schedule, sleeps};
use fire::fire;
use own_thread::HeapThread;
use timer::{Live, OneShard, Shardwheel, ShardwheelSleeps, Tokio, TokioAlternative};

pub(crate) static SUITE: Suite = Suite {
    name: "live",
    operations: 1,
    pinned: false,
    backing: 0,
    sections: &[
        Section::new(LIVE_FIRE, FIRE_RUNS).with(Sizes::Many),
        Section::new("sleep", SLEEP_RUNS).with(Sizes::Fixed(&[SLEEPS])),
        Section::new("schedule", runs!(schedule: Shardwheel, HeapThread)).with(Sizes::Fixed(&[MILLION])),
        Section::new("idle", IDLE_RUNS).with(Sizes::Fixed(&[1])),
    ],
};

/// Sleeps of each thread.
const SLEEPS: usize = 2 * MILLION;

const FIRE_RUNS: &[Run] =
    runs!(fire: Shardwheel, ShardwheelSleeps, OneShard, Tokio, TokioAlternative, HeapThread);
const SLEEP_RUNS: &[Run] = runs!(sleeps: Shardwheel, Tokio);
const IDLE_RUNS: &[Run] = runs!(idle: Shardwheel, Tokio, TokioAlternative, HeapThread);
