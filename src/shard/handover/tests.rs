//! When the walk over the nodes starts again, and when it ends.

use super::*;
use crate::shard::Scheduler;
use crate::shard::node::Taken;
use crate::shard::support::small;

/// Schedules a timer, and stops in the middle of moving it.
fn stall(scheduler: &Scheduler<u32>) -> (&Node<u32>, Taken<u32>) {
    let key = scheduler.schedule(9, 7).expect("open");
    // SAFETY: it is in use.
    let (node, era) = unsafe { scheduler.shared.slab.owned(key.node()) };
    (node, node.take(era, key.generation).expect("pending"))
}

/// Goes over all nodes once, and finds nothing.
fn walk_in_vain(handover: &mut Handover<u32>) {
    for _ in 0..handover.shared.slab.words() {
        assert!(handover.next_word());
        while let Some(id) = handover.ids.next() {
            assert_eq!(handover.take(id), None);
        }
    }
}

#[test]
fn a_walk_that_met_a_producer_at_work_is_followed_by_another() {
    let (scheduler, advancer) = small();
    let (node, taken) = stall(&scheduler);
    let mut handover = Handover::new(Arc::clone(&advancer.shared));
    walk_in_vain(&mut handover);
    node.restore(taken);
    assert_eq!(handover.next(), Some((9, 7)));
    assert_eq!((handover.next(), handover.next()), (None, None));
}

#[test]
fn a_walk_during_which_a_timer_was_moved_is_followed_by_another() {
    let (scheduler, advancer) = small();
    let key = scheduler.schedule(9, 7).expect("open");
    assert!(scheduler.cancel(key).is_some());
    let mut handover = Handover::new(Arc::clone(&advancer.shared));
    walk_in_vain(&mut handover);
    advancer.shared.lanes.enter().parts().0.tally.moved.add(1);
    walk_in_vain(&mut handover);
    assert!(!handover.next_word());
}

/// It ends without the timer of a producer that is stalled, after many walks where there are few nodes.
#[test]
fn there_is_a_last_walk() {
    let (scheduler, advancer) = small();
    let (node, taken) = stall(&scheduler);
    let mut handover = Handover::new(Arc::clone(&advancer.shared));
    assert!(handover.walks_left >= 100);
    assert_eq!((handover.next(), handover.walks_left), (None, 0));
    node.restore(taken);
}
