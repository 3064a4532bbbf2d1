//! When the walk over the nodes starts again, and when it ends.

use super::*;
use crate::shard::Scheduler;
use crate::shard::memory::slab::Stay;
use crate::shard::node::Taken;
use crate::shard::support::small;
use crate::sync::Arc;

/// Schedules a timer, and calls `meanwhile` in the middle of moving it.
fn stall<R>(scheduler: &Scheduler<u32>, meanwhile: impl FnOnce(Taken<'_, u32>) -> R) -> R {
    let key = scheduler.schedule(9, 7).expect("open");
    let mut entered = scheduler.shared.lanes.enter();
    let stay = Stay::pinned(key.node(), &entered.parts().1.participant);
    let (node, era) = scheduler.find(&stay).expect("it is in use");
    meanwhile(node.take(era, key.generation).expect("pending"))
}

/// Goes over all nodes once, and finds nothing.
fn walk_in_vain(handover: &mut PendingWalk<u32>) {
    for _ in 0..handover.shared.slab.words() {
        assert!(handover.next_word());
        while let Some(id) = handover.ids.next() {
            assert_eq!(handover.take(id), None);
        }
    }
}

#[test]
fn a_walk_that_met_a_producer_at_work_is_followed_by_another() {
    let (scheduler, mut advancer) = small();
    let mut handover = stall(&scheduler, |taken| {
        let mut handover = PendingWalk::new(advancer.shared.pass_on());
        walk_in_vain(&mut handover);
        taken.restore();
        handover
    });
    assert_eq!(handover.next(), Some((9, 7)));
    assert_eq!((handover.next(), handover.next()), (None, None));
}

#[test]
fn a_walk_during_which_a_timer_was_moved_is_followed_by_another() {
    let (scheduler, mut advancer) = small();
    let key = scheduler.schedule(9, 7).expect("open");
    assert!(scheduler.cancel(key).is_some());
    let mut handover = PendingWalk::new(advancer.shared.pass_on());
    walk_in_vain(&mut handover);
    advancer.shared.lanes.enter().parts().0.tally.moved.add(1);
    walk_in_vain(&mut handover);
    assert!(!handover.next_word());
}

/// The walk ends without the timer of a stalled producer; over few nodes, after many walks.
#[test]
fn there_is_a_last_walk() {
    let (scheduler, mut advancer) = small();
    stall(&scheduler, |taken| {
        let mut handover = PendingWalk::new(advancer.shared.pass_on());
        assert!(handover.walks_left >= 100);
        assert_eq!((handover.next(), handover.walks_left), (None, 0));
        taken.restore();
    });
}

/// Kept timers come back in memory order, and cannot be cancelled; the walk disposes of the others.
#[test]
fn an_end_keeps_some_in_their_nodes() {
    let (scheduler, advancer) = small();
    let keys: Vec<_> = (0..200).map(|i| scheduler.schedule(u64::from(i) + 5, i).expect("open")).collect();
    assert_eq!(scheduler.reschedule(keys[8], 1_000), Some(keys[8]));
    assert_eq!(scheduler.cancel(keys[3]), Some(3));
    let mut disposed = Vec::new();
    let mut kept = advancer.end(|payload| payload % 4 == 0, |payload| disposed.push(payload));
    assert_eq!(
        (kept.len(), disposed.len(), scheduler.len(), scheduler.stats().handed_back),
        (50, 149, 0, 199)
    );
    assert!(keys.iter().all(|&key| scheduler.cancel(key).is_none()));
    assert!(keys.iter().all(|&key| scheduler.reschedule(key, 7).is_none()));
    let expected = [(keys[0], 5, 0), (keys[4], 9, 4), (keys[8], 1_000, 8)];
    assert_eq!(kept.by_ref().take(3).collect::<Vec<_>>(), expected);
    assert_eq!((kept.len(), kept.by_ref().count(), kept.len()), (47, 47, 0));
}

/// A kept timer that is not taken is dropped once, also if some drops panic.
#[test]
fn what_is_kept_is_dropped_once() {
    struct Bomb(Arc<std::sync::atomic::AtomicUsize>);
    impl Drop for Bomb {
        fn drop(&mut self) {
            let count = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            assert!(count % 3 != 1, "a drop panics");
        }
    }
    let (scheduler, advancer) = crate::shard(&crate::Config::default());
    let dropped = Arc::default();
    (0..10).for_each(|tick| drop(scheduler.schedule(tick, Bomb(Arc::clone(&dropped)))));
    let kept = advancer.end(|_| true, drop);
    assert_eq!((kept.len(), dropped.load(std::sync::atomic::Ordering::Relaxed)), (10, 0));
    let drop_all = std::panic::AssertUnwindSafe(|| drop((kept, scheduler)));
    assert!(std::panic::catch_unwind(drop_all).is_err());
    assert_eq!(dropped.load(std::sync::atomic::Ordering::Relaxed), 10);
}

/// A kept timer's deadline and key come back whatever they are; the last deadlines are all one.
#[test]
fn what_is_kept_says_when_it_was_due() {
    let (scheduler, advancer) = small();
    let last = (1 << 61) - 1;
    let ticks = [0, 1, (1 << 29) - 1, 1 << 29, (1 << 32) + 5, last - 1, last, last + 1, Tick::MAX];
    let keys = ticks.map(|tick| scheduler.schedule(tick, 7).expect("open"));
    let kept: Vec<_> = advancer.end(|_| true, drop).collect();
    assert_eq!(kept.len(), ticks.len());
    for (key, deadline, _) in kept {
        let at = keys.iter().position(|&known| known == key).expect("it is one of the keys");
        assert_eq!(deadline, if ticks[at] < last { ticks[at] } else { Tick::MAX });
    }
}
