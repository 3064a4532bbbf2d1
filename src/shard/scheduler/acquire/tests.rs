//! An acquired node that is given back unused is as it was before.

use crate::shard::memory::slab::Slab;
use crate::shard::support::{cancel, schedule, small};

#[test]
fn a_free_node_that_is_given_back_is_the_next() {
    let (scheduler, _advancer) = small();
    let mut entered = scheduler.shared.lanes.enter();
    let (_, local) = entered.parts();
    let ids = [(); 3].map(|()| {
        let acquired = scheduler.acquire(&local.participant, &mut local.nodes, 5).expect("there is memory");
        assert!(!acquired.is_linked(), "nothing has been cancelled");
        let id = acquired.id();
        Slab::put_back(&mut local.nodes.free, acquired);
        id
    });
    assert_eq!(ids, [ids[0]; 3]);
}

/// The lane knows the node that it cancelled last until its next timer, whether that timer can use
/// the node or not. The advancer may free the node meanwhile.
#[test]
fn the_node_that_was_cancelled_last_is_reused_while_it_is_dead() {
    for (deadline, clock, reuses) in [(5, 0, true), (9, 0, true), (4, 0, false), (9, 5, false)] {
        let (scheduler, mut advancer) = small();
        let keys = schedule(&scheduler, 5, 2);
        cancel(&scheduler, &keys);
        assert_eq!(advancer.advance(clock).count(), 0);
        let next = scheduler.schedule(deadline, 0).expect("it is open");
        assert_eq!(next.node() == keys[1].node(), reuses, "{deadline} at {clock}");
        assert_eq!(scheduler.stats().reused, u64::from(reuses));
        advancer.check_invariants();
        assert_eq!(advancer.advance(9).count(), 1);
        assert_eq!(scheduler.stats().dead_nodes, 0);
        advancer.check_invariants();
    }
}
