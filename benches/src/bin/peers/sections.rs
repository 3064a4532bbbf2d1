//! What is measured.

use crate::args::Args;
use crate::measure::{BOTH, EXTEND, PAIR};
use crate::peer::{Measure, Peer};

/// How many timers stand in the way of a churn.
const STANDING: [usize; 3] = [0, 100_000, 1_000_000];

/// Where a section's numbers of timers come from.
#[derive(Clone, Copy)]
enum Sizes {
    /// `--sizes`.
    Each,
    /// `--timers`.
    Many,
    /// [`STANDING`].
    Standing,
}

/// A group of measurements.
pub(crate) struct Section {
    /// What `--only` calls it.
    pub(crate) name: &'static str,
    /// The heading of its tables.
    pub(crate) title: &'static str,
    /// An engine's part in it, where it has one.
    pub(crate) measure: fn(&Peer) -> Option<Measure>,
    /// The columns in which `shardwheel` is held against peers behind a mutex.
    pub(crate) judged: &'static [&'static str],
    sizes: Sizes,
}

impl Section {
    /// The numbers of timers that it runs with.
    pub(crate) fn sizes(&self, args: &Args) -> Vec<usize> {
        match self.sizes {
            Sizes::Each => args.sizes.clone(),
            Sizes::Many => args.timers.clone(),
            Sizes::Standing => STANDING.to_vec(),
        }
    }
}

/// Each call by itself.
pub(crate) const WORST: Section = Section {
    name: "worst",
    title: "Single operations, random over 30 minutes, ns, the reading of the clock included",
    measure: |peer| Some(peer.worst),
    judged: &[],
    sizes: Sizes::Many,
};

/// Every section.
pub(crate) static SECTIONS: [Section; 7] = [
    Section {
        name: "random",
        title: "Schedule and fire, random over 30 minutes, ns a timer",
        measure: |peer| Some(peer.random),
        judged: &[BOTH],
        sizes: Sizes::Each,
    },
    Section {
        name: "second",
        title: "Schedule and fire, all due within one second, in random order, ns a timer",
        measure: |peer| Some(peer.second),
        judged: &[BOTH],
        sizes: Sizes::Each,
    },
    Section {
        name: "constant",
        title: "Schedule and fire, constant delay, placed within one second, ns a timer",
        measure: |peer| Some(peer.constant),
        judged: &[BOTH],
        sizes: Sizes::Each,
    },
    Section {
        name: "churn",
        title: "Churn over standing timers, 30 s ahead, cancelled 1,000 later, ns a pair",
        measure: |peer| peer.churn,
        judged: &[PAIR],
        sizes: Sizes::Standing,
    },
    Section {
        name: "extend",
        title: "Extend, ns a timer",
        measure: |peer| peer.extend,
        judged: &EXTEND,
        sizes: Sizes::Many,
    },
    WORST,
    Section {
        name: "memory",
        title: "Resident memory",
        measure: |peer| Some(peer.memory),
        judged: &[],
        sizes: Sizes::Many,
    },
];

/// The section of this name.
pub(crate) fn find(name: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.name == name)
}
