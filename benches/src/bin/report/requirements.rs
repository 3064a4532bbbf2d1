//! What the figures have to show, and whether they do.

use shardwheel_benches::{BareHeap, Engine, Heap, Layout, Limit, Requirement, Samples, Wheel, label};

use crate::memory;
use crate::producers;
use crate::results::Results;
use crate::sections::{CANCEL_ALL, NODES, pairs_name};

const ONE_MILLION: usize = 1_000_000;
const TEN_MILLION: usize = 10_000_000;

const SCHEDULE_NS: f64 = 30.0;
const SCHEDULE_CANCEL_NS: f64 = 45.0;
const FASTER_AT_ONE_MILLION: f64 = 2.0;
const FASTER_AT_TEN_MILLION: f64 = 6.0;
const FLAT: f64 = 1.5;
const BYTES_A_TIMER: f64 = 80.0;
const GROWTH_MIB: f64 = 16.0;
const LEFT_OF_PEAK: f64 = 0.1;
const SCALING: f64 = 1.8;

/// The operations of producers that have to scale: the first ones of the list.
const SCALED: usize = 3;

/// Each requirement with its limit, its readings and the verdict, as a Markdown table.
pub(crate) fn table(results: &Results) -> String {
    Requirement::table(&all(results))
}

fn all(results: &Results) -> Vec<Requirement> {
    let mut all = Vec::from(NODES.map(|nodes| schedule(results, nodes)));
    all.extend(schedule_cancel(results));
    for nodes in NODES {
        all.push(faster(results, nodes, ONE_MILLION, FASTER_AT_ONE_MILLION));
        all.push(faster(results, nodes, TEN_MILLION, FASTER_AT_TEN_MILLION));
    }
    all.extend(NODES.map(|nodes| flat(results, nodes)));
    all.extend(memory_requirements(results));
    all.extend(producers::OPERATIONS[..SCALED].iter().map(|operation| scaling(results, operation)));
    all
}

/// The medians of `what` with `shardwheel`, at every size measured.
fn medians(results: &Results, what: &str) -> Vec<(String, f64)> {
    let median = |size| results.get::<Wheel>(what, size).map(|samples| (label(size), samples.median()));
    results.sizes(what).into_iter().filter_map(median).collect()
}

fn schedule(results: &Results, nodes: &str) -> Requirement {
    let what = format!("schedule, {nodes}");
    let readings = medians(results, &what);
    Requirement { text: format!("{what}, ns"), limit: Limit::AtMost(SCHEDULE_NS), readings }
}

fn schedule_cancel(results: &Results) -> Vec<Requirement> {
    let runs = [(0, true), (0, false), (ONE_MILLION, true), (ONE_MILLION, false)];
    let pairs = runs.map(|(standing, advanced)| pairs_name(standing, advanced));
    let requirement = |what: String| {
        let readings = medians(results, &what);
        let text = format!("schedule + cancel, {what}, ns");
        Requirement { text, limit: Limit::AtMost(SCHEDULE_CANCEL_NS), readings }
    };
    pairs.into_iter().chain([CANCEL_ALL.to_owned()]).map(requirement).collect()
}

/// Against both heaps, so that the verdict rests on the faster one.
fn faster(results: &Results, nodes: &str, size: usize, times: f64) -> Requirement {
    let what = format!("schedule + fire, {nodes}");
    let against = [
        (Heap::NAME, results.get::<Heap>(&what, size)),
        (BareHeap::NAME, results.get::<BareHeap>(&what, size)),
    ];
    let wheel = results.get::<Wheel>(&what, size);
    let ratio = |(name, heap): (&str, Option<&Samples>)| Some((name.to_owned(), heap?.over(wheel?).median()));
    Requirement {
        text: format!("times faster than a heap: {what}, {} timers", label(size)),
        limit: Limit::AtLeast(times),
        readings: against.into_iter().filter_map(ratio).collect(),
    }
}

fn flat(results: &Results, nodes: &str) -> Requirement {
    let what = format!("fire, {nodes}");
    let [few, many] = [ONE_MILLION, TEN_MILLION].map(|size| results.get::<Wheel>(&what, size));
    let growth = few.zip(many).map(|(few, many)| many.over(few).median());
    Requirement {
        text: format!("cost at 10M over cost at 1M: {what}"),
        limit: Limit::AtMost(FLAT),
        readings: growth.map(|growth| ("ratio".to_owned(), growth)).into_iter().collect(),
    }
}

fn memory_requirements(results: &Results) -> Vec<Requirement> {
    let mut left = medians(results, memory::LEFT);
    left.retain(|(size, _)| *size == label(TEN_MILLION));
    let mut all = vec![
        (memory::BYTES.to_owned(), BYTES_A_TIMER, medians(results, memory::BYTES)),
        (memory::LEFT.to_owned(), LEFT_OF_PEAK, left),
    ];
    all.extend([true, false].map(memory::growth).map(|what| {
        let readings = medians(results, &what);
        (what, GROWTH_MIB, readings)
    }));
    let requirement = |(text, limit, readings)| Requirement { text, limit: Limit::AtMost(limit), readings };
    all.into_iter().map(requirement).collect()
}

/// Throughput of two producers on two shards over that of one on one. What is recorded is the time for each
/// timer of all threads together, so the ratio of times is that of throughputs, the other way round.
fn scaling(results: &Results, operation: &str) -> Requirement {
    let [one, two] = [Layout::One, Layout::TwoOnTwo].map(|layout| producers::name(operation, layout));
    let scale = |size| {
        let (one, two) = (results.get::<Wheel>(&one, size)?, results.get::<Wheel>(&two, size)?);
        Some((label(size), one.over(two).median()))
    };
    let sizes = results.sizes(&one).into_iter().filter(|size| *size >= ONE_MILLION);
    Requirement {
        text: format!("throughput of 2 producers on 2 shards over 1 on 1: {operation}"),
        limit: Limit::AtLeast(SCALING),
        readings: sizes.filter_map(scale).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_measured_is_not_met_nor_missed() {
        let table = table(&Results::default());
        assert!(!table.contains(" met"), "{table}");
        assert!(table.lines().skip(4).all(|line| line.ends_with("| not measured |")), "{table}");
    }

    #[test]
    fn a_requirement_is_met_where_every_reading_meets_it() {
        let mut results = Results::default();
        let what = format!("schedule, {}", NODES[0]);
        results.add::<Wheel>("", &what, ONE_MILLION, SCHEDULE_NS);
        assert_eq!(schedule(&results, NODES[0]).verdict(), "met");
        results.add::<Wheel>("", &what, TEN_MILLION, SCHEDULE_NS + 0.1);
        assert_eq!(schedule(&results, NODES[0]).verdict(), "**NOT met**");
    }

    #[test]
    fn the_faster_heap_decides() {
        let mut results = Results::default();
        let what = format!("schedule + fire, {}", NODES[0]);
        results.add::<Wheel>("", &what, ONE_MILLION, 10.0);
        results.add::<Heap>("", &what, ONE_MILLION, 25.0);
        results.add::<BareHeap>("", &what, ONE_MILLION, 15.0);
        assert_eq!(faster(&results, NODES[0], ONE_MILLION, FASTER_AT_ONE_MILLION).verdict(), "**NOT met**");
    }
}
