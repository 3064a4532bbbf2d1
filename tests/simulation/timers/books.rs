//! One timer in the model: its settings, its ticks and its counts.

use std::collections::BTreeSet;

use shardwheel::{Figures, Tick};

use super::Nanos;
use super::model::Id;

/// The ticks at which a timer may be due: one tick, unless its time has passed already; then it is
/// due at the next tick at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Due {
    pub(crate) first: Tick,
    pub(crate) last: Tick,
}

impl Due {
    pub(crate) fn at(tick: Tick) -> Self {
        Self { first: tick, last: tick }
    }
}

/// When a timer is due, from now or by the clock.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) enum When {
    After(Nanos),
    At(Nanos),
}

#[derive(Debug, Hash)]
pub(crate) struct Books {
    tick: Nanos,
    start: Nanos,
    pub(crate) limit: usize,
    pub(crate) is_shut: bool,
    /// What is scheduled, by the latest tick at which it is due.
    pub(crate) pending: BTreeSet<(Tick, Id)>,
    /// Recurring callbacks that are running, and will be scheduled again.
    pub(crate) running: usize,
    pub(crate) scheduled: u64,
    pub(crate) fired: u64,
    pub(crate) recurred: u64,
    pub(crate) cancelled: u64,
    pub(crate) handed_back: u64,
    pub(crate) panics: u64,
}

impl Books {
    pub(crate) fn new(tick: Nanos, start: Nanos, limit: usize) -> Self {
        Self {
            tick,
            start,
            limit,
            is_shut: false,
            pending: BTreeSet::new(),
            running: 0,
            scheduled: 0,
            fired: 0,
            recurred: 0,
            cancelled: 0,
            handed_back: 0,
            panics: 0,
        }
    }

    /// The first tick that begins at that time or later.
    pub(crate) fn tick_for(&self, at: Nanos) -> Tick {
        match at {
            Nanos::MAX => Tick::MAX,
            at => at.saturating_sub(self.start).div_ceil(self.tick),
        }
    }

    pub(crate) fn tick_at(&self, now: Nanos) -> Tick {
        (now - self.start) / self.tick
    }

    pub(crate) fn start_of(&self, tick: Tick) -> Nanos {
        self.start.saturating_add(tick.saturating_mul(self.tick))
    }

    /// When a timer is due that is scheduled now.
    pub(crate) fn due(&self, when: When, now: Nanos) -> Due {
        let next = self.tick_at(now) + 1;
        match when {
            When::After(delay) => Due::at(self.tick_for(now.saturating_add(delay)).max(next)),
            When::At(at) => Due { first: self.tick_for(at), last: self.tick_for(at).max(next) },
        }
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending.len() + self.running
    }

    pub(crate) fn is_full(&self) -> bool {
        self.pending() >= self.limit
    }

    /// Scheduled, fired, recurred, cancelled, handed back, panics, pending.
    pub(crate) fn counts(&self) -> [u64; 7] {
        let Self { scheduled, fired, recurred, cancelled, handed_back, panics, .. } = *self;
        [scheduled, fired, recurred, cancelled, handed_back, panics, self.pending() as u64]
    }
}

/// The same counts, from the timer's statistics.
pub(crate) fn counts_of(figures: &Figures) -> [u64; 7] {
    let Figures { scheduled, fired, recurred, cancelled, handed_back, panics, pending, .. } = *figures;
    [scheduled, fired, recurred, cancelled, handed_back, panics, pending as u64]
}
