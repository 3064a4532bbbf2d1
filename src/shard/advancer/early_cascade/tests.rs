//! How many nodes the early cascade moves, and when.

use super::*;
use crate::shard::support::{Shard, small};

/// A shard with wheels of 4 buckets, and `count` timers in the one overflow bucket that expires at
/// `expiration`.
fn bucket_of(count: usize, expiration: Tick) -> Shard {
    let (scheduler, advancer) = small();
    for number in 0..count {
        scheduler.schedule(expiration + number as Tick % 4, 0).expect("open");
    }
    (scheduler, advancer)
}

/// How many nodes have been moved early after an advance to each of these ticks.
fn placed(count: usize, ticks: &[Tick]) -> Vec<u64> {
    let (scheduler, mut advancer) = bucket_of(count, 16);
    let placed = ticks.iter().map(|&now| {
        assert_eq!(advancer.advance(now).count(), 0);
        advancer.check_invariants();
        scheduler.stats().cascaded
    });
    placed.collect()
}

#[test]
fn so_many_nodes_are_drawn_for_each_tick() {
    let each = NODES_PER_TICK;
    assert_eq!(placed(1_000, &[0, 1, 2, 2, 5]), [0, each, 2 * each, 2 * each, 5 * each]);
}

#[test]
fn an_advance_draws_no_more_than_so_many() {
    assert_eq!(placed(1_000, &[12, 13]), [MOST_NODES, MOST_NODES + NODES_PER_TICK]);
}

#[test]
fn where_nothing_is_left_the_next_look_comes_later() {
    let (scheduler, mut advancer) = bucket_of(0, 16);
    drop(advancer.advance(1));
    scheduler.schedule(16, 0).expect("open");
    for (now, placed) in [(REST, 0), (REST + 1, 1)] {
        drop(advancer.advance(now));
        assert_eq!(scheduler.stats().cascaded, placed, "at {now}");
    }
}

/// A node that is moved early is placed once, and fires in time.
#[test]
fn what_has_been_drawn_is_not_moved_again() {
    let (scheduler, mut advancer) = bucket_of(100, 12);
    for now in 1..12 {
        assert_eq!(advancer.advance(now).count(), 0);
    }
    assert_eq!(scheduler.stats().cascaded, 100);
    for now in 12..16 {
        assert!(advancer.advance(now).all(|fired| fired.deadline == now));
    }
    assert_eq!((scheduler.stats().cascaded, scheduler.stats().fired), (100, 100));
}
