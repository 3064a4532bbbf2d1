//! The nodes of cancelled timers are swept, and their number is bounded.

use std::thread;

use shardwheel::{Advancer, Config, Scheduler, Tick, shard};

use super::work::{times, together};
use crate::support::Bell;

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
fn cancelled_nodes_stay_bounded(standing: usize, count: usize, round: impl Fn(&Scheduler<usize>, Tick)) {
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

/// Nothing is pending.
#[test]
fn cancelled_nodes_stay_bounded_in_an_empty_shard() {
    cancelled_nodes_stay_bounded(0, times(600_000), |scheduler, last| {
        set_and_cancel(scheduler, last, CANCELS)
    });
}

/// Ten thousand timers are pending, and two threads cancel.
#[test]
fn cancelled_nodes_stay_bounded_with_two_threads() {
    cancelled_nodes_stay_bounded(10_000, times(600_000), |scheduler, last| {
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

/// The same where the advancer is called only when the shard has woken it for a sweep. One pending
/// timer is due before all the others, so no other timer wakes the advancer.
#[test]
fn a_sweep_request_wakes_the_advancer() {
    let (scheduler, mut advancer) = shard::<usize>(&Config::default());
    scheduler.schedule(1, 0).expect("the shard is open");
    let mut bell = Bell::hung_in(&mut advancer);
    assert_eq!(advancer.next_expiration(), Some(1));
    let (mut most, mut last, mut calls) = (0, 1 << 40, 0);
    for _ in 0..times(250) {
        set_and_cancel(&scheduler, last, CANCELS / 4);
        last -= APART * CANCELS as Tick / 4;
        if bell.rings() > 0 {
            assert_eq!(advancer.advance(0).count(), 0);
            bell = Bell::hung_in(&mut advancer);
            assert_eq!(advancer.next_expiration(), Some(1));
            calls += 1;
        }
        most = most.max(scheduler.stats().dead_nodes);
    }
    assert!(most <= DEAD + CANCELS, "{most} dead nodes, after {calls} calls");
    assert!(calls <= times(250) / 2, "{calls} calls are more than were owed");
    check_memory(&scheduler, &mut advancer);
}

/// So many timers were cancelled that the sweep takes many steps, and no producer schedules or
/// cancels any more. The advancer is called only when the shard wakes it, and has nothing else to
/// do.
#[test]
fn a_sweep_wakes_the_advancer_until_it_is_done() {
    let (scheduler, mut advancer) = shard::<usize>(&Config::default());
    let mut bell = Bell::hung_in(&mut advancer);
    assert_eq!(advancer.next_expiration(), None);
    set_and_cancel(&scheduler, 1 << 40, 100 * DEAD);
    let mut calls = 0;
    while bell.rings() > 0 {
        assert_eq!(advancer.advance(0).count(), 0);
        bell = Bell::hung_in(&mut advancer);
        assert_eq!(advancer.next_expiration(), None);
        calls += 1;
    }
    let dead = scheduler.stats().dead_nodes;
    assert!(dead <= DEAD, "{dead} dead nodes, after {calls} calls");
}

/// The shard keeps memory for the next burst at first, and frees it as the clock moves.
#[test]
fn memory_goes_back_as_the_clock_moves() {
    let (scheduler, mut advancer) = shard::<usize>(&Config::default());
    let count = times(400_000).max(400_000);
    let keys =
        (0..count).map(|i| scheduler.schedule(1 << 40, i).expect("the shard is open")).collect::<Vec<_>>();
    let peak = scheduler.stats().node_capacity;
    assert!(keys.into_iter().all(|key| scheduler.cancel(key).is_some()));
    // The sweep takes several steps, while the clock stands still.
    for _ in 0..count / 1_024 {
        assert_eq!(advancer.advance(0).count(), 0);
    }
    check_memory(&scheduler, &mut advancer);
    assert_eq!(scheduler.stats().node_capacity, peak, "what is needed soon again is kept");
    let within = |now| {
        assert_eq!(advancer.advance(now as Tick).count(), 0);
        thread::yield_now();
        scheduler.stats().node_capacity <= peak / 3
    };
    assert!((1..PATIENCE).any(within), "{:?}", scheduler.stats());
}
