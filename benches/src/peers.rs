//! The suite `peers`: one shard beside other timer structures, a process for each run.

use crate::engines::{
    DelayQueue, Engine, FlatWheel, Heap, LazyHeap, Locked, QuadWheel, Tree, Unlocked, Wheel,
};
use crate::measure::clock::{burst, event_loop, idle_ticks, small, ticks};
use crate::measure::memory::memory;
use crate::measure::one_thread::random;
use crate::measure::tails::tails;
use crate::measure::two_threads::{cross_cancel, producers};
use crate::names::{MILLION, PRODUCERS, RANDOM, TAILS};
use crate::suite::{Run, Section, Sizes, Suite, runs};

const FEW: usize = 10_000;

/// A run for each structure that the tables of programs have.
macro_rules! common {
    ($measure:ident) => {
        runs!($measure: Wheel, Heap, Locked<Tree>)
    };
}

/// A run for each engine. A structure without a lock belongs to one thread.
const RANDOM_RUNS: &[Run] = runs!(
    random: Wheel, Heap, Unlocked<LazyHeap>, Locked<Tree>, Locked<DelayQueue>, Unlocked<QuadWheel>, Unlocked<FlatWheel>
);
const TAILS_RUNS: &[Run] = runs!(tails: Wheel, Heap, Locked<FlatWheel>);

pub(crate) static SUITE: Suite = Suite {
    name: "peers",
    operations: 200_000,
    pinned: true,
    // More than the largest structure takes.
    backing: 256,
    sections: &[
        // Random over 30 minutes: schedule, and fire in one call.
        Section::new(RANDOM, RANDOM_RUNS),
        Section::new(PRODUCERS, common!(producers)).with(Sizes::Many),
        // Ticks at which nothing is due.
        Section::new("tick", common!(idle_ticks)).with(Sizes::Fixed(&[0, FEW])),
        // With fewer timers, nearly all of the cost is that of the ticks.
        Section { least: 100_000, ..Section::new("ticks", common!(ticks)) },
        Section::new("loop", common!(event_loop)),
        Section::new("burst", common!(burst)).with(Sizes::Many),
        Section::new("small", common!(small)).with(Sizes::Fixed(&[FEW])),
        Section::new("cross-cancel", common!(cross_cancel)).with(Sizes::Many),
        // The numbers are those of threads on the same engine.
        Section::new(TAILS, TAILS_RUNS).with(Sizes::Fixed(&[0, 2, 4, 16])),
        // With fewer timers the pages of the program itself are too large a share.
        Section { least: MILLION, once: true, ..Section::new("memory", runs!(memory: Wheel, Heap)) },
    ],
};
