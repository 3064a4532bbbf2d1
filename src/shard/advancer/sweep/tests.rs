//! How many nodes a step of a sweep visits, and when a pass begins and ends.

use super::*;
use crate::shard::advancer::sweep::SWEPT_NODES;
use crate::shard::support::{Shard, cancel, of_wheels, schedule, small};
use crate::{Config, shard};

/// The dead nodes that are tolerated with fewer timers pending, and the number up to which no sweep
/// is due.
const FLOOR: usize = 4_096;
const DUE: usize = FLOOR / 4 * 3;

fn default() -> Shard {
    shard(&Config::default())
}

/// Advances until no pass is under way; returns how many advances that took.
fn sweep_to_the_end(advancer: &mut Advancer<u32>) -> usize {
    let mut steps = 0;
    while advancer.sweep.is_under_way() || advancer.shared.is_sweep_requested() {
        drop(advancer.advance(0));
        advancer.check_invariants();
        steps += 1;
        assert!(steps < 1_000);
    }
    steps
}

#[test]
fn a_sweep_is_due_above_three_quarters_of_what_is_tolerated() {
    let (scheduler, advancer) = default();
    let keys = schedule(&scheduler, 1 << 30, DUE + 1);
    cancel(&scheduler, &keys[..DUE]);
    assert_eq!((advancer.shared.dead(), advancer.shared.is_sweep_due()), (DUE as u64, false));
    cancel(&scheduler, &keys[DUE..]);
    assert!(advancer.shared.is_sweep_due());
    // More pending timers than the floor raise what is tolerated.
    let pending = schedule(&scheduler, 1, 2 * FLOOR);
    assert!(!advancer.shared.is_sweep_due());
    let dead = advancer.shared.dead() as usize;
    let more = (3 * 2 * FLOOR - 4 * dead) / 7;
    cancel(&scheduler, &pending[..more]);
    assert!(!advancer.shared.is_sweep_due());
    cancel(&scheduler, &pending[more..more + 1]);
    assert!(advancer.shared.is_sweep_due());
}

/// Until then each report of a canceller would ask, and wake the advancer.
#[test]
fn a_sweep_that_was_not_due_is_asked_for_later() {
    let (scheduler, mut advancer) = default();
    let keys = schedule(&scheduler, 1 << 30, DUE + 64);
    cancel(&scheduler, &keys);
    assert!(advancer.is_sweeping());
    let pending = schedule(&scheduler, 1 << 30, 4 * FLOOR);
    drop(advancer.advance(0));
    assert!(!advancer.is_sweeping());
    cancel(&scheduler, &pending[..64]);
    assert!(!advancer.is_sweeping());
}

#[test]
fn a_step_looks_at_so_many_nodes_and_at_some_more_for_each_cancel() {
    let (scheduler, mut advancer) = default();
    let keys = schedule(&scheduler, 1 << 30, 20_000);
    cancel(&scheduler, &keys[1..]);
    let steps = [0, 10, 0].map(|cancels| {
        let others = schedule(&scheduler, 5, cancels);
        cancel(&scheduler, &others);
        let before = scheduler.stats().swept;
        drop(advancer.advance(0));
        advancer.check_invariants();
        scheduler.stats().swept - before
    });
    assert_eq!(steps, [SWEPT_NODES, SWEPT_NODES + 10 * NODES_PER_CANCEL, SWEPT_NODES]);
}

/// Visiting a bucket costs as much of the budget as visiting a node.
#[test]
fn a_step_looks_at_so_many_buckets() {
    let (scheduler, mut advancer) = of_wheels(8_192);
    let keys: Vec<_> =
        (1..=2 * SWEPT_NODES).map(|deadline| scheduler.schedule(deadline, 0).expect("open")).collect();
    cancel(&scheduler, &keys);
    for step in 1..4 {
        drop(advancer.advance(0));
        assert_eq!(scheduler.stats().swept, step * SWEPT_NODES / 2);
    }
}

/// A private bucket whose index is the first of its wheel.
#[test]
fn a_pass_does_not_go_round() {
    let (scheduler, mut advancer) = of_wheels(256);
    let [first, second] = [1_024, 1_030].map(|deadline| schedule(&scheduler, deadline, 10_000));
    (769..=1_000).for_each(|now| drop(advancer.advance(now)));
    let private = advancer.private.level(0).expect("they have been drawn");
    assert!([0, 6].into_iter().all(|index| private.lists(index).1));
    cancel(&scheduler, &first[..9_000]);
    cancel(&scheduler, &second[..9_000]);
    while advancer.sweep.is_under_way() || advancer.shared.is_sweep_requested() {
        drop(advancer.advance(1_000));
        advancer.check_invariants();
    }
    assert!(scheduler.stats().swept >= 18_000, "{:?}", scheduler.stats());
    assert_eq!([1_024, 1_030].map(|now| advancer.advance(now).count()), [1_000, 1_000]);
}

