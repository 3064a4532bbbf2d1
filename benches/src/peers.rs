//! The suite `peers`: one shard beside other timer structures, a process for each run.

use crate::engines::{
    BareHeap, DelayQueue, Engine, FlatWheel, Heap, LazyHeap, Locked, QuadWheel, RingWheel, Tree, Unlocked,
    WeakQuadWheel, Wheel,
};
use crate::measure::clock::{burst, event_loop, idle_ticks, small, ticks};
use crate::measure::memory::memory;
use crate::measure::one_thread::random;
use crate::measure::tails::tails;
use crate::measure::two_threads::{cross_cancel, producers, producers_of_a_lock};
use crate::names::{MILLION, PRODUCERS, RANDOM, TAILS};
use crate::suite::{Run, Section, Sizes, Suite, runs};

const FEW: usize = 10_000;

/// A run for each engine that can cancel and has a next expiration, and for `$more`.
macro_rules! common {
    ($measure:ident $(, $more:ty)*) => {
        runs!($measure: Wheel, Heap, Unlocked<LazyHeap>, Locked<Tree>, Unlocked<WeakQuadWheel> $(, $more)*)
    };
}

/// A run for each engine.
macro_rules! every {
    ($measure:ident) => {
        common!($measure, BareHeap, Queue, Quad, Unlocked<RingWheel>, Flat)
    };
}

type Queue = Locked<DelayQueue>;
type Quad = Unlocked<QuadWheel>;
type Flat = Unlocked<FlatWheel>;

const TAILS_RUNS: &[Run] = runs!(tails: Wheel, Heap, Locked<FlatWheel>);
const CROSS_RUNS: &[Run] = runs!(cross_cancel: Wheel, Heap, Locked<Tree>);
const PRODUCERS_RUNS: &[Run] = runs!(producers: Wheel; producers_of_a_lock: Heap, Locked<Tree>, Queue);

pub(crate) static SUITE: Suite = Suite {
    name: "peers",
    title: "Timer structures on a virtual clock",
    method: "a process for each run, the engines in turns; ticks of 1 ms; an engine without a row cannot cancel, and \
             an engine without a lock belongs to one thread",
    options: &[("sizes", "10k,100k,1M"), ("timers", "1M")],
    operations: 200_000,
    pinned: true,
    // More than the largest structure takes.
    backing: 256,
    sections: &[
        Section::new(RANDOM, "Random over 30 minutes, ns a timer", every!(random)),
        Section::new(PRODUCERS, "Producers, ns a timer, all threads together", PRODUCERS_RUNS)
            .with(Sizes::Many),
        Section::new("tick", "Ticks at which nothing is due, ns a tick", common!(idle_ticks, Quad, Flat))
            .with(Sizes::Fixed(&[0, FEW])),
        Section {
            // With fewer timers, nearly all of the cost is that of the ticks.
            least: 100_000,
            ..Section::new("ticks", "Fire tick by tick, random, ns a timer", common!(ticks, Quad, Flat))
        },
        Section::new("loop", "Fire as an event loop, random, ns a timer", common!(event_loop, Quad)),
        Section::new("burst", "Placed within one second, ns a timer, ns an advance", common!(burst, Quad))
            .with(Sizes::Many),
        Section::new("small", "Few timers, in nodes used before, ns a timer", common!(small, Quad, Flat))
            .with(Sizes::Fixed(&[FEW])),
        Section::new("cross-cancel", "Cancelled in random order by another thread, ns a cancel", CROSS_RUNS)
            .with(Sizes::Many),
        Section::new(TAILS, "Single operations beside that many threads on the same engine, ns", TAILS_RUNS)
            .with(Sizes::Fixed(&[0, 2, 4, 16])),
        // With fewer timers the pages of the program itself are too large a share.
        Section {
            least: MILLION,
            once: true,
            ..Section::new("memory", "Memory (resident, one measurement each)", runs!(memory: Wheel, Heap))
        },
    ],
};
