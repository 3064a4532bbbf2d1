//! An acquired node that is given back unused is as it was before.

use crate::shard::support::{cancel, schedule, small};

#[test]
fn a_free_node_that_is_given_back_is_the_next() {
    let (scheduler, _advancer) = small();
    let mut entered = scheduler.shared.lanes.enter();
    let (_, local) = entered.parts();
    let ids = [(); 3].map(|()| {
        let acquired = scheduler.acquire(&local.participant, &mut local.nodes, 5).expect("there is memory");
        assert_eq!(acquired.linked_for(), None, "nothing has been cancelled");
        let id = acquired.id();
        local.nodes.take_back(acquired);
        id
    });
    assert_eq!(ids, [ids[0]; 3]);
}

#[test]
fn a_held_node_that_is_given_back_is_held_as_before() {
    let (scheduler, mut advancer) = small();
    let keys = schedule(&scheduler, 5, 2);
    cancel(&scheduler, &keys);
    let mut entered = scheduler.shared.lanes.enter();
    let (_, local) = entered.parts();
    // The lane holds the first node.
    for _ in 0..2 {
        let acquired = scheduler.acquire(&local.participant, &mut local.nodes, 5).expect("there is memory");
        assert_eq!((acquired.id(), acquired.linked_for()), (keys[0].node(), Some(5)));
        local.nodes.take_back(acquired);
    }
    drop(entered);
    assert_eq!(advancer.advance(9).count(), 0);
    assert_eq!(scheduler.stats().dead_nodes, 1, "the one that is held");
    advancer.check_invariants();
}
