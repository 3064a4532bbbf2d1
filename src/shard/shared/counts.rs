//! Sums over the counters of a shard's lanes (see [`stats`](crate::shard::shared::stats)), and the
//! check of how many dead nodes there are.

use crate::shard::memory::epochs::Guard;
use crate::shard::shared::Shared;
use crate::shard::shared::lanes::{Lane, Local, UNREPORTED};
use crate::shard::shared::stats::ShardStats;
use crate::size::size;
use crate::sync::plain::AtomicU64;
use crate::sync::{AtomicBool, Ordering, fence};

/// Dead nodes that are always tolerated (promise 5).
pub(crate) const DEAD_FLOOR: u64 = size(4096, 8, 2);

/// Dead nodes from one look of the advancer at their number to the next, at least.
pub(crate) const DEAD_PER_LOOK: u64 = size(64, 1, 1);

/// How often pending timers are counted, at most. Models count once: they are about the timers,
/// not about a count that is too high.
pub(crate) const COUNTS: usize = size(8, 8, 1);

/// Below this count no sweep can be due, even if every lane has its maximum of unreported dead
/// nodes.
const SURELY_TOLERATED: u64 = DEAD_FLOOR * 3 / 4 - UNREPORTED as u64;

/// While a sweep is due, a producer checks once per 64 of its dead nodes whether cancels are faster
/// than the sweep.
const LEFT_PER_LOOK: u64 = 1 << 6;

/// The dead nodes of a shard, as far as producers have reported them.
///
/// Producers compare two words instead of a sum over all lanes. A producer adds to `reported` some
/// nodes at a time, passes a SeqCst fence, and asks for a sweep if `sweep_at` is reached. The
/// advancer writes `sweep_at` from exact counts: no sweep is due before, unless timers fire. It
/// does so when timers have fired and when a pass of the sweep ends; then it passes a fence and
/// reads `reported`. One fence is first: the producer sees the new `sweep_at`, or the advancer sees
/// the report.
///
/// Timers that are scheduled, and dead nodes that are freed, put the sweep off. So a producer may
/// ask too early. The advancer then finds that no sweep is due, and writes `sweep_at` anew.
///
/// Where many threads cancel without a pause on few processors, the advancer's thread gets too
/// little of them to sweep as fast. Then producers give theirs away, once in 64 cancels: eight
/// threads that schedule and cancel a thousand timers each, in turns on one core, kept 14 million
/// nodes after five seconds, and keep 33,000.
pub(crate) struct DeadReports {
    /// Dead nodes made, less those reused, in all lanes. Written by producers.
    reported: AtomicU64,
    /// The number of reported nodes at which a producer asks for a sweep. Written by the advancer.
    sweep_at: AtomicU64,
    /// Whether a sweep has been asked for. Set by cancellers and the advancer, cleared by the
    /// advancer.
    pub(crate) sweep_requested: AtomicBool,
}

impl DeadReports {
    pub(crate) fn new() -> Self {
        Self {
            reported: AtomicU64::new(0),
            sweep_at: AtomicU64::new(SURELY_TOLERATED),
            sweep_requested: AtomicBool::new(false),
        }
    }
}

/// The number of pending timers while other threads are at work, by two sums: timers that have
/// ended and timers that were scheduled.
///
/// Never less than the number at some moment of the call: the ended timers are counted first. Where
/// none ends before the second sum is done, it is the number at some moment. A thread that loses
/// its processor between the two sums would count all that others have scheduled and ended
/// meanwhile. So it counts anew, and takes the least.
fn pending(ended: impl Fn() -> u64, scheduled: impl Fn() -> u64) -> u64 {
    let (mut before, mut least) = (ended(), u64::MAX);
    for _ in 0..COUNTS {
        least = least.min(scheduled().saturating_sub(before));
        let after = if COUNTS == 1 { before } else { ended() };
        if after == before {
            break;
        }
        before = after;
    }
    least
}

/// Whether a count has come to `limit`. The counts may wrap.
fn is_reached(limit: u64, count: u64) -> bool {
    count.wrapping_sub(limit) as i64 >= 0
}

