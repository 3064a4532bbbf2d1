//! What the figures have to show: `shardwheel` beside every peer that threads can share by means of a lock, even
//! where nobody else wants it, and where two threads do; by how much it has to be ahead of some of them; what ten million
//! may cost over one; what a timer may take; and how long it may take to move the clock by a tick.

use shardwheel_benches::names::{ALONE, APART, FIRE, RANDOM, SHARED};
use shardwheel_benches::{Engine, Limit, Requirement, Samples, Times, Wheel, label};

use crate::measure::{BOTH, EXTEND};
use crate::memory::BYTES;
use crate::peer::PEERS;
use crate::results::Results;
use crate::sections::{SECTIONS, Section, TWO_CHURN, TWO_SCHEDULE, WORST};
use crate::worst::ADVANCE;

/// How many times the cost of `shardwheel` a peer behind a lock has to cost.
const NO_SLOWER: f64 = 1.0;

/// How many times the throughput of one thread two have, on a shard each; and how many times that of two threads on
/// one peer behind a lock.
const SCALING: f64 = 1.8;
const OVER_LOCKED: f64 = 3.0;

/// By how much `shardwheel` has to be ahead of one peer: section, number of timers, column, peer, times.
const AHEAD: [(&str, usize, &str, &str, f64); 5] = [
    (RANDOM, 1_000_000, BOTH, "heap", 3.0),
    (RANDOM, 10_000_000, BOTH, "heap", 8.0),
    ("second", 1_000_000, FIRE, "heap", 4.0),
    ("constant", 1_000_000, FIRE, "heap", 4.0),
    ("extend", 1_000_000, EXTEND[0], "DelayQueue", 3.0),
];

/// How much more a timer may cost with ten million than with one, and how many bytes one may take.
const GROWTH: f64 = 1.2;
const MOST_BYTES: f64 = 80.0;

/// With how many timers the longest advance is judged, and how many nanoseconds it may take.
const MANY: usize = 10_000_000;
const LONGEST_ADVANCE: f64 = 2e6;

/// Each requirement with its readings.
pub(crate) fn all(results: &Results) -> Vec<Requirement> {
    let judged = |section: &'static Section| section.judged.iter().map(move |&what| (section, what));
    let by_size = |(section, what): (&'static Section, &'static str)| {
        let each = move |size| over_wheel(results, section, size, [what, what], NO_SLOWER);
        results.sizes(section).into_iter().map(each)
    };
    let mut all = SECTIONS.iter().flat_map(judged).flat_map(by_size).collect::<Vec<_>>();
    for size in results.sizes(&TWO_CHURN) {
        all.push(scaling(results, size));
        all.push(over_wheel(results, &TWO_CHURN, size, [SHARED, APART], OVER_LOCKED));
    }
    for size in results.sizes(&TWO_SCHEDULE) {
        all.push(over_wheel(results, &TWO_SCHEDULE, size, [SHARED, SHARED], NO_SLOWER));
    }
    all.extend(AHEAD.map(|ahead| ahead_of(results, ahead)));
    all.push(growth(results));
    all.push(bytes(results));
    all.push(longest_advance(results));
    all
}

/// What one peer costs over what `shardwheel` does.
fn ahead_of(
    results: &Results,
    (name, size, what, peer, times): (&str, usize, &str, &str, f64),
) -> Requirement {
    let section = SECTIONS.iter().find(|section| section.name == name);
    let cost = |engine| results.get(section?, size, what, engine);
    let ratio = cost(peer).zip(cost(Wheel::NAME)).map(|(peer, wheel)| peer.over(wheel).median());
    Requirement {
        text: format!("cost of {peer} over that of {}: {name}, {what}, {} timers", Wheel::NAME, label(size)),
        limit: Limit::AtLeast(times),
        readings: reading(ratio),
    }
}

/// What ten million cost over what one does.
fn growth(results: &Results) -> Requirement {
    let section = SECTIONS.iter().find(|section| section.name == RANDOM);
    let cost = |size| results.get(section?, size, BOTH, Wheel::NAME);
    let ratio = cost(MANY).zip(cost(MANY / 10)).map(|(many, few)| many.over(few).median());
    Requirement {
        text: format!("{BOTH}, random, with {} timers over that with {}", label(MANY), label(MANY / 10)),
        limit: Limit::AtMost(GROWTH),
        readings: reading(ratio),
    }
}

fn bytes(results: &Results) -> Requirement {
    let section = SECTIONS.iter().find(|section| section.name == "memory");
    let sizes = section.into_iter().flat_map(|section| {
        let of = move |size| Some((label(size), results.get(section, size, BYTES, Wheel::NAME)?.median()));
        results.sizes(section).into_iter().filter_map(of)
    });
    Requirement { text: BYTES.to_owned(), limit: Limit::AtMost(MOST_BYTES), readings: sizes.collect() }
}

/// What every peer behind a lock costs in one column, over what `shardwheel` costs in the same or another.
fn over_wheel(
    results: &Results,
    section: &Section,
    size: usize,
    [of_peer, of_wheel]: [&str; 2],
    limit: f64,
) -> Requirement {
    let wheel = results.get(section, size, of_wheel, Wheel::NAME);
    let ratio = |engine: &'static str| {
        let ratio = results.get(section, size, of_peer, engine)?.over(wheel?);
        Some((engine.to_owned(), ratio.median()))
    };
    let columns = if of_peer == of_wheel { of_peer.to_owned() } else { format!("{of_peer} / {of_wheel}") };
    let locked = PEERS.iter().filter(|peer| peer.locked);
    Requirement {
        text: format!(
            "cost of a peer behind a lock over that of {}: {}, {columns}, {} timers",
            Wheel::NAME,
            section.name,
            label(size)
        ),
        limit: Limit::AtLeast(limit),
        readings: locked.filter_map(|peer| ratio(peer.engine)).collect(),
    }
}

