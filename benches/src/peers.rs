//! The suite `peers`: one shard beside other timer structures, a process for each run.

use crate::args::label;
use crate::engines::{
    BareHeap, DelayQueue, Engine, FlatWheel, Heap, LazyHeap, Locked, QuadWheel, RingWheel, Tree, Unlocked,
    WeakQuadWheel, Wheel,
};
use crate::measure::clock::{
    BESIDE, IDLE, INTO, burst, event_loop, idle_ticks, idle_ticks_beside, small, ticks, worst,
};
use crate::measure::one_thread::{EXTEND, PAIR, churn, constant, extend, random, second};
use crate::measure::tails::tails;
use crate::measure::two_threads::{CROSS, OPERATIONS, cross_cancel, producers, producers_of_a_lock};
use crate::names::{APART, BOTH, FIRE, MILLION, OURS, PRODUCERS, RANDOM, SHARED, TAILS, TEN_MILLION};
use crate::results::Results;
use crate::rhythm::{LOOPED, TICKED};
use crate::samples::{Samples, Times};
use crate::suite::{Run, Section, Sizes, Suite, runs};
use crate::table::Requirement;

/// Peers behind a lock, which threads can share.
const LOCKED: [&str; 4] = [Heap::NAME, BareHeap::NAME, <Locked<Tree> as Engine>::NAME, Queue::NAME];

const FEW: usize = 10_000;
/// As many threads as may hold the node of a cancelled timer.
const THREADS: usize = 64;
const HEAP: &[&str] = &[LOCKED[0]];

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

const BESIDE_RUNS: &[Run] = runs!(idle_ticks_beside: Wheel, Heap, Locked<Tree>);
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
    apart: true,
    // More than the largest structure takes.
    backing: 256,
    sections: &[
        Section::new(RANDOM, "Random over 30 minutes, ns a timer", every!(random)),
        Section::new("second", "All due within one second, in random order, ns a timer", every!(second)),
        Section::new("constant", "Constant delay, placed within one second, ns a timer", every!(constant)),
        Section::new("churn", "Churn over standing timers, ns a pair", common!(churn, Queue, Flat))
            .with(Sizes::Fixed(&[0, 100_000, MILLION])),
        Section::new("extend", "Extend, ns a timer", common!(extend, Queue, Flat)).with(Sizes::Many),
        Section::new(PRODUCERS, "Producers, ns a timer, all threads together", PRODUCERS_RUNS)
            .with(Sizes::Many),
        Section::new("worst", "Single moves of the clock, random, ns", every!(worst)).with(Sizes::Many),
        Section::new("tick", "Ticks at which nothing is due, ns a tick", common!(idle_ticks, Quad, Flat))
            .with(Sizes::Fixed(&[0, FEW])),
        Section::new(
            "tick-beside",
            "Ticks beside that many threads that have cancelled, ns a tick",
            BESIDE_RUNS,
        )
        .with(Sizes::Fixed(&[0, 1, THREADS])),
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
    ],
};

/// How many times our cost the peers' must be at least: section, number of timers, figure, peers.
const AHEAD: [(&str, usize, &str, &[&str], f64); 8] = [
    (RANDOM, MILLION, BOTH, HEAP, 3.0),
    (RANDOM, TEN_MILLION, BOTH, HEAP, 8.0),
    ("second", MILLION, FIRE, HEAP, 4.0),
    ("constant", MILLION, FIRE, HEAP, 4.0),
    ("extend", MILLION, EXTEND[0], &[LOCKED[3]], 3.0),
    ("ticks", MILLION, TICKED[0], &[LOCKED[2]], 1.8),
    ("ticks", TEN_MILLION, TICKED[0], &[LOCKED[0], LOCKED[2]], 1.0),
    ("small", FEW, BOTH, HEAP, 1.0),
];

