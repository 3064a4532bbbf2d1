//! The suite `peers`: one shard beside other timer structures, one thread and two, each run in a
//! process of its own.

use crate::args::label;
use crate::engines::{
    BareHeap, DelayQueue, Engine, FlatWheel, Heap, LazyHeap, Locked, QuadWheel, RingWheel, Tree, Unlocked,
    WeakQuadWheel, Wheel,
};
use crate::measure::memory::{BYTES, burst};
use crate::measure::one_thread::{ADVANCE, EXTEND, PAIR, churn, constant, extend, random, second, worst};
use crate::measure::two_threads::{two_churn, two_churn_apart, two_schedule, two_schedule_apart};
use crate::names::{ALONE, APART, BOTH, FIRE, OURS, RANDOM, SHARED, TWO_CHURN, TWO_SCHEDULE};
use crate::results::Results;
use crate::samples::{Samples, Times};
use crate::suite::{Run, Section, Sizes, Suite, runs};
use crate::table::Requirement;

const MILLION: usize = 1_000_000;
const TEN_MILLION: usize = 10_000_000;

/// Peers that threads can share as they are measured, by a lock.
const LOCKED: [&str; 4] =
    [Heap::NAME, BareHeap::NAME, <Locked<Tree> as Engine>::NAME, <Locked<DelayQueue> as Engine>::NAME];

/// A run for each engine.
macro_rules! every {
    ($measure:ident) => {
        runs!($measure: Wheel, Heap, Unlocked<LazyHeap>, BareHeap, Locked<Tree>, Locked<DelayQueue>,
            Unlocked<WeakQuadWheel>, Unlocked<QuadWheel>, Unlocked<RingWheel>, Unlocked<FlatWheel>)
    };
}

/// A run for each engine that can cancel.
macro_rules! cancelling {
    ($measure:ident) => {
        runs!($measure: Wheel, Heap, Unlocked<LazyHeap>, Locked<Tree>, Locked<DelayQueue>,
            Unlocked<WeakQuadWheel>, Unlocked<FlatWheel>)
    };
}

const TWO_CHURN_RUNS: &[Run] = runs!(
    two_churn: Wheel, Heap, Locked<Tree>, Locked<DelayQueue>;
    two_churn_apart: Unlocked<LazyHeap>, Unlocked<WeakQuadWheel>, Unlocked<FlatWheel>
);
const TWO_SCHEDULE_RUNS: &[Run] = runs!(
    two_schedule: Wheel, Heap, BareHeap, Locked<Tree>, Locked<DelayQueue>;
    two_schedule_apart: Unlocked<LazyHeap>, Unlocked<WeakQuadWheel>, Unlocked<QuadWheel>, Unlocked<RingWheel>,
        Unlocked<FlatWheel>
);

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
        Section::new("churn", "Churn over standing timers, ns a pair", cancelling!(churn))
            .with(Sizes::Fixed(&[0, 100_000, MILLION])),
        Section::new("extend", "Extend, ns a timer", cancelling!(extend)).with(Sizes::Many),
        Section::new(
            TWO_CHURN,
            "Churn over standing timers, ns a pair, all threads together",
            TWO_CHURN_RUNS,
        )
        .with(Sizes::Fixed(&[0, MILLION])),
        Section::new(TWO_SCHEDULE, "Random, used nodes, ns a timer, all threads together", TWO_SCHEDULE_RUNS)
            .with(Sizes::Many),
        Section::new(
            "worst",
            "Single moves of the clock, random, ns, the reading of the clock included",
            every!(worst),
        )
        .with(Sizes::Many),
        Section::new("memory", "Resident memory", every!(burst)).with(Sizes::Many),
    ],
};

pub(crate) fn requirements(results: &Results) -> Vec<Requirement> {
    let ours = |figure: Option<f64>| figure.map(|figure| (OURS.to_owned(), figure)).into_iter().collect();
    let mut all = Vec::new();
    for (section, what) in [(RANDOM, BOTH), ("second", BOTH), ("constant", BOTH), ("churn", PAIR)] {
        all.extend(over_locked(results, section, [what, what], 1.0));
    }
    all.extend(EXTEND.into_iter().flat_map(|what| over_locked(results, "extend", [what, what], 1.0)));
    for size in results.sizes(TWO_CHURN).into_iter().flatten() {
        let ratio = results.ratio((TWO_CHURN, Some(size)), [(ALONE, OURS), (APART, OURS)]);
        let text =
            format!("throughput of 2 threads, a shard each, over 1: {TWO_CHURN}, {} timers", label(size));
        all.push(Requirement::at_least(1.8, text, ours(ratio)));
    }
    all.extend(over_locked(results, TWO_CHURN, [SHARED, APART], 3.0));
    all.extend(over_locked(results, TWO_SCHEDULE, [SHARED, SHARED], 1.0));
    for (section, size, what, peer, times) in [
        (RANDOM, MILLION, BOTH, LOCKED[0], 3.0),
        (RANDOM, TEN_MILLION, BOTH, LOCKED[0], 8.0),
        ("second", MILLION, FIRE, LOCKED[0], 4.0),
        ("constant", MILLION, FIRE, LOCKED[0], 4.0),
        ("extend", MILLION, EXTEND[0], LOCKED[3], 3.0),
    ] {
        let readings = results.against((section, Some(size)), [what, what], &[peer]);
        let text = format!("cost of {peer} over ours: {section}, {what}, {} timers", label(size));
        all.push(Requirement::at_least(times, text, readings));
    }
    let growth = results.growth(RANDOM, [MILLION, TEN_MILLION], BOTH);
    all.push(Requirement::at_most(1.2, format!("{BOTH}, random, with 10M timers over 1M"), growth));
    all.push(Requirement::at_most(80.0, BYTES, results.medians("memory", BYTES)));
    // The system can only make an advance longer, so the least of the rounds counts.
    let longest = Times::longest_of(ADVANCE);
    let least = results.get(("worst", Some(TEN_MILLION)), &longest, OURS).map(Samples::least);
    all.push(Requirement::at_most(
        2e6,
        format!("{longest}, with 10M timers, in the best round, ns"),
        ours(least),
    ));
    all
}

/// Returns a requirement for each number of timers: every peer behind a lock costs more than ours,
/// in the same figure or in another.
fn over_locked(results: &Results, section: &str, what: [&str; 2], times: f64) -> Vec<Requirement> {
    let columns = if what[0] == what[1] { what[0].to_owned() } else { what.join(" / ") };
    let judge = |size: usize| {
        let text =
            format!("cost of a peer behind a lock over ours: {section}, {columns}, {} timers", label(size));
        Requirement::at_least(times, text, results.against((section, Some(size)), what, &LOCKED))
    };
    results.sizes(section).into_iter().flatten().map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Outcome;

    #[test]
    fn locked_peers_count_and_others_do_not() {
        let mut results = Results::default();
        let mut verdict = |engine, cost| {
            results.add(("churn", Some(0)), engine, Outcome::of(PAIR, cost));
            requirements(&results)[0].verdict.clone()
        };
        assert_eq!(verdict(Wheel::NAME, 10.0), "not measured");
        assert_eq!(verdict("heap without a lock", 5.0), "not measured");
        assert_eq!(verdict(Heap::NAME, 12.0), "met");
        assert_eq!(verdict("tree", 9.0), "**NOT met**");
    }
}
