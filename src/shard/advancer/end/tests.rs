//! The walk over the nodes ends, and what comes of them.

use super::*;
use crate::shard::memory::slab::Stay;
use crate::shard::support::small;
use crate::sync::Arc;

/// The walk ends without the timer of a stalled producer; over few nodes, after many walks.
#[test]
fn there_is_a_last_walk() {
    let (scheduler, advancer) = small();
    let key = scheduler.schedule(9, 7).expect("open");
    let mut entered = scheduler.shared.lanes.enter();
    let stay = Stay::pinned(key.node(), &entered.parts().1.participant);
    let (node, era) = scheduler.shared.slab.get(&stay).expect("it is in use");
    let (vacant, payload) = node.take(era, key.generation).expect("pending");
    let mut walk = Walk::new(&advancer.shared);
    assert!(walk.walks_left >= 100);
    assert_eq!((walk.take_next(&advancer.shared), walk.walks_left), (None, 0));
    vacant.restore(payload);
}

/// Kept timers come back in memory order, and cannot be cancelled; the walk disposes of the others.
#[test]
fn an_end_keeps_some_in_their_nodes() {
    let (scheduler, advancer) = small();
    let keys: Vec<_> = (0..200).map(|i| scheduler.schedule(u64::from(i) + 5, i).expect("open")).collect();
    assert_eq!(scheduler.reschedule(keys[8], 1_000), Some(keys[8]));
    assert_eq!(scheduler.cancel(keys[3]), Some(3));
    let mut disposed = Vec::new();
    let mut kept = Box::new(advancer).end(|payload| payload % 4 == 0, |payload| disposed.push(payload));
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
    let kept = Box::new(advancer).end(|_| true, drop);
    assert_eq!((kept.len(), dropped.load(std::sync::atomic::Ordering::Relaxed)), (10, 0));
    let drop_all = std::panic::AssertUnwindSafe(|| drop((kept, scheduler)));
    assert!(std::panic::catch_unwind(drop_all).is_err());
    assert_eq!(dropped.load(std::sync::atomic::Ordering::Relaxed), 10);
}

/// A kept timer's deadline and key come back whatever they are.
#[test]
fn what_is_kept_says_when_it_was_due() {
    let (scheduler, advancer) = small();
    let ticks = [0, 1, (1 << 29) - 1, 1 << 29, (1 << 32) + 5, 1 << 61, Tick::MAX - 1, Tick::MAX];
    let keys = ticks.map(|tick| scheduler.schedule(tick, 7).expect("open"));
    assert_eq!(scheduler.reschedule(keys[1], 1_000), Some(keys[1]), "put off where it stands");
    let kept: Vec<_> =
        Box::new(advancer).end(|_| true, drop).map(|(key, deadline, _)| (key, deadline)).collect();
    let deadlines = ticks.map(|tick| if tick == 1 { 1_000 } else { tick });
    assert_eq!(kept, keys.into_iter().zip(deadlines).collect::<Vec<_>>());
}

/// Goes over all nodes once, and finds nothing.
fn walk_in_vain(walk: &mut Walk, shared: &Consumer<u32>) {
    let before = walk.walks_left;
    for _ in 0..shared.slab.words() {
        walk.ids = shared.slab.taken(walk.word, shared.keep());
        walk.word += 1;
        while let Some(id) = walk.ids.next() {
            assert!(walk.take_by(shared, id, |node, _, word| node.fire(word).map(drop)).is_none());
        }
    }
    assert_eq!(walk.walks_left, before);
}

#[test]
fn a_walk_during_which_a_timer_was_moved_is_followed_by_another() {
    let (scheduler, advancer) = small();
    let key = scheduler.schedule(9, 7).expect("open");
    assert!(scheduler.cancel(key).is_some());
    let mut walk = Walk::new(&advancer.shared);
    walk_in_vain(&mut walk, &advancer.shared);
    advancer.shared.lanes.enter().parts().0.tally.moved.add(1);
    assert!(walk.start_again(advancer.shared.moved()));
    walk_in_vain(&mut walk, &advancer.shared);
    assert!(!walk.start_again(advancer.shared.moved()));
}