/// The early cascade leaves a bucket alone while the sweep has detached it.
#[test]
fn what_is_swept_is_not_drawn() {
    let (scheduler, mut advancer) = default();
    let keys = schedule(&scheduler, 3_000, 20_000);
    // All go to the private lists, except a few that are placed.
    drop(advancer.advance(1));
    cancel(&scheduler, &keys[..16_000]);
    drop(advancer.advance(1));
    let slot = advancer.shared.geometry.slot(1, 3_000);
    assert!(advancer.sweep.has(slot) && advancer.private.level(1).is_some());
    let before = scheduler.stats().cascaded;
    for now in 2..4 {
        drop(advancer.advance(now));
        advancer.check_invariants();
        assert!(advancer.sweep.has(slot));
        assert_eq!(scheduler.stats().cascaded, before, "at {now}");
    }
    sweep_to_the_end(&mut advancer);
    assert_eq!(advancer.advance(3_000).count(), 4_000);
}

/// Both halves of buckets are swept, on each level, and the living nodes stay where they are.
#[test]
fn a_pass_goes_through_all_that_stand() {
    let (scheduler, mut advancer) = default();
    let deadlines = [3, 700, 5_000, 1 << 30, 1 << 50, Tick::MAX];
    let mut keys = Vec::new();
    for _ in 0..2 {
        for deadline in deadlines {
            keys.extend(schedule(&scheduler, deadline, 1_000));
        }
        // By the second advance, the early cascade has moved some of them to private lists.
        drop(advancer.advance(1));
        drop(advancer.advance(2));
    }
    let (living, dead): (Vec<_>, Vec<_>) =
        keys.into_iter().enumerate().partition(|(number, _)| number % 10 == 0);
    dead.iter().for_each(|&(_, key)| assert!(scheduler.cancel(key).is_some()));
    let before = scheduler.stats().dead_nodes;
    assert!(before > DUE);
    let steps = sweep_to_the_end(&mut advancer);
    assert!(steps > 1 && scheduler.stats().dead_nodes <= DUE, "{:?}", scheduler.stats());
    let stats = scheduler.stats();
    assert_eq!((stats.swept as usize + stats.dead_nodes, stats.pending), (before, living.len()));
    let mut now = 0;
    let mut fired = 0;
    while let Some(next) = advancer.next_expiration() {
        assert!(next >= now);
        now = next;
        fired += advancer.advance(now).inspect(|fired| assert_eq!(fired.deadline, now)).count();
    }
    assert_eq!(fired, living.len());
}

/// What a sweep has detached from a bucket, in either half, fires with the bucket.
#[test]
fn a_bucket_is_flushed_while_it_is_swept() {
    // In a shared wheel of 256 buckets, and in a private one of 512, they have different indices.
    for (deadline, is_shared) in [(300, true), (900, false)] {
        let (scheduler, mut advancer) = of_wheels(256);
        if is_shared {
            drop(advancer.advance(200));
        }
        let keys = schedule(&scheduler, deadline, 20_000);
        // The early cascade places those that it can.
        (200..=600).filter(|_| !is_shared).for_each(|now| drop(advancer.advance(now)));
        let now = advancer.now;
        let (dead, living) = keys.split_at(15_000);
        cancel(&scheduler, dead);
        drop(advancer.advance(now));
        assert!(advancer.sweep.detached.is_some());
        advancer.check_invariants();
        assert_eq!(advancer.advance(deadline).count(), living.len());
        advancer.check_invariants();
        assert_eq!(scheduler.stats().pending, 0);
    }
}

/// A pass is followed by another if a sweep is still due, and is the last otherwise.
#[test]
fn passes_follow_one_another() {
    let (scheduler, mut advancer) = default();
    let keys = schedule(&scheduler, 10, 20_000);
    schedule(&scheduler, 20, 5_000);
    cancel(&scheduler, &keys[4_000..]);
    for _ in 0..5 {
        drop(advancer.advance(0));
        advancer.check_invariants();
    }
    // The pass has been there.
    assert!(advancer.sweep.is_under_way() && scheduler.stats().swept >= 16_000);
    cancel(&scheduler, &keys[..4_000]);
    sweep_to_the_end(&mut advancer);
    assert_eq!(scheduler.stats().dead_nodes, 0, "{:?}", scheduler.stats());
}

/// A producer is between the two counts of a stop: the sum of dead nodes falls from one step to the
/// next.
#[test]
fn a_sum_of_dead_nodes_that_falls_ends_nothing() {
    let (scheduler, mut advancer) = small();
    schedule(&scheduler, 1_000_000, 20_000);
    let mut entered = scheduler.shared.lanes.enter();
    let (lane, _) = entered.parts();
    lane.tally.cancelled.add(1);
    advancer.begin_pass();
    assert_eq!(advancer.advance(1).count(), 0);
    lane.tally.stopped.add(1);
    drop(entered);
    assert_eq!(advancer.advance(2).count(), 0);
}

/// Dead nodes that a flush has freed, while nothing fired, bring the next check of the dead near.
#[test]
fn the_bound_holds_after_dead_nodes_were_flushed_and_nothing_fired() {
    let (scheduler, mut advancer) = shard::<u32>(&Config::default());
    let near: Vec<_> = (100..150).flat_map(|tick| schedule(&scheduler, tick, 800)).collect();
    let far = schedule(&scheduler, 1_000_000, 53_400);
    cancel(&scheduler, &near);
    (1..=200).for_each(|tick| assert_eq!(advancer.advance(tick).count(), 0));
    cancel(&scheduler, &far[..39_000]);
    (201..=500).for_each(|tick| assert_eq!(advancer.advance(tick).count(), 0));
    let stats = scheduler.stats();
    assert!(stats.dead_nodes <= stats.pending.max(4096), "{stats:?}");
}
