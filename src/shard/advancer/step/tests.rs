//! How the clock moves over buckets, on one thread.

use crate::shard::support::{Shard, cancel, schedule, small};
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

/// The thread's node of a cancelled timer, due at tick 2, once the clock has passed that tick.
fn with_a_held_node() -> Shard {
    let (scheduler, mut advancer) = small();
    cancel(&scheduler, &schedule(&scheduler, 2, 1));
    (1..=3).for_each(|now| assert_eq!(advancer.advance(now).count(), 0));
    assert_eq!((scheduler.stats().dead_nodes, advancer.next_expiration()), (1, None));
    (scheduler, advancer)
}

/// A thread may hold such a node for ever: no advance visits it.
#[test]
fn a_held_node_whose_tick_has_come_makes_no_tick_slow() {
    let (_scheduler, mut advancer) = with_a_held_node();
    for now in 4..1_000 {
        assert!(!advancer.has_newcomers(), "something to visit before tick {now}");
        assert_eq!(advancer.advance(now).count(), 0);
    }
    advancer.check_invariants();
}

#[test]
fn a_held_node_whose_tick_has_come_holds_the_next_timer() {
    let (scheduler, mut advancer) = with_a_held_node();
    schedule(&scheduler, 9, 1);
    assert_eq!((scheduler.stats().reused, advancer.next_expiration()), (1, Some(9)));
    // Cancelled and armed once more before the advancer has seen it.
    let key = schedule(&scheduler, 7, 1);
    cancel(&scheduler, &key);
    (4..=9).for_each(|now| assert_eq!(advancer.advance(now).count(), usize::from(now == 9), "at {now}"));
    advancer.check_invariants();
}

/// The timer that the node holds next is cancelled and replaced before the advancer has visited the
/// node, which is then linked for a later tick.
#[test]
fn a_held_node_whose_tick_has_come_is_used_twice() {
    let (scheduler, mut advancer) = with_a_held_node();
    cancel(&scheduler, &schedule(&scheduler, 7, 1));
    assert_eq!(advancer.advance(4).count(), 0);
    advancer.check_invariants();
    schedule(&scheduler, 9, 1);
    assert_eq!(scheduler.stats().reused, 2);
    (5..=9).for_each(|now| assert_eq!(advancer.advance(now).count(), usize::from(now == 9), "at {now}"));
    advancer.check_invariants();
}

/// The thread has no use for the node, which is freed at the next advance.
#[test]
fn a_held_node_whose_tick_has_come_is_given_up() {
    let (scheduler, mut advancer) = with_a_held_node();
    schedule(&scheduler, 1, 1);
    assert_eq!((advancer.advance(4).count(), scheduler.stats().dead_nodes), (1, 0));
    schedule(&scheduler, 9, 1);
    assert_eq!(scheduler.stats().reused, 0);
    (5..=9).for_each(|now| assert_eq!(advancer.advance(now).count(), usize::from(now == 9), "at {now}"));
    advancer.check_invariants();
}

/// An idle shard takes the node from the lane, and frees it without a further advance.
#[test]
fn a_held_node_whose_tick_has_come_goes_with_a_sweep() {
    let (scheduler, mut advancer) = with_a_held_node();
    advancer.take_from_lanes();
    advancer.begin_pass();
    // A sweep has several steps where steps are small.
    (0..100).for_each(|_| advancer.maintain());
    let is_kept = !crate::hardware::has_membarrier();
    assert_eq!(scheduler.stats().dead_nodes, usize::from(is_kept), "it is taken from the lane by a barrier");
    advancer.check_invariants();
}
