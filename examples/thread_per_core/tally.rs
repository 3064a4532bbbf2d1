//! The counts, one set for each thread.

use std::ops::AddAssign;

use hdrhistogram::Histogram;

use super::clock::Moment;

/// Significant decimal digits of a lateness.
const DIGITS: u8 = 3;

/// The counts of a serving thread; their sum has the counts of all threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Threads that are pinned to a core.
    pub(crate) pinned: u64,
    pub(crate) connections: u64,
    pub(crate) packets: u64,
    /// How connections ended; `open` counts those that had not ended.
    pub(crate) idle_closes: u64,
    pub(crate) goodbyes: u64,
    pub(crate) failed: u64,
    pub(crate) open: u64,
    pub(crate) reminders: Reminders,
    pub(crate) firings: Firings,
    /// Timers that fired for a connection that had ended, or could not be cancelled when it ended.
    pub(crate) strays: u64,
    pub(crate) wakeups: Wakeups,
}

/// Reminders, by how far they came.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reminders {
    pub(crate) asked: u64,
    pub(crate) fired: u64,
    /// Those that fired in another thread than their connection's.
    pub(crate) across: u64,
    pub(crate) delivered: u64,
    /// Fired, but the connection or its thread had ended.
    pub(crate) undelivered: u64,
    /// Still pending when the server ended, or refused by a shard that had ended.
    pub(crate) unfired: u64,
}

/// How late idle timeouts and reminders fired.
#[derive(Clone, Debug)]
pub(crate) struct Firings {
    /// Fired before they were due, to the nanosecond; must be 0.
    pub(crate) early: u64,
    /// In microseconds.
    pub(crate) lateness: Histogram<u64>,
}

/// How often a thread returned from its poll.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wakeups {
    pub(crate) all: u64,
    /// Woken by another thread.
    pub(crate) by_others: u64,
    /// Not woken, no socket ready, no timer due. A timer that is put off stays in its bucket until
    /// the time for which it was first set; the thread then wakes to move it on.
    pub(crate) for_nothing: u64,
}

impl Firings {
    pub(crate) fn note(&mut self, due: Moment, now: Moment) {
        match now.checked_sub(due) {
            Some(late) => self.lateness.saturating_record(late.as_micros() as u64),
            None => self.early += 1,
        }
    }
}

impl Default for Firings {
    fn default() -> Self {
        Self { early: 0, lateness: Histogram::new(DIGITS).expect("a valid number of digits") }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.pinned += other.pinned;
        self.connections += other.connections;
        self.packets += other.packets;
        self.idle_closes += other.idle_closes;
        self.goodbyes += other.goodbyes;
        self.failed += other.failed;
        self.open += other.open;
        self.reminders += other.reminders;
        self.firings += other.firings;
        self.strays += other.strays;
        self.wakeups += other.wakeups;
    }
}

impl AddAssign for Reminders {
    fn add_assign(&mut self, other: Self) {
        self.asked += other.asked;
        self.fired += other.fired;
        self.across += other.across;
        self.delivered += other.delivered;
        self.undelivered += other.undelivered;
        self.unfired += other.unfired;
    }
}

impl AddAssign for Firings {
    fn add_assign(&mut self, other: Self) {
        self.early += other.early;
        self.lateness += other.lateness;
    }
}

impl AddAssign for Wakeups {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.by_others += other.by_others;
        self.for_nothing += other.for_nothing;
    }
}
