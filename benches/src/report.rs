//! The suite `report`: one shard beside a heap behind a mutex, in one process.

use crate::args::label;
use crate::engines::{BareHeap, Engine, Heap, Wheel};
use crate::measure::memory::{BYTES, LEFT, burst, growth, growth_advanced, growth_alone};
use crate::measure::one_thread::{
    CANCEL_ALL, NODES, STANDING, both_nodes, cancel, constant, extend, fire_by_ticks, pairs_name,
};
use crate::measure::two_threads::{OPERATIONS, producers, producers_of_a_lock};
use crate::names::{ALONE, APART, BOTH, FIRE, OURS, RANDOM, SCHEDULE};
use crate::results::Results;
use crate::suite::{Section, Sizes, Suite, runs};
use crate::table::Requirement;

const MILLION: usize = 1_000_000;
const TEN_MILLION: usize = 10_000_000;
const CANCEL: &str = "cancel";
const PRODUCERS: &str = "producers";
const MEMORY: &str = "memory";
const MEMORY_TITLE: &str = "Memory (resident, one measurement each)";

/// The number of pairs over which memory may grow.
const PAIRS: Sizes = Sizes::Fixed(&[20 * MILLION]);

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
        Section::new(
            "constant",
            "Placed within one second, ns a timer",
            runs!(constant: Wheel, Heap, BareHeap),
        ),
        Section {
            // With fewer timers most ticks have no due timer.
            least: 100_000,
            ..Section::new(
                "ticks",
                "The clock moved tick by tick, ns a timer",
                runs!(fire_by_ticks: Wheel, Heap),
            )
        },
        Section::new(CANCEL, "Schedule + cancel, ns a pair", runs!(cancel: Wheel, Heap)),
        Section::new("extend", "Extend, ns a timer", runs!(extend: Wheel, Heap)),
        Section::new(
            PRODUCERS,
            "Producers, ns a timer, all threads together",
            runs!(producers: Wheel; producers_of_a_lock: Heap),
        ),
        Section {
            once: true,
            // With fewer timers the pages of the program itself are too large a share.
            least: MILLION,
            ..Section::new(MEMORY, MEMORY_TITLE, runs!(burst: Wheel, Heap))
        },
        Section {
            once: true,
            ..Section::new(MEMORY, MEMORY_TITLE, runs!(growth_advanced: Wheel)).with(PAIRS)
        },
        Section { once: true, ..Section::new(MEMORY, MEMORY_TITLE, runs!(growth_alone: Wheel)).with(PAIRS) },
    ],
};

pub(crate) fn requirements(results: &Results) -> Vec<Requirement> {
    let at_most = |section, what: String, limit| {
        let readings = results.medians(section, &what);
        let unit = if section == MEMORY { "" } else { ", ns" };
        Requirement::at_most(limit, format!("{section}: {what}{unit}"), readings)
    };
    let mut all = Vec::from(NODES.map(|nodes| at_most(RANDOM, format!("{SCHEDULE}{nodes}"), 30.0)));
    let pairs = [(0, true), (0, false), (STANDING, true), (STANDING, false)];
    all.extend(pairs.map(|(standing, advanced)| at_most(CANCEL, pairs_name(standing, advanced), 45.0)));
    all.push(at_most(CANCEL, CANCEL_ALL.to_owned(), 45.0));
    for nodes in NODES {
        all.extend(
            [(MILLION, 2.0), (TEN_MILLION, 6.0)].map(|(size, times)| faster(results, nodes, size, times)),
        );
    }
    for what in NODES.map(|nodes| format!("{FIRE}{nodes}")) {
        let growth = results.growth(RANDOM, [MILLION, TEN_MILLION], &what);
        all.push(Requirement::at_most(1.5, format!("cost at 10M over cost at 1M: {what}"), growth));
    }
    all.push(at_most(MEMORY, BYTES.to_owned(), 80.0));
    let mut left = results.medians(MEMORY, LEFT);
    left.retain(|(size, _)| *size == label(TEN_MILLION));
    all.push(Requirement::at_most(0.1, format!("{MEMORY}: {LEFT}"), left));
    all.extend([true, false].map(|advanced| at_most(MEMORY, growth(advanced), 16.0)));
    all.extend(OPERATIONS.map(|operation| scaling(results, operation)));
    all
}

/// Compares with both heaps, so the verdict rests on the faster one.
fn faster(results: &Results, nodes: &str, size: usize, times: f64) -> Requirement {
    let what = &*format!("{BOTH}{nodes}");
    let readings = results.against((RANDOM, Some(size)), [what, what], &[Heap::NAME, BareHeap::NAME]);
    let text = format!("times faster than a heap: {what}, {} timers", label(size));
    Requirement::at_least(times, text, readings)
}

/// Divides the throughput of two producers on two shards by that of one on one. The figures are
/// times for each timer of all threads, so the ratio of throughputs is that of times, inverted.
fn scaling(results: &Results, operation: &str) -> Requirement {
    let [one, two] = [ALONE, APART].map(|layout| format!("{operation}: {layout}"));
    let sizes = results.sizes(PRODUCERS).into_iter().flatten().filter(|size| *size >= MILLION);
    let ratio = |size| results.ratio((PRODUCERS, Some(size)), [(&one, OURS), (&two, OURS)]);
    let readings = sizes.filter_map(|size| Some((label(size), ratio(size)?))).collect();
    let text = format!("throughput of 2 producers on 2 shards over 1 on 1: {operation}");
    Requirement::at_least(1.8, text, readings)
}
