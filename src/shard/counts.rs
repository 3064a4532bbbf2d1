//! Sums over the counters of a shard's threads (see [`stats`](super::stats)).

use super::lane::Lane;
use super::reclaim::Guard;
use super::shared::Shared;
use super::stats::ShardStats;
use crate::sync::Ordering;

/// Dead nodes that are always tolerated (promise 5); in models, which are small, two, and few for a fuzzer.
const DEAD_FLOOR: u64 = if cfg!(shardwheel_loom) {
    2
} else if cfg!(fuzzing) {
    8
} else {
    4096
};

impl<T> Shared<T> {
    /// How many timers are pending. Never less than the truth while others are at work: the ended ones are
    /// counted first, the scheduled ones after. O(threads).
    pub(crate) fn len(&self) -> usize {
        self.counting.note_look();
        let ended = self.tally.fired.get() + self.tally.handed_back.get();
        let ended = self.lanes.iter().fold(ended, |sum, lane| sum + lane.tally.cancelled.get());
        usize::try_from(self.scheduled().saturating_sub(ended)).unwrap_or(usize::MAX)
    }

    /// How many timers have been scheduled since the shard was made. O(threads).
    pub(crate) fn scheduled(&self) -> u64 {
        self.lanes.iter().fold(0, |sum, lane| sum.wrapping_add(lane.tally.scheduled.get()))
    }

    /// Nodes of cancelled or moved timers that are still linked, or kept until the payload comes back. O(threads).
    pub(crate) fn dead(&self) -> u64 {
        let gone = self.tally.buried.get();
        let gone = self.lanes.iter().fold(gone, |sum, lane| sum + lane.tally.reused.get());
        self.dead_made().saturating_sub(gone)
    }

    /// Nodes of cancelled or moved timers since the shard was made. O(threads).
    pub(crate) fn dead_made(&self) -> u64 {
        let made = |lane: &Lane| lane.tally.cancelled.get() + lane.tally.moved.get();
        self.lanes.iter().map(made).sum()
    }

    /// How many dead nodes there may be (promise 5).
    pub(crate) fn tolerated_dead(&self) -> u64 {
        (self.len() as u64).max(DEAD_FLOOR)
    }

    /// Whether the dead are more than three quarters of what is tolerated. O(threads).
    pub(crate) fn is_sweep_due(&self) -> bool {
        4 * self.dead() > 3 * self.tolerated_dead()
    }

    /// Asks for a sweep if one is due; for cancellers, now and then.
    #[cold]
    pub(crate) fn ask_for_sweep(&self) {
        if self.is_sweep_due() {
            // Ordering: Release, pairs with `take_sweep_owed`: the pass that begins finds what was counted here.
            let asked = self.sweep_owed.swap(true, Ordering::Release);
            if !asked {
                self.clock.waker.wake();
            }
        }
    }

    /// Whether a sweep was asked for since the last call; for the advancer.
    pub(crate) fn take_sweep_owed(&self) -> bool {
        // Ordering: Acquire, pairs with `ask_for_sweep`.
        self.is_sweep_owed() && self.sweep_owed.swap(false, Ordering::Acquire)
    }

    /// Whether a sweep has been asked for; for the advancer. After a registration it sees those requests that woke the
    /// waker before.
    pub(crate) fn is_sweep_owed(&self) -> bool {
        // Ordering: Relaxed, a look; the waker's own synchronisation orders it after a wake that came too early.
        self.sweep_owed.load(Ordering::Relaxed)
    }

    /// How many timers have been moved to another node. O(threads).
    pub(crate) fn moved(&self) -> u64 {
        self.counting.note_look();
        self.lanes.iter().map(|lane| lane.tally.moved.get()).sum()
    }

    pub(crate) fn stats(&self, pinned: &Guard) -> ShardStats {
        let pending = self.len();
        let (node_capacity, nodes) = self.slab.usage(pinned);
        let dead_nodes = usize::try_from(self.dead()).unwrap_or(usize::MAX);
        let wheels = self.wheels(pinned);
        let mut stats =
            ShardStats { pending, nodes, node_capacity, dead_nodes, wheels, ..ShardStats::default() };
        stats.fired = self.tally.fired.get();
        stats.recurred = self.tally.recurred.get();
        stats.handed_back = self.tally.handed_back.get();
        stats.cascaded = self.tally.cascaded.get();
        stats.swept = self.tally.swept.get();
        for lane in self.lanes.iter() {
            stats.cancelled += lane.tally.cancelled.get();
            stats.extended += lane.tally.extended.get();
            stats.moved += lane.tally.moved.get();
            stats.reused += lane.tally.reused.get();
            stats.scheduled += lane.tally.scheduled.get();
        }
        stats
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests {
    use crate::shard::support::cancel;
    use crate::{Config, ShardStats, shard};

    #[test]
    fn all_is_counted() {
        let (scheduler, mut advancer) = shard::<u32>(&Config::default());
        let schedule = |deadline| scheduler.schedule(deadline, 0).expect("open");
        let keys: Vec<_> = (0..10).map(|_| schedule(100)).collect();
        cancel(&scheduler, &keys[..3]);
        schedule(130);
        assert_eq!(scheduler.reschedule(keys[3], 200), Some(keys[3]));
        assert_eq!(scheduler.reschedule(keys[4], 110), Some(keys[4]));
        assert!(scheduler.reschedule(keys[5], 50).is_some_and(|moved| moved != keys[5]));
        assert!(scheduler.reschedule(keys[6], 60).is_some_and(|moved| moved != keys[6]));
        assert_eq!(advancer.advance(60).count(), 2);
        cancel(&scheduler, &keys[7..8]);
        // Four that were cancelled and two that were moved left nodes behind, one of which was used again.
        let ShardStats { nodes, node_capacity, wheels, .. } = scheduler.stats();
        let expected = ShardStats {
            pending: 5,
            nodes,
            node_capacity,
            dead_nodes: 5,
            wheels,
            scheduled: 11,
            fired: 2,
            cancelled: 4,
            extended: 2,
            moved: 2,
            reused: 1,
            ..ShardStats::default()
        };
        assert_eq!((scheduler.stats(), advancer.shared.moved(), wheels), (expected, 2, 1));
        // A word of them is taken at once; its first is not there.
        assert_eq!((nodes, node_capacity), (63, 65_535));
        assert_eq!(advancer.into_pending().count(), 5);
        assert_eq!(scheduler.stats().handed_back, 5);
    }
}
