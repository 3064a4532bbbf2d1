//! What the figures have to show: `shardwheel` beside every peer that threads can share by means of a lock, even
//! where nobody else wants it; and how long it may take to move the clock by a tick.

use shardwheel_benches::{Engine, Limit, Requirement, Times, Wheel, label};

use crate::peer::PEERS;
use crate::results::Results;
use crate::sections::{SECTIONS, Section, WORST};
use crate::worst::ADVANCE;

/// How many times the cost of `shardwheel` a peer behind a lock has to cost.
const NO_SLOWER: f64 = 1.0;

/// With how many timers the longest advance is judged, and how many nanoseconds it may take.
const MANY: usize = 10_000_000;
const LONGEST_ADVANCE: f64 = 2e6;

/// Each requirement with its readings.
pub(crate) fn all(results: &Results) -> Vec<Requirement> {
    let judged = |section: &'static Section| section.judged.iter().map(move |&what| (section, what));
    let by_size = |(section, what): (&'static Section, &'static str)| {
        results.sizes(section).into_iter().map(move |size| no_slower(results, section, what, size))
    };
    let mut all = SECTIONS.iter().flat_map(judged).flat_map(by_size).collect::<Vec<_>>();
    all.push(longest_advance(results));
    all
}

/// What the system does can only make an advance longer, so the least of the rounds is believed.
fn longest_advance(results: &Results) -> Requirement {
    let longest = Times::longest_of(ADVANCE);
    let rounds = results.get(&WORST, MANY, &longest, Wheel::NAME);
    let least = rounds.map(|rounds| rounds.figures().iter().copied().fold(f64::INFINITY, f64::min));
    Requirement {
        text: format!("{longest}, with {} timers, in the best round, ns", label(MANY)),
        limit: Limit::AtMost(LONGEST_ADVANCE),
        readings: least.map(|least| (Wheel::NAME.to_owned(), least)).into_iter().collect(),
    }
}

fn no_slower(results: &Results, section: &Section, what: &str, size: usize) -> Requirement {
    let wheel = results.get(section, size, what, Wheel::NAME);
    let ratio = |engine: &'static str| {
        let ratio = results.get(section, size, what, engine)?.over(wheel?);
        Some((engine.to_owned(), ratio.median()))
    };
    let locked = PEERS.iter().filter(|peer| peer.locked);
    Requirement {
        text: format!(
            "cost of a peer behind a lock over that of {}: {}, {what}, {} timers",
            Wheel::NAME,
            section.name,
            label(size)
        ),
        limit: Limit::AtLeast(NO_SLOWER),
        readings: locked.filter_map(|peer| ratio(peer.engine)).collect(),
    }
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
        assert_eq!(verdict(&results), ["met", "not measured"]);
        let outcome = Outcome { checksum: 1, figures: vec![(PAIR.to_owned(), 9.0)] };
        results.add(churn, "tree", Task { size: 0, round: 0 }, outcome);
        assert_eq!(verdict(&results), ["**NOT met**", "not measured"]);
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
