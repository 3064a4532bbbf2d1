//! The suite `report`: one shard beside a heap behind a mutex, in one process.

use crate::args::label;
use crate::engines::{BareHeap, Engine, Heap, Wheel};
use crate::measure::memory::{BYTES, LEFT, burst, growth, growth_advanced, growth_alone};
use crate::measure::one_thread::{
    CANCEL_ALL, NODES, PAIRS_OVER, both_nodes, cancel, constant, extend, pairs_name,
};
use crate::measure::two_threads::{OPERATIONS, producers, producers_of_a_lock};
use crate::names::{ALONE, APART, BOTH, FIRE, MILLION, OURS, PRODUCERS, RANDOM, SCHEDULE, TEN_MILLION};
use crate::results::Results;
use crate::samples::Samples;
use crate::suite::{Run, Section, Sizes, Suite, runs};
use crate::table::Requirement;

const HEAPS: [&str; 2] = [Heap::NAME, BareHeap::NAME];
const CANCEL: &str = "cancel";
const MEMORY: &str = "memory";
const PRODUCERS_RUNS: &[Run] = runs!(producers: Wheel; producers_of_a_lock: Heap);

/// The number of pairs over which memory may grow.
const PAIRS: Sizes = Sizes::Fixed(&[20 * MILLION]);

const fn memory(sizes: Sizes, runs: &'static [Run]) -> Section {
    let section = Section::new(MEMORY, "Memory (resident, one measurement each)", runs);
    Section { once: true, sizes, ..section }
}

pub(crate) static SUITE: Suite = Suite {
    name: "report",
    title: "shardwheel beside a binary heap",
    method: "one process, the engines in turns; a virtual clock with ticks of 1 ms; memory in child processes",
    options: &[("sizes", "10k,1M,10M"), ("memory", "backed")],
    operations: 4 * MILLION,
    pinned: true,
    apart: false,
    // More than an engine and the workloads take.
    backing: 160,
    sections: &[
        Section::new(RANDOM, "Random over 30 minutes, ns a timer", runs!(both_nodes: Wheel, Heap, BareHeap)),
        Section::new("constant", "Placed in a second, ns a timer", runs!(constant: Wheel, Heap, BareHeap)),
        Section::new(CANCEL, "Schedule + cancel, ns a pair", runs!(cancel: Wheel, Heap)),
        Section::new("extend", "Extend, ns a timer", runs!(extend: Wheel, Heap)),
        Section::new(PRODUCERS, "Producers, ns a timer, all threads together", PRODUCERS_RUNS),
        // With fewer timers the pages of the program itself are too large a share.
        Section { least: MILLION, ..memory(Sizes::Each, runs!(burst: Wheel, Heap)) },
        memory(PAIRS, runs!(growth_advanced: Wheel)),
        memory(PAIRS, runs!(growth_alone: Wheel)),
    ],
};

pub(crate) fn requirements(results: &Results) -> Vec<Requirement> {
    let at_most = |section, what: String, limit| {
        let readings = results.read((section, &what), &[OURS], Samples::median);
        let unit = if section == MEMORY { "" } else { ", ns" };
        Requirement::at_most(limit, format!("{section}: {what}{unit}"), readings)
    };
    let mut all = Vec::from(NODES.map(|nodes| at_most(RANDOM, format!("{SCHEDULE}{nodes}"), 30.0)));
    all.extend(PAIRS_OVER.map(|(standing, advanced)| at_most(CANCEL, pairs_name(standing, advanced), 45.0)));
    all.push(at_most(CANCEL, CANCEL_ALL.to_owned(), 45.0));
    for both in NODES.map(|nodes| format!("{BOTH}{nodes}")) {
        let sizes = [(MILLION, 2.0), (TEN_MILLION, 6.0)];
        all.extend(sizes.map(|(size, times)| results.ahead((RANDOM, size), [&both; 2], &HEAPS, times)));
    }
    for what in NODES.map(|nodes| format!("{FIRE}{nodes}")) {
        let growth = results.growth(RANDOM, [MILLION, TEN_MILLION], &what);
        all.push(Requirement::at_most(1.5, format!("cost at 10M over cost at 1M: {what}"), growth));
    }
    all.push(at_most(MEMORY, BYTES.to_owned(), 80.0));
    let left = results.get((MEMORY, TEN_MILLION), LEFT, OURS);
    let left = left.map(|left| (label(TEN_MILLION), left.median())).into_iter().collect();
    all.push(Requirement::at_most(0.1, format!("{MEMORY}: {LEFT}"), left));
    all.extend([true, false].map(|advanced| at_most(MEMORY, growth(advanced), 16.0)));
    all.extend(OPERATIONS.map(|operation| scaling(results, operation)));
    all
}

/// Divides the throughput of two producers on two shards by that of one on one. The figures are
/// times for each timer of all threads, so the ratio of throughputs is that of times, inverted.
fn scaling(results: &Results, operation: &str) -> Requirement {
    let [one, two] = [ALONE, APART].map(|layout| format!("{operation}: {layout}"));
    let sizes = results.sizes(PRODUCERS).into_iter().filter(|size| *size >= MILLION);
    let ratio = |size| results.ratio((PRODUCERS, size), [(&one, OURS), (&two, OURS)]);
    let readings = sizes.filter_map(|size| Some((label(size), ratio(size)?))).collect();
    let text = format!("throughput of 2 producers on 2 shards over 1 on 1: {operation}");
    Requirement::at_least(1.8, text, readings)
}