/// The greatest cost, in ns: section, number of timers, figure.
const LIMITS: [(&str, usize, &str, f64); 18] = [
    ("worst", TEN_MILLION, "advance, tick by tick, longest", 2e6),
    ("tick", 0, IDLE, 15.0),
    ("tick", FEW, IDLE, 15.0),
    // Four times a tick beside none, which took 8.6 ns on an Intel processor.
    ("tick-beside", THREADS, BESIDE, 35.0),
    ("ticks", 100_000, TICKED[0], 400.0),
    ("ticks", MILLION, TICKED[0], 100.0),
    ("ticks", TEN_MILLION, TICKED[0], 105.0),
    ("loop", FEW, LOOPED[0], 150.0),
    ("loop", 100_000, LOOPED[0], 140.0),
    ("loop", MILLION, LOOPED[0], 120.0),
    ("burst", MILLION, "advance, tick by tick, longest", 150e3),
    ("burst", TEN_MILLION, "advance, tick by tick, longest", 400e3),
    ("burst", MILLION, "advance, event loop, longest", 150e3),
    ("burst", TEN_MILLION, "advance, event loop, longest", 400e3),
    ("burst", MILLION, TICKED[0], 50.0),
    ("burst", TEN_MILLION, TICKED[0], 25.0),
    ("small", FEW, INTO, 28.0),
    ("cross-cancel", MILLION, CROSS, 70.0),
];

pub(crate) fn requirements(results: &Results) -> Vec<Requirement> {
    let mut all = Vec::new();
    for (section, what) in [(RANDOM, BOTH), ("second", BOTH), ("constant", BOTH), ("churn", PAIR)] {
        all.extend(over_locked(results, section, [what; 2], 1.0));
    }
    // In random order each timer has to come from memory: 1.1 times the cost of a peer will do.
    for (what, times) in EXTEND.into_iter().zip([1.0, 0.91]) {
        all.extend(over_locked(results, "extend", [what; 2], times));
    }
    let [_, schedule, pair] =
        OPERATIONS.map(|operation| [APART, SHARED].map(|layout| format!("{operation}: {layout}")));
    all.extend(over_locked(results, PRODUCERS, [&pair[1], &pair[0]], 3.0));
    all.extend(over_locked(results, PRODUCERS, [&schedule[1]; 2], 1.0));
    let ahead = |(section, size, what, peers, times)| results.ahead((section, size), [what; 2], peers, times);
    all.extend(AHEAD.map(ahead));
    let growth = results.growth(RANDOM, [MILLION, TEN_MILLION], BOTH);
    all.push(Requirement::at_most(1.2, format!("{BOTH}, random, with 10M timers over 1M"), growth));
    all.extend(LIMITS.map(|limit| within(results, limit)));
    all
}

/// The system can only make an advance longer, so the least of the rounds counts for the longest.
fn within(results: &Results, (section, size, what, limit): (&str, usize, &str, f64)) -> Requirement {
    let (of, round): (fn(&Samples) -> f64, _) = match what.ends_with(Times::LONGEST) {
        true => (Samples::least, ", in the best round"),
        false => (Samples::median, ""),
    };
    let reading = results.get((section, size), what, OURS).map(|it| (OURS.to_owned(), of(it)));
    let text = format!("{section}: {what}, {} timers{round}, ns", label(size));
    Requirement::at_most(limit, text, reading.into_iter().collect())
}

/// Every peer behind a lock costs more than ours, in the same figure or in another.
fn over_locked(results: &Results, section: &str, what: [&str; 2], times: f64) -> Vec<Requirement> {
    let sizes = results.sizes(section).into_iter();
    sizes.map(|size| results.ahead((section, size), what, &LOCKED, times)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::suite::{Outcome, Task};

    #[test]
    fn every_figure_with_a_limit_is_measured() {
        let named = AHEAD.map(|it| (it.0, it.2)).into_iter().chain(LIMITS.map(|it| (it.0, it.2)));
        for (section, what) in named.collect::<BTreeSet<_>>() {
            let runs = SUITE.sections.iter().find(|it| it.name == section).map(|it| it.runs);
            let outcome = (runs.unwrap()[0].measure)(&Task::small(1000));
            assert!(outcome.figures.iter().any(|figure| figure.0 == what), "{section}: {what}");
        }
    }

    #[test]
    fn locked_peers_count_and_others_do_not() {
        let mut results = Results::default();
        let mut verdict = |engine, cost| {
            results.add(("churn", 0), engine, Outcome::of(PAIR, cost));
            requirements(&results)[0].verdict.clone()
        };
        assert_eq!(verdict(Wheel::NAME, 10.0), "not measured");
        assert_eq!(verdict("heap without a lock", 5.0), "not measured");
        assert_eq!(verdict(Heap::NAME, 12.0), "met");
        assert_eq!(verdict("tree", 9.0), "**NOT met**");
    }
}
