//! The nodes of cancelled timers are swept, and their number is bounded.

use std::collections::VecDeque;
use std::thread;

use shardwheel::{Advancer, Config, Scheduler, Tick, shard};

use super::work::{times, together};

/// Dead nodes, those of cancelled timers, that a shard may hold however few timers are pending.
const DEAD: usize = 4_096;

/// Cancels between two calls of the advancer; so many more dead nodes are allowed.
const CANCELS: usize = 1_000;

/// Nodes in use that are neither pending nor dead: the threads' free nodes, a word of 64 or two
/// each, and freed nodes that are not yet reusable.
const IN_HAND: usize = 4_096;

/// How often the advancer is called until freed nodes are reusable. They are when no thread can
/// read them any more; an interrupted thread of another test can delay that.
const PATIENCE: usize = 1_000_000;

/// The distance between the deadlines of cancelled timers, so that they fill many buckets.
const APART: Tick = 7_919;

/// Checks that the dead nodes are within their bound, and that the nodes in use fall to what they
/// may be.
pub(crate) fn check_memory<T>(scheduler: &Scheduler<T>, advancer: &mut Advancer<T>) {
    let stats = scheduler.stats();
    let tolerated = stats.pending.max(DEAD);
    assert!(stats.dead_nodes <= tolerated + CANCELS, "{stats:?}");
    let within = |_| {
        drop(advancer.advance(0));
        thread::yield_now();
        scheduler.stats().nodes <= stats.pending + tolerated + IN_HAND
    };
    assert!((0..PATIENCE).any(within), "{:?}", scheduler.stats());
}

/// Sets and cancels `count` timers in rounds, each with earlier deadlines than the round before, so
/// that no timer can use a node of the last round. The clock stands still, and the advancer is
/// called after each round.
fn cancelled_nodes_stay_bounded_beside(
    standing: usize,
    count: usize,
    round: impl Fn(&Scheduler<usize>, Tick),
) {
    let (scheduler, mut advancer) = shard::<usize>(&Config::default());
    (0..standing).for_each(|i| assert!(scheduler.schedule(Tick::MAX - i as Tick, i).is_ok()));
    let mut last = 1 << 40;
    for _ in 0..count / CANCELS {
        round(&scheduler, last);
        assert_eq!(advancer.advance(0).count(), 0);
        check_memory(&scheduler, &mut advancer);
        last -= APART * CANCELS as Tick;
    }
    assert_eq!(scheduler.len(), standing);
}

/// Timeouts of five minutes, a hundred per tick, each cancelled ten ticks later: memory stays near
/// what is pending, long before the first deadline.
#[test]
fn cancelled_timeouts_hold_no_memory() {
    let (per_tick, answer_after) = (100, 10);
    let (scheduler, mut advancer) = shard(&Config::default());
    let mut open = VecDeque::new();
    for now in 0..1_500 {
        assert_eq!(advancer.advance(now).count(), 0);
        let set = |_| scheduler.schedule(now + 300_000, ()).expect("the shard is open");
        open.extend((0..per_tick).map(set));
        let answered = open.len().saturating_sub(per_tick * answer_after);
        open.drain(..answered).for_each(|key| assert!(scheduler.cancel(key).is_some()));
        check_memory(&scheduler, &mut advancer);
    }
}

/// All due timers have been cancelled, again and again: a flush frees as many nodes as a drain, and
/// they are reused.
#[test]
fn nodes_that_a_flush_finds_dead_are_used_again() {
    const TIMERS: usize = 200_000;
    let (scheduler, mut advancer) = shard::<usize>(&Config::default());
    let mut capacity = Vec::new();
    for round in 0..times(12) as Tick {
        let key = |i: usize| scheduler.schedule(round * 10 + 1 + i as Tick % 10, i).unwrap();
        let keys: Vec<_> = (0..TIMERS).map(key).collect();
        assert!(keys.into_iter().all(|key| scheduler.cancel(key).is_some()));
        assert_eq!(advancer.advance((round + 1) * 10).count(), 0);
        capacity.push(scheduler.stats().node_capacity);
    }
    assert!(capacity.iter().all(|&nodes| nodes <= 4 * TIMERS), "{capacity:?}");
}

/// Nothing is pending; or ten thousand timers are, and two threads cancel.
#[test]
fn cancelled_nodes_stay_bounded() {
    cancelled_nodes_stay_bounded_beside(0, times(600_000), |scheduler, last| {
        set_and_cancel(scheduler, last, CANCELS)
    });
    cancelled_nodes_stay_bounded_beside(10_000, times(600_000), |scheduler, last| {
        let half = || set_and_cancel(scheduler, last, CANCELS / 2);
        together(half, half);
    });
}

fn set_and_cancel(scheduler: &Scheduler<usize>, first: Tick, count: usize) {
    let deadlines = (0..count).map(|i| (i, first - APART * i as Tick));
    let keys = deadlines.map(|(i, deadline)| scheduler.schedule(deadline, i).expect("the shard is open"));
    for (i, key) in keys.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(scheduler.cancel(key), Some(i));
    }
}