impl<T> Shared<T> {
    /// The number of pending timers, as [`pending`] counts them, and never more than the bound
    /// allows. O(threads).
    pub(crate) fn len(&self) -> usize {
        self.counting.model_look();
        let pending = pending(|| self.ended(), || self.scheduled());
        usize::try_from(pending).unwrap_or(usize::MAX).min(self.bound.limit())
    }

    /// The number of timers that have ended since the shard was made. O(threads).
    fn ended(&self) -> u64 {
        self.lanes.iter().fold(self.tally.ended(), |sum, lane| sum + lane.tally.cancelled.get())
    }

    /// The number of timers scheduled since the shard was made. O(threads).
    pub(crate) fn scheduled(&self) -> u64 {
        self.lanes.iter().fold(0, |sum, lane| sum.wrapping_add(lane.tally.scheduled.get()))
    }

    /// How many timers have been scheduled since the shard was made, and how many of them are
    /// pending: a hint, by one pass over the lanes. What threads do meanwhile it may count in part,
    /// so it may say less than [`len`](Self::len) at any moment. O(threads).
    pub(crate) fn scheduled_and_pending(&self) -> (u64, usize) {
        self.counting.model_look();
        let (ended, scheduled) =
            self.lanes.iter().fold((self.tally.ended(), 0_u64), |(ended, scheduled), Lane { tally, .. }| {
                (ended + tally.cancelled.get(), scheduled.wrapping_add(tally.scheduled.get()))
            });
        let pending = usize::try_from(scheduled.saturating_sub(ended)).unwrap_or(usize::MAX);
        (scheduled, pending.min(self.bound.limit()))
    }

    /// Nodes of cancelled or moved timers that are still linked. O(threads).
    pub(crate) fn dead(&self) -> u64 {
        let gone = self.tally.dead_freed.get();
        let gone = self.lanes.iter().fold(gone, |sum, lane| sum + lane.tally.reused.get());
        self.dead_made().saturating_sub(gone)
    }