fn scaling(results: &Results, size: usize) -> Requirement {
    let ratio = results.ratio(&TWO_CHURN, size, [ALONE, APART], Wheel::NAME);
    Requirement {
        text: format!(
            "throughput of 2 threads with a shard each over that of 1: {}, {} timers",
            TWO_CHURN.name,
            label(size)
        ),
        limit: Limit::AtLeast(SCALING),
        readings: reading(ratio.as_ref().map(Samples::median)),
    }
}

/// What the system does can only make an advance longer, so the least of the rounds is believed.
fn longest_advance(results: &Results) -> Requirement {
    let longest = Times::longest_of(ADVANCE);
    let rounds = results.get(&WORST, MANY, &longest, Wheel::NAME);
    Requirement {
        text: format!("{longest}, with {} timers, in the best round, ns", label(MANY)),
        limit: Limit::AtMost(LONGEST_ADVANCE),
        readings: reading(rounds.map(Samples::least)),
    }
}

/// That of `shardwheel`, where there is one.
fn reading(figure: Option<f64>) -> Vec<(String, f64)> {
    figure.map(|figure| (Wheel::NAME.to_owned(), figure)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::PAIR;
    use crate::peer::{Outcome, Task};
    use crate::sections::find;

    #[test]
    fn every_locked_peer_counts_and_no_other() {
        let (mut results, churn) = (Results::default(), find("churn").unwrap());
        let mut add = |engine, figure| {
            let outcome = Outcome { checksum: 1, figures: vec![(PAIR.to_owned(), figure)] };
            results.add(churn, engine, Task { size: 0, round: 0 }, outcome);
        };
        add(Wheel::NAME, 10.0);
        add("heap", 12.0);
        add("heap, no lock", 5.0);
        let verdict = |results: &Results| all(results).iter().map(Requirement::verdict).collect::<Vec<_>>();
        assert_eq!(verdict(&results)[..2], ["met", "not measured"]);
        let outcome = Outcome { checksum: 1, figures: vec![(PAIR.to_owned(), 9.0)] };
        results.add(churn, "tree", Task { size: 0, round: 0 }, outcome);
        assert_eq!(verdict(&results)[..2], ["**NOT met**", "not measured"]);
    }

    #[test]
    fn two_threads_have_to_scale_and_to_beat_every_lock() {
        let mut results = Results::default();
        let mut add = |engine, columns: &[(&str, f64)]| {
            let figures = columns.iter().map(|&(what, ns)| (what.to_owned(), ns)).collect();
            results.add(&TWO_CHURN, engine, Task { size: 0, round: 0 }, Outcome { checksum: 1, figures });
            let verdicts = all(&results).iter().map(Requirement::verdict).collect::<Vec<_>>();
            (verdicts[0], verdicts[1])
        };
        assert_eq!(
            add(Wheel::NAME, &[(ALONE, 18.0), (APART, 10.0), (SHARED, 40.0)]),
            ("met", "not measured")
        );
        assert_eq!(add("heap", &[(ALONE, 5.0), (APART, 5.0), (SHARED, 30.0)]), ("met", "met"));
        assert_eq!(add("tree", &[(ALONE, 99.0), (APART, 99.0), (SHARED, 29.0)]), ("met", "**NOT met**"));
    }

    #[test]
    fn some_peers_have_to_be_far_behind() {
        let mut results = Results::default();
        let mut add = |size, engine, cost| {
            let outcome = Outcome { checksum: 1, figures: vec![(BOTH.to_owned(), cost)] };
            results.add(find(RANDOM).unwrap(), engine, Task { size, round: 0 }, outcome);
            let verdicts = AHEAD.map(|ahead| ahead_of(&results, ahead).verdict());
            (verdicts[0], verdicts[1], growth(&results).verdict())
        };
        assert_eq!(add(MANY / 10, Wheel::NAME, 90.0), ("not measured", "not measured", "not measured"));
        assert_eq!(add(MANY / 10, "heap", 270.0), ("met", "not measured", "not measured"));
        assert_eq!(add(MANY, Wheel::NAME, 110.0), ("met", "not measured", "**NOT met**"));
        assert_eq!(add(MANY, "heap", 870.0), ("met", "**NOT met**", "**NOT met**"));
    }

    #[test]
    fn the_longest_advance_is_that_of_the_best_round() {
        let mut results = Results::default();
        let mut add = |size, round, nanos| {
            let figures = vec![(Times::longest_of(ADVANCE), nanos)];
            results.add(&WORST, Wheel::NAME, Task { size, round }, Outcome { checksum: 1, figures });
            longest_advance(&results).verdict()
        };
        assert_eq!(add(MANY / 10, 0, LONGEST_ADVANCE), "not measured");
        assert_eq!(add(MANY, 0, LONGEST_ADVANCE + 1.0), "**NOT met**");
        assert_eq!(add(MANY, 1, LONGEST_ADVANCE), "met");
    }
}
