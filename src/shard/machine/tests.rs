//! How the clock moves over buckets and which node a timer gets, on one thread.

use crate::shard::support::{cancel, schedule, small};
use crate::tick::Tick;

/// A timer a whole revolution of the private wheel ahead is in the bucket where the clock's bucket
/// was, and stays there.
#[test]
fn the_bucket_of_the_clock_is_past() {
    let (scheduler, mut advancer) = small();
    drop(advancer.advance(1));
    let key = scheduler.schedule(2, 0).expect("open");
    let ahead = advancer.shared.geometry.private_wheel_size() as Tick;
    assert_eq!(scheduler.reschedule(key, 1 + ahead), Some(key), "put off where it stands");
    for now in 2..=ahead {
        assert_eq!(advancer.advance(now).count(), 0);
        assert_eq!(
            (scheduler.stats().cascaded, advancer.next_expiration()),
            (1, Some(1 + ahead)),
            "at {now}"
        );
    }
    assert_eq!(advancer.advance(1 + ahead).count(), 1);
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
