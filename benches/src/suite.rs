//! What a suite is made of: sections, and the runs of engines in them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::machine::back_memory;
use crate::names::ALTERNATIVE;
use crate::workload::{Spread, Workload};

/// A subcommand that measures.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    /// To measure more, add a section.
    pub(crate) sections: &'static [Section],
    /// The least number of operations for a figure: small sizes are repeated.
    pub(crate) operations: usize,
    /// Whether the measuring thread is pinned.
    pub(crate) pinned: bool,
    /// Bytes a timer for which memory is backed before each run.
    pub(crate) backing: usize,
}

impl Suite {
    /// Returns a section by its name.
    pub(crate) fn section(&self, name: &str) -> Option<&'static Section> {
        self.sections.iter().find(|section| section.name == name)
    }
}

/// A group of measurements, with a function for each engine.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    /// `shardwheel` first.
    pub(crate) runs: &'static [Run],
    pub(crate) sizes: Sizes,
    /// The smallest number of timers that is worth a measurement.
    pub(crate) least: usize,
    /// Whether it runs in the first round only, on memory as it comes.
    pub(crate) once: bool,
}

impl Section {
    pub(crate) const fn new(name: &'static str, runs: &'static [Run]) -> Self {
        Self { name, runs, sizes: Sizes::Each, least: 0, once: false }
    }

    pub(crate) const fn with(self, sizes: Sizes) -> Self {
        Self { sizes, ..self }
    }
}

/// The numbers of timers that a section runs with.
#[derive(Clone, Copy)]
pub(crate) enum Sizes {
    /// Each of `--sizes`.
    Each,
    /// Each of `--timers`.
    Many,
    Fixed(&'static [usize]),
}

pub(crate) struct Run {
    pub(crate) engine: &'static str,
    pub(crate) measure: fn(&Task) -> Outcome,
}

impl Run {
    /// Returns whether this build can measure it.
    pub(crate) fn is_here(&self) -> bool {
        cfg!(tokio_unstable) || self.engine != ALTERNATIVE
    }
}

/// Makes runs of a generic function, one for each engine.
macro_rules! runs {
    ($measure:ident: $($engine:ty),+) => {
        &[$($crate::suite::Run { engine: <$engine>::NAME, measure: $measure::<$engine> }),+]
    };
}
pub(crate) use runs;

/// What a run has to do. It is the same for every engine of a section.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) timers: usize,
    pub(crate) round: usize,
    /// The least number of operations for a figure.
    pub(crate) operations: usize,
    /// In real time: the time over which timers are due.
    pub(crate) span: Duration,
}

impl Task {
    #[cfg(test)]
    pub(crate) fn small(timers: usize) -> Self {
        Self { timers, round: 3, operations: 1000, span: Duration::from_millis(50) }
    }

    /// Returns the seed of the `nth` workload of this round.
    pub(crate) fn seed(&self, nth: usize) -> u64 {
        (self.round * 100 + nth) as u64
    }

    pub(crate) fn workload(&self, spread: Spread, nth: usize) -> Workload {
        Workload::new(spread, self.timers, self.seed(nth))
    }

    /// Returns how often a pass is repeated for one figure.
    pub(crate) fn repeats(&self) -> usize {
        self.operations.div_ceil(self.timers)
    }

    /// Makes the machine provide memory; a test does without.
    pub(crate) fn back(&self, bytes: usize) {
        if !cfg!(test) {
            back_memory(bytes);
        }
    }
}

/// What a run returns.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// The digest of what fired, for a comparison across engines.
    pub(crate) checksum: u64,
    pub(crate) figures: Vec<(String, f64)>,
}

impl Outcome {
    #[cfg(test)]
    pub(crate) fn of(what: &str, figure: f64) -> Self {
        Self { figures: vec![(what.to_owned(), figure)], ..Self::default() }
    }

    pub(crate) fn new(checksum: u64) -> Self {
        Self { checksum, ..Self::default() }
    }

    /// Adds a figure if there is one.
    pub(crate) fn figure(&mut self, what: impl Into<String>, figure: impl Into<Option<f64>>) {
        self.figures.extend(figure.into().map(|figure| (what.into(), figure)));
    }

    /// Adds a time as ns for each of `operations`.
    pub(crate) fn time(&mut self, what: impl Into<String>, elapsed: Duration, operations: usize) {
        self.figure(what, elapsed.as_nanos() as f64 / operations as f64);
    }
}
