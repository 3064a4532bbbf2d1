//! What the figures have to show: `shardwheel` beside every peer that threads can share by means of a lock, even
//! where nobody else wants it.

use shardwheel_benches::{Engine, Limit, Requirement, Wheel, label};

use crate::peer::PEERS;
use crate::results::Results;
use crate::sections::{SECTIONS, Section};

/// How many times the cost of `shardwheel` a peer behind a lock has to cost.
const NO_SLOWER: f64 = 1.0;

/// Each requirement with its readings.
pub(crate) fn all(results: &Results) -> Vec<Requirement> {
    let judged = |section: &'static Section| section.judged.iter().map(move |&what| (section, what));
    let by_size = |(section, what): (&'static Section, &'static str)| {
        results.sizes(section).into_iter().map(move |size| no_slower(results, section, what, size))
    };
    SECTIONS.iter().flat_map(judged).flat_map(by_size).collect()
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
        assert_eq!(verdict(&results), ["met"]);
        let outcome = Outcome { checksum: 1, figures: vec![(PAIR.to_owned(), 9.0)] };
        results.add(churn, "tree", Task { size: 0, round: 0 }, outcome);
        assert_eq!(verdict(&results), ["**NOT met**"]);
    }
}
