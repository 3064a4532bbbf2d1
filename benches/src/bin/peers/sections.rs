//! What is measured.

use shardwheel_benches::names::{self, ALONE, APART, SHARED};

use crate::args::Args;
use crate::measure::{BOTH, EXTEND, PAIR};
use crate::peer::{Measure, Peer};

/// How many timers stand in the way of a churn.
const STANDING: [usize; 3] = [0, 100_000, 1_000_000];

/// The same where two threads churn.
const STANDING_OF_TWO: [usize; 2] = [0, 1_000_000];

/// The throughput of two threads over that of one; times are divided the other way round.
const SCALING: [Ratio; 2] =
    [("throughput of 2, one each, over 1", ALONE, APART), ("throughput of 2 on one over 1", ALONE, SHARED)];

const NOT_SHARED: &str =
    "An engine without a lock is for the thread that has made it, so two threads cannot be on one.";

/// Where a section's numbers of timers come from.
#[derive(Clone, Copy)]
enum Sizes {
    /// `--sizes`.
    Each,
    /// `--timers`.
    Many,
    /// These.
    Fixed(&'static [usize]),
}

/// A column that is made of two others: its heading, what is divided, and by what.
type Ratio = (&'static str, &'static str, &'static str);

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
    /// Columns made of the others.
    pub(crate) ratios: &'static [Ratio],
    /// What has to be said below the tables.
    pub(crate) note: &'static str,
    sizes: Sizes,
}

impl Section {
    /// The numbers of timers that it runs with.
    pub(crate) fn sizes(&self, args: &Args) -> Vec<usize> {
        match self.sizes {
            Sizes::Each => args.sizes.clone(),
            Sizes::Many => args.timers.clone(),
            Sizes::Fixed(sizes) => sizes.to_vec(),
        }
    }
}

/// Each call by itself.
pub(crate) const WORST: Section = Section {
    name: "worst",
    title: "Single operations, random over 30 minutes, ns, the reading of the clock included",
    measure: |peer| Some(peer.worst),
    judged: &[],
    ratios: &[],
    note: "",
    sizes: Sizes::Many,
};

/// Two threads that schedule and cancel.
pub(crate) const TWO_CHURN: Section = Section {
    name: names::TWO_CHURN,
    title: "Churn over standing timers from two threads, ns a pair of all threads together",
    measure: |peer| peer.two_churn,
    judged: &[],
    ratios: &SCALING,
    note: NOT_SHARED,
    sizes: Sizes::Fixed(&STANDING_OF_TWO),
};

/// Two threads that schedule.
pub(crate) const TWO_SCHEDULE: Section = Section {
    name: names::TWO_SCHEDULE,
    title: "Schedule from two threads, random over 30 minutes, so many from each after as many have fired, ns a timer of all threads together",
    measure: |peer| Some(peer.two_schedule),
    judged: &[],
    ratios: &SCALING,
    note: NOT_SHARED,
    sizes: Sizes::Many,
};

/// Every section.
pub(crate) static SECTIONS: [Section; 10] = [
    Section {
        name: names::RANDOM,
        title: "Schedule and fire, random over 30 minutes, ns a timer",
        measure: |peer| Some(peer.random),
        judged: &[BOTH],
        ratios: &[],
        note: "",
        sizes: Sizes::Each,
    },
    Section {
        name: "second",
        title: "Schedule and fire, all due within one second, in random order, ns a timer",
        measure: |peer| Some(peer.second),
        judged: &[BOTH],
        ratios: &[],
        note: "",
        sizes: Sizes::Each,
    },
    Section {
        name: "constant",
        title: "Schedule and fire, constant delay, placed within one second, ns a timer",
        measure: |peer| Some(peer.constant),
        judged: &[BOTH],
        ratios: &[],
        note: "",
        sizes: Sizes::Each,
    },
    Section {
        name: "churn",
        title: "Churn over standing timers, 30 s ahead, cancelled 1,000 later, ns a pair",
        measure: |peer| peer.churn,
        judged: &[PAIR],
        ratios: &[],
        note: "",
        sizes: Sizes::Fixed(&STANDING),
    },
    Section {
        name: "extend",
        title: "Extend, ns a timer",
        measure: |peer| peer.extend,
        judged: &EXTEND,
        ratios: &[],
        note: "",
        sizes: Sizes::Many,
    },
    TWO_CHURN,
    TWO_SCHEDULE,
    WORST,
    Section {
        name: "memory",
        title: "Resident memory",
        measure: |peer| Some(peer.memory),
        judged: &[],
        ratios: &[],
        note: "",
        sizes: Sizes::Many,
    },
    Section {
        name: "cancelled",
        title: "Resident memory when all have been cancelled, bytes a timer, payload included",
        measure: |peer| peer.cancelled,
        judged: &[],
        ratios: &[],
        note: "",
        sizes: Sizes::Many,
    },
];

/// The section of this name.
pub(crate) fn find(name: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.name == name)
}