    /// Nodes of cancelled or moved timers since the shard was made. O(threads).
    pub(crate) fn dead_made(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.tally.dead_made()).sum()
    }

    /// The number of dead nodes allowed (promise 5).
    pub(crate) fn tolerated_dead(&self) -> u64 {
        (self.len() as u64).max(DEAD_FLOOR)
    }

    /// Whether the dead nodes are more than three quarters of the tolerated number. O(threads).
    pub(crate) fn is_sweep_due(&self) -> bool {
        4 * self.dead() > 3 * self.tolerated_dead()
    }

    /// Reports the nodes that the lane's owner has left dead since its last report, and asks for a
    /// sweep if one is due. Returns true if the caller must wake the advancer for that. O(1).
    #[cold]
    pub(crate) fn report_dead(&self, lane: &Lane, local: &mut Local) -> bool {
        // Reused nodes are subtracted, so a lane's sum may be negative.
        let left = lane.tally.dead_made().wrapping_sub(lane.tally.reused.get());
        let more = left.wrapping_sub(std::mem::replace(&mut local.reported, left));
        local.until_report = lane.dead_per_report - 1;
        // Ordering: Release, pairs with `check_dead`: what is reported is counted in the tally.
        let reported = self.dead.reported.fetch_add(more, Ordering::Release).wrapping_add(more);
        // Ordering: SeqCst, see `DeadReports`.
        fence(Ordering::SeqCst);
        // Ordering: Relaxed, as above.
        let is_due = is_reached(self.dead.sweep_at.load(Ordering::Relaxed), reported);
        if is_due {
            let looks = left / LEFT_PER_LOOK != left.wrapping_sub(more) / LEFT_PER_LOOK;
            if looks && self.dead() > 2 * self.tolerated_dead() {
                // Many threads that cancel leave the advancer's too little of few processors.
                std::thread::yield_now();
            }
            // Ordering: Release, pairs with `take_sweep_request`: the pass that begins sees what is
            // dead. A swap, because loom does not order two stores that are not ordered otherwise.
            self.dead.sweep_requested.swap(true, Ordering::Release);
            // Ordering: SeqCst, pairs with the fence in `publish_wake_at`: the advancer sees the
            // request before it sleeps, or the caller sees the sleep and wakes the advancer.
            fence(Ordering::SeqCst);
        }
        is_due
    }

    /// Whether the caller, which has left a dead node, must wake the advancer because it sleeps
    /// with memory that the pending timers do not need. A dead node may keep a segment, and too few
    /// of them for a sweep may keep them all.
    ///
    /// One wake for a sleep is enough: the advancer then comes back for maintenance until no cancel
    /// has come in between. A cancel at the moment at which the advancer falls asleep may be
    /// missed, because no fence comes between its count and this load. It keeps one segment until
    /// the next cancel.
    #[inline]
    pub(crate) fn must_wake_for_cancel(&self) -> bool {
        // Ordering: Relaxed for both, a hint.
        self.clock.wakes_for_cancel.load(Ordering::Relaxed)
            && self.clock.wakes_for_cancel.swap(false, Ordering::Relaxed)
    }

    /// Writes anew at how many dead nodes producers ask for a sweep, and asks for one if it is due;
    /// for the advancer. O(1), except where there may be too many dead nodes: then O(threads).
    #[inline]
    pub(crate) fn check_dead(&self) {
        // Ordering: Acquire, pairs with `report_dead`: the tallies have what is reported.
        let reported = self.dead.reported.load(Ordering::Acquire);
        let surely = self.tally.dead_freed.get().wrapping_add(SURELY_TOLERATED);
        let sweep_at = if is_reached(surely, reported) { self.next_sweep(reported) } else { surely };
        // Ordering: Relaxed, only the advancer writes it.
        let before = self.dead.sweep_at.load(Ordering::Relaxed);
        // Ordering: Relaxed, ordered by the fence.
        self.dead.sweep_at.store(sweep_at, Ordering::Relaxed);
        // A producer that finds a former, lower value asks too early.
        if !is_reached(before, sweep_at) {
            // Ordering: SeqCst, see `DeadReports`.
            fence(Ordering::SeqCst);
        }
        // Ordering: Relaxed for both, as above; the advancer sees its own request.
        if is_reached(sweep_at, self.dead.reported.load(Ordering::Relaxed)) {
            self.dead.sweep_requested.store(true, Ordering::Relaxed);
        }
    }

    /// The number of reported nodes at which a sweep is due: `reported`, or more.
    #[cold]
    fn next_sweep(&self, reported: u64) -> u64 {
        // A sweep is due when 4 x dead reaches 3 x tolerated. A cancel raises the first by 4, and
        // lowers the second by 3 at most. So that takes at least `left` / 7 cancels.
        let left = (3 * self.tolerated_dead()).checked_sub(4 * self.dead());
        reported.wrapping_add(left.map_or(0, |left| (left / 7).max(DEAD_PER_LOOK)))
    }

    /// Takes the request for a sweep: true if a sweep was asked for since the last call. For the
    /// advancer.
    pub(crate) fn take_sweep_request(&self) -> bool {
        // Ordering: Acquire, pairs with `report_dead`.
        self.is_sweep_requested() && self.dead.sweep_requested.swap(false, Ordering::Acquire)
    }

    /// Whether a sweep has been asked for. An advancer that calls this after it has published until
    /// when it sleeps sees the requests of all producers that have not seen that sleep.
    pub(crate) fn is_sweep_requested(&self) -> bool {
        // Ordering: Relaxed, a hint; the fence in `publish_wake_at` orders it where the answer
        // matters.
        self.dead.sweep_requested.load(Ordering::Relaxed)
    }

    /// The number of timers that have been moved to another node. O(threads).
    pub(crate) fn moved(&self) -> u64 {
        self.counting.model_look();
        self.lanes.iter().map(|lane| lane.tally.moved.get()).sum()
    }

    pub(crate) fn stats(&self, pinned: &Guard<'_>) -> ShardStats {
        let pending = self.len();
        let (node_capacity, nodes) = self.slab.usage(pinned);
        let dead_nodes = usize::try_from(self.dead()).unwrap_or(usize::MAX);
        let wheels = self.count_wheels();
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
    use std::cell::Cell;

    use super::{DEAD_FLOOR, pending};
    use crate::shard::support::cancel;
    use crate::{Config, ShardStats, shard};

    /// Timers fire between two reports of a canceller, so that fewer dead nodes are tolerated.
    #[test]
    fn a_limit_is_lowered_when_timers_have_fired() {
        let (scheduler, mut advancer) = shard::<u32>(&Config::default());
        let set = |deadline| scheduler.schedule(deadline, 0).expect("open");
        let keys: Vec<_> = (0..2 * DEAD_FLOOR).map(|i| set(1_000_000 + i)).collect();
        (0..4 * DEAD_FLOOR).for_each(|_| _ = set(1));
        let (first, rest) = keys.split_at(DEAD_FLOOR as usize);
        cancel(&scheduler, first);
        drop(advancer.advance(0));
        assert!(!scheduler.shared.is_sweep_requested(), "many are pending");
        assert_eq!(advancer.advance(1).count() as u64, 4 * DEAD_FLOOR);
        assert!(scheduler.shared.is_sweep_requested());
        cancel(&scheduler, rest);
    }

    /// Four timers are pending throughout. The reader loses its processor before its first sum of
    /// the scheduled timers, while others schedule and end 300,000.
    #[test]
    fn a_reader_that_was_stopped_between_two_sums_counts_anew() {
        let (sums, ended) = (Cell::new(0), Cell::new(10));
        let scheduled = || {
            if sums.replace(sums.get() + 1) == 0 {
                ended.set(300_010);
            }
            ended.get() + 4
        };
        assert_eq!((pending(|| ended.get(), scheduled), sums.get()), (4, 2));
        // Timers end during each attempt: the least is taken, and the count comes to an end.
        let scheduled = || {
            ended.set(ended.get() + 1000 / (1 + sums.replace(sums.get() + 1)));
            ended.get() + 4
        };
        assert!((4..200).contains(&pending(|| ended.get(), scheduled)));
    }

    #[test]
    fn no_more_are_counted_than_the_bound_allows() {
        let config = Config::builder().max_pending(4).build().expect("in range");
        let (scheduler, _advancer) = shard::<u32>(&config);
        // As if the threads that scheduled these timers had ended them between the two sums.
        scheduler.shared.lanes.enter().parts().0.tally.scheduled.add(300_000);
        assert_eq!((scheduler.len(), scheduler.stats().pending), (4, 4));
    }

    #[test]
    fn all_is_counted() {
        let (scheduler, mut advancer) = shard::<u32>(&Config::default());
        let schedule = |deadline| scheduler.schedule(deadline, 0).expect("open");
        let keys: Vec<_> = (0..10).map(|_| schedule(100)).collect();
        cancel(&scheduler, &keys[..3]);
        schedule(130);
        assert_eq!(scheduler.reschedule(keys[3], 200), Some(keys[3]));
        assert_eq!(scheduler.reschedule(keys[4], 110), Some(keys[4]));
        assert_eq!(scheduler.reschedule(keys[4], 120), Some(keys[4]));
        assert!(scheduler.reschedule(keys[5], 50).is_some_and(|moved| moved != keys[5]));
        assert!(scheduler.reschedule(keys[6], 60).is_some_and(|moved| moved != keys[6]));
        assert_eq!(advancer.advance(60).count(), 2);
        cancel(&scheduler, &keys[7..8]);
        // Four cancelled and two moved timers left dead nodes; one of these was reused.
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
            extended: 3,
            moved: 2,
            reused: 1,
            ..ShardStats::default()
        };
        assert_eq!((scheduler.stats(), scheduler.shared.moved(), wheels), (expected, 2, 1));
        assert_eq!(scheduler.shared.scheduled_and_pending(), (11, 5));
        // A producer takes a whole word of nodes; node 0 does not exist.
        assert_eq!((nodes, node_capacity), (63, 65_535));
        schedule(1 << 40);
        assert!(scheduler.stats().wheels > 1);
        assert_eq!(advancer.into_pending().count(), 6);
        assert_eq!(scheduler.stats().handed_back, 6);
    }
}
