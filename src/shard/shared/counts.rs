//! Sums over the counters of a shard's lanes (see [`stats`](crate::shard::shared::stats)), and the
//! check of how many dead nodes there are.

use crate::shard::memory::epochs::Guard;
use crate::shard::shared::Shared;
use crate::shard::shared::lanes::{Lane, Local, UNREPORTED};
use crate::shard::shared::stats::ShardStats;
use crate::sync::plain::AtomicU64;
use crate::sync::{Ordering, fence};

/// Dead nodes that are always tolerated (promise 5). Smaller in models (2) and under fuzzing and
/// Miri (8).
const DEAD_FLOOR: u64 = if cfg!(shardwheel_loom) {
    2
} else if crate::config::SMALL {
    8
} else {
    4096
};

/// The least number of dead nodes between two sums over all lanes.
const LEAST_STEP: u64 = if cfg!(shardwheel_loom) || crate::config::SMALL { 1 } else { 64 };

/// The greatest number of dead nodes between two sums over all lanes.
const MOST_STEP: u64 = if cfg!(shardwheel_loom) || crate::config::SMALL { 1 } else { DEAD_FLOOR / 8 };

/// How far the next check may be above the estimate, where the check is above `SURELY_TOLERATED`.
/// `FAR` and the dead nodes not yet reported (1,024 + 512) are together still below the floor.
const FAR: i64 = 2 * MOST_STEP as i64;

/// Up to this many reported dead nodes, no sum over all lanes is needed.
const SURELY_TOLERATED: i64 = (DEAD_FLOOR * 3 / 4) as i64 - UNREPORTED as i64;

/// The dead nodes that the producers of a shard have reported. Without reports, each cancel or each
/// tick would take a sum over all lanes, which takes longer the more threads there are.
///
/// `check_at` is the estimate of the dead nodes at which a canceller takes the next sum. It must
/// not stay far above the estimate; otherwise no thread would take a sum while too many timers are
/// cancelled.
///
/// - *Cancels meanwhile* only raise the estimate.
/// - *Nodes freed meanwhile* lower the estimate. The advancer then brings the check
///   [near](Shared::bring_check_near), and so does every setter after it has set the check. Both
///   write, pass a SeqCst fence, and read what the other writes. At least one of the two sees the
///   other's write.
/// - *A setter that is stopped before it sets the check* uses old counts when it sets it. It sets
///   by compare-and-swap, from the value that it read before the counts. That value has a version,
///   so the compare-and-swap fails if the check has been set meanwhile. If the check has not been
///   set, the estimate has passed the value read by no more than what other producers were
///   reporting at that moment. So the new value is at most that much, and one step, above the value
///   read.
pub(crate) struct DeadReports {
    /// Dead nodes made, less those reused, in all lanes. Written by producers.
    reported: AtomicU64,
    /// A [`Check`]. Written by producers and the advancer.
    check_at: AtomicU64,
}

/// The estimate at which a canceller takes the next sum over all lanes, and a version, so that no
/// value occurs twice within 2^20 changes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Check(u64);

impl Check {
    const VERSION_BITS: u32 = 20;
    const MOST: i64 = i64::MAX >> Self::VERSION_BITS;

    fn new(version: u64, estimate: i64) -> Self {
        let estimate = estimate.clamp(-Self::MOST, Self::MOST);
        let version = version & ((1 << Self::VERSION_BITS) - 1);
        Self((estimate as u64) << Self::VERSION_BITS | version)
    }

    fn estimate(self) -> i64 {
        self.0 as i64 >> Self::VERSION_BITS
    }

    fn next(self, estimate: i64) -> Self {
        Self::new(self.0.wrapping_add(1), estimate)
    }
}

impl DeadReports {
    pub(crate) fn new() -> Self {
        let check = Check::new(0, SURELY_TOLERATED);
        Self { reported: AtomicU64::new(0), check_at: AtomicU64::new(check.0) }
    }
}

/// How often [`pending`] counts, at most. Models count once: they are about the timers, not about a
/// count that is too high.
const COUNTS: usize = if cfg!(shardwheel_loom) { 1 } else { 8 };

/// The number of pending timers while other threads are at work, by two sums: timers that have ended
/// and timers that were scheduled.
///
/// Never less than the number at some moment of the call: the ended timers are counted first. Where
/// none ends before the second sum is done, it is the number at some moment. A thread that loses its
/// processor between the two sums would count all that others have scheduled and ended meanwhile.
/// So it counts anew, and takes the least.
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

