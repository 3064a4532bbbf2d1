//! How long a batch of freed nodes that is too small for a grace period waits for more nodes (see
//! [`recycle`](crate::shard::memory::recycle)).
//!
//! The smaller a batch, the fewer nodes it gives by one read-modify-write: where timers end in
//! random order, each node of a small batch lies in a word of its own. While timers are pending, a
//! batch that waits holds back no more nodes than one that is large enough, so it may wait for
//! long.

use crate::tick::Tick;

/// A batch waits for this many polls at least.
pub(super) const LEAST_POLLS: usize = if cfg!(shardwheel_loom) || crate::config::SMALL { 1 } else { 16 };

/// How many ticks a batch waits for at least, if the pending timers need all segments; and if they
/// need fewer, so that others may be given back. If nothing is pending, a batch waits for no tick.
const TICKS: Tick = if cfg!(shardwheel_loom) || crate::config::SMALL { 0 } else { 1 << 16 };
const TICKS_WITH_EXCESS: Tick = TICKS / 16;

/// The patience of the advancer with the batch that it is collecting.
#[derive(Debug, Default)]
pub(super) struct Patience {
    polls: usize,
    ticks: Tick,
    now: Tick,
    since: Tick,
}

impl Patience {
    pub(super) fn note_poll(&mut self) {
        self.polls = self.polls.saturating_add(1);
    }

    /// Notes that the clock has moved to `now`, with `live` timers pending, which do not need
    /// `excess` of the segments.
    #[inline]
    pub(super) fn note_move(&mut self, now: Tick, live: usize, excess: usize) {
        self.now = now;
        self.ticks = match (live, excess) {
            (0, _) => 0,
            (_, 0) => TICKS,
            _ => TICKS_WITH_EXCESS,
        };
    }

    /// Whether the batch has waited for long enough.
    pub(super) fn is_over(&self) -> bool {
        self.polls >= LEAST_POLLS && self.now.saturating_sub(self.since) >= self.ticks
    }

    /// Ends the patience with this batch.
    pub(super) fn end(&mut self) {
        (self.polls, self.ticks) = (LEAST_POLLS, 0);
    }

    /// Begins anew, with the next batch.
    pub(super) fn begin(&mut self) {
        (self.polls, self.since) = (0, self.now);
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests {
    use super::*;

    #[test]
    fn a_batch_waits_longer_while_timers_are_pending() {
        for (live, excess, ticks) in [(0, 0, 0), (0, 3, 0), (1, 0, TICKS), (1, 3, TICKS_WITH_EXCESS)] {
            let mut patience = Patience::default();
            patience.note_move(1000, live, excess);
            patience.begin();
            patience.note_move(1000 + ticks, live, excess);
            (0..LEAST_POLLS).for_each(|_| {
                assert!(!patience.is_over(), "too few polls");
                patience.note_poll();
            });
            assert!(patience.is_over());
            if let Some(before) = ticks.checked_sub(1) {
                patience.note_move(1000 + before, live, excess);
                assert!(!patience.is_over(), "{live} pending, {excess} segments too many");
            }
            patience.end();
            assert!(patience.is_over());
            patience.begin();
            assert!(!patience.is_over());
        }
    }
}
