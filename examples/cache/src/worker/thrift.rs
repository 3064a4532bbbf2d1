//! When memory that is free goes back to the system.
//!
//! The allocator keeps it for a while, because most of it is used again at once. It does not come by it again by itself,
//! so a thread asks for it: when its keys and buffers have become fewer, and when nothing has happened for a while after
//! much has gone through its buffers.

use shardwheel::Tick;

use crate::stats::{Figure, Stats};

/// To give memory back, a thread looks at all that it has. So it does so for at least this much memory, and for this
/// part of what it has, and not more often than this.
const LEAST: usize = 1024 * 1024;
const PART: usize = 16;
const PAUSE_TICKS: Tick = 100;

pub(super) struct Thrift {
    pub(super) give_back: fn(),
    /// The most that keys and buffers have taken since the last time.
    pub(super) most: usize,
    /// The bytes that had gone in and out by then, and the tick.
    pub(super) moved: usize,
    pub(super) since: Tick,
}

impl Thrift {
    /// Looks at a thread at the end of a round.
    pub(super) fn look(&mut self, stats: &Stats, now: Tick) {
        let memory = stats.memory();
        self.most = self.most.max(memory);
        if now >= self.since + PAUSE_TICKS {
            self.since = now;
            if self.most - memory > least(memory) {
                self.give_back(stats);
            }
        }
    }

    /// Whether it is worth while once nothing happens.
    pub(super) fn has_cause(&self, stats: &Stats) -> bool {
        moved(stats) - self.moved + self.most - stats.memory() > least(stats.memory())
    }

    pub(super) fn give_back(&mut self, stats: &Stats) {
        (self.give_back)();
        (self.most, self.moved) = (stats.memory(), moved(stats));
    }
}

fn least(memory: usize) -> usize {
    LEAST.max(memory / PART)
}

fn moved(stats: &Stats) -> usize {
    stats.get(Figure::BytesIn) + stats.get(Figure::BytesOut)
}