impl<T> Shared<T> {
    /// The number of pending timers, as [`pending`] counts them, and never more than the bound
    /// allows. O(threads).
    pub(crate) fn len(&self) -> usize {
        self.counting.note_look();
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
    /// sweep if one is due. Returns true if the caller must wake the advancer for that. O(1),
    /// except where there may be too many dead nodes.
    #[cold]
    pub(crate) fn report_dead(&self, lane: &Lane, local: &mut Local) -> bool {
        // Reused nodes are subtracted, so a lane's sum may be negative.
        let left = lane.tally.dead_made().wrapping_sub(lane.tally.reused.get());
        let more = left.wrapping_sub(std::mem::replace(&mut local.reported, left));
        local.until_report = lane.dead_per_report - 1;
        // Ordering: Relaxed, a count.
        let reported = self.dead.reported.fetch_add(more, Ordering::Relaxed).wrapping_add(more);
        self.estimate(reported) >= self.check_at().estimate() && (self.join_request() || self.request_sweep())
    }

    /// Whether the caller, which has left a dead node, must wake the advancer because it sleeps with
    /// memory that the pending timers do not need. A dead node may keep a segment, and too few of
    /// them for a sweep may keep them all.
    ///
    /// One wake for a sleep is enough: the advancer then comes back for maintenance until no cancel
    /// has come in between. A cancel at the moment at which the advancer falls asleep may be missed,
    /// because no fence comes between its count and this load. It keeps one segment until the next
    /// cancel.
    #[inline]
    pub(crate) fn must_wake_for_cancel(&self) -> bool {
        // Ordering: Relaxed for both, a hint.
        self.wakes_for_cancel.load(Ordering::Relaxed) && self.wakes_for_cancel.swap(false, Ordering::Relaxed)
    }

    /// Whether a sweep has been asked for and the advancer has not begun it. The caller then makes
    /// that request its own and wakes the advancer: the thread that made the request may have been
    /// stopped before its wake. While the advancer is away, this spares each canceller the sums.
    fn join_request(&self) -> bool {
        let is_owed = self.is_sweep_requested();
        if is_owed {
            // Ordering: SeqCst, as in `request_sweep`. As an Acquire fence it pairs with the
            // Release of the request, so the request comes before it.
            fence(Ordering::SeqCst);
        }
        is_owed
    }

    /// Asks for a sweep if one is due and returns true. Otherwise sets the estimate at which the
    /// next check takes place. O(threads).
    #[cold]
    pub(crate) fn request_sweep(&self) -> bool {
        // Read before the counts: see `DeadReports`.
        let check = self.check_at();
        // Ordering: Relaxed, a count. It is read before the count of freed nodes.
        let reported = self.dead.reported.load(Ordering::Relaxed);
        let (dead, tolerated) = (self.dead(), self.tolerated_dead());
        let Some(left) = (3 * tolerated).checked_sub(4 * dead) else {
            // Ordering: Release, pairs with `take_sweep_request`: the pass that begins sees the
            // counts read here.
            self.sweep_requested.store(true, Ordering::Release);
            // Ordering: SeqCst, pairs with the fence in `publish_wake_at`: the advancer sees the
            // request before it sleeps, or the caller sees the sleep and wakes the advancer.
            fence(Ordering::SeqCst);
            return true;
        };
        // A cancel takes 1 from the pending timers and adds 1 to the dead nodes: 3 + 4 = 7
        // quarters.
        let step = (left / 7).clamp(LEAST_STEP, MOST_STEP);
        self.set_check(check, self.estimate(reported).saturating_add(step as i64));
        self.bring_check_near();
        false
    }

    /// Asks for a sweep if timers that have ended, or nodes that were freed, make one due; for the
    /// advancer. O(1), except where there may be too many dead nodes.
    #[inline]
    pub(crate) fn check_dead(&self) {
        // Ordering: Relaxed, a count.
        if self.estimate(self.dead.reported.load(Ordering::Relaxed)) > SURELY_TOLERATED {
            self.request_sweep();
        } else {
            self.bring_check_near();
        }
    }

    /// Lowers the check if so many nodes have been freed since it was set that it is far above the
    /// estimate. O(1). Lock-free: it retries only if another thread has set the check.
    #[inline]
    pub(crate) fn bring_check_near(&self) {
        loop {
            let check = self.check_at();
            // Ordering: Relaxed, a count.
            let estimate = self.estimate(self.dead.reported.load(Ordering::Relaxed));
            let near = estimate.saturating_add(FAR).max(SURELY_TOLERATED);
            if check.estimate() <= near {
                return;
            }
            self.set_check(check, near);
        }
    }

    #[inline]
    fn check_at(&self) -> Check {
        // Ordering: Acquire, pairs with `set_check`: the counts that the caller reads next are no
        // older than those that the setter used.
        Check(self.dead.check_at.load(Ordering::Acquire))
    }

    /// Sets the check, unless another thread has set it since the caller read `seen`.
    fn set_check(&self, seen: Check, estimate: i64) {
        let next = seen.next(estimate);
        // Ordering: Release, pairs with `check_at`; on failure nothing is read.
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        let _ = self.dead.check_at.compare_exchange(seen.0, next.0, success, failure);
        // Ordering: SeqCst, pairs with the fence in `publish_wake_at`: the advancer sees this check
        // before it sleeps, or the caller sees the nodes that the advancer has freed.
        fence(Ordering::SeqCst);
    }

    /// The current [`estimate`](Self::estimate).
    #[cfg(test)]
    pub(super) fn reported_dead(&self) -> i64 {
        // Ordering: Relaxed, a count.
        self.estimate(self.dead.reported.load(Ordering::Relaxed))
    }

    /// An estimate of the dead nodes: those reported, less those freed. The result may be negative.
    #[inline]
    fn estimate(&self, reported: u64) -> i64 {
        reported.wrapping_sub(self.tally.dead_freed.get()) as i64
    }

    /// Takes the request for a sweep: true if a sweep was asked for since the last call. For the
    /// advancer.
    pub(crate) fn take_sweep_request(&self) -> bool {
        // Ordering: Acquire, pairs with `request_sweep`.
        self.is_sweep_requested() && self.sweep_requested.swap(false, Ordering::Acquire)
    }

    /// Whether a sweep has been asked for. An advancer that calls this after it has published until
    /// when it sleeps sees the requests of all producers that have not seen that sleep.
    pub(crate) fn is_sweep_requested(&self) -> bool {
        // Ordering: Relaxed, a hint; the fence in `publish_wake_at` orders it where the answer
        // matters.
        self.sweep_requested.load(Ordering::Relaxed)
    }

    /// The number of timers that have been moved to another node. O(threads).
    pub(crate) fn moved(&self) -> u64 {
        self.counting.note_look();
        self.lanes.iter().map(|lane| lane.tally.moved.get()).sum()
    }

    pub(crate) fn stats(&self, pinned: &Guard<'_>) -> ShardStats {
        let pending = self.len();
        let (node_capacity, nodes) = self.slab.usage(pinned);
        let dead_nodes = usize::try_from(self.dead()).unwrap_or(usize::MAX);
        let wheels = self.wheels.count();
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

    use super::pending;
    use crate::shard::support::cancel;
    use crate::{Config, ShardStats, shard};

    /// A canceller may set the check from counts that it read before nodes were freed. Afterwards
    /// only `next_expiration` runs.
    #[test]
    fn a_look_that_is_far_off_is_brought_near() {
        let (scheduler, advancer) = shard::<u32>(&Config::default());
        scheduler.shared.set_check(scheduler.shared.check_at(), 100_000);
        assert_eq!(advancer.next_expiration(), None);
        let far = |deadline| scheduler.schedule(deadline, 0).expect("open");
        let keys: Vec<_> = (0..2 * super::DEAD_FLOOR).map(|i| far(1_000_000 + i)).collect();
        let (first, rest) = keys.split_at(super::DEAD_FLOOR as usize / 2);
        cancel(&scheduler, first);
        assert!(!scheduler.shared.is_sweep_requested(), "more are pending");
        cancel(&scheduler, rest);
        assert!(scheduler.shared.is_sweep_requested());
    }

    /// Four timers are pending throughout. The reader loses its processor before its first sum of the
    /// scheduled timers, while others schedule and end 300,000.
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
            extended: 2,
            moved: 2,
            reused: 1,
            ..ShardStats::default()
        };
        assert_eq!((scheduler.stats(), scheduler.shared.moved(), wheels), (expected, 2, 1));
        // A producer takes a whole word of nodes; node 0 does not exist.
        assert_eq!((nodes, node_capacity), (63, 65_535));
        assert_eq!(advancer.into_pending().count(), 5);
        assert_eq!(scheduler.stats().handed_back, 5);
    }
}
