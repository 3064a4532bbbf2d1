//! The shard's waker: one that blocks holds no memory; if it panics, no timer is lost. One that stalls
//! while others wake the advancer is in loom's `hazard_13_*` and in `tests/stall`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::task::Waker;
use std::thread;

use shardwheel::{Config, Tick, shard};

use crate::support::{Count, Gate, To, hear, hooked, until, watched};

/// A waker whose first wake stalls until the gate opens, and the count of its wakes.
fn stalls_at_first() -> (Waker, Count, Gate) {
    let (rings, gate) = (Count::default(), Gate::default());
    let (count, shut) = (rings.clone(), gate.clone());
    let waker = hooked(move |to| {
        if to == To::Wake && count.one_more() == 1 {
            shut.pass();
        }
    });
    (waker, rings, gate)
}

/// A waker that counts its wakes.
fn counts() -> (Waker, Count) {
    let (waker, rings, gate) = stalls_at_first();
    gate.open();
    (waker, rings)
}

/// A waker that panics at that operation.
fn panics_when(when: To) -> Waker {
    hooked(move |to| assert!(to != when || thread::panicking(), "a waker panics"))
}

/// The clone of a new waker panics in `register_waker`: the former waker works on, and the next one.
/// Promise 7.
#[test]
fn a_waker_whose_clone_panics_leaves_the_shard_able_to_wake() {
    let (scheduler, mut advancer) = shard(&Config::default());
    let [(former, first), (next, second)] = [counts(), counts()];
    advancer.register_waker(&former);
    let panics = panics_when(To::Clone);
    assert!(catch_unwind(AssertUnwindSafe(|| advancer.register_waker(&panics))).is_err());
    assert_eq!(advancer.next_expiration(), None);
    scheduler.schedule(10, 0).expect("the shard is open");
    assert_eq!((first.get(), second.get()), (1, 0));
    advancer.register_waker(&next);
    assert_eq!(advancer.next_expiration(), Some(10));
    scheduler.schedule(5, 0).expect("the shard is open");
    assert_eq!((first.get(), second.get()), (1, 1));
}

/// The drop of the former waker panics in `register_waker`; the next waker works. Promise 7.
#[test]
fn a_waker_whose_drop_panics_leaves_the_shard_able_to_wake() {
    let (scheduler, mut advancer) = shard(&Config::default());
    let panics = std::mem::ManuallyDrop::new(panics_when(To::Drop));
    advancer.register_waker(&panics);
    drop(catch_unwind(AssertUnwindSafe(|| advancer.register_waker(&counts().0))));
    let (waker, rings) = counts();
    advancer.register_waker(&waker);
    assert_eq!(advancer.next_expiration(), None);
    scheduler.schedule(10, 0).expect("the shard is open");
    assert_eq!(rings.get(), 1, "the shard does not wake the advancer");
}

/// A panic in a wake reaches no producer's call, and the next producer wakes again. Promise 7.
#[test]
fn a_panic_in_a_wake_leaves_the_wake_to_the_next_producer() {
    let (scheduler, mut advancer) = shard(&Config::default());
    let rings = Count::default();
    let count = rings.clone();
    let waker = hooked(move |to| assert!(to != To::Wake || count.one_more() > 1, "the first wake panics"));
    advancer.register_waker(&waker);
    assert_eq!(advancer.next_expiration(), None);
    scheduler.schedule(10, 0).expect("the shard is open");
    scheduler.schedule(5, 0).expect("the shard is open");
    assert_eq!(rings.get(), 2);
}

/// The shard's waker panics in `reschedule`: the timer has moved, and its old node is freed.
/// Promises 2 and 5.
#[test]
fn a_move_succeeds_though_the_waker_panics() {
    const MOVES: usize = 300;
    let (scheduler, mut advancer) = shard(&Config::default());
    let panics = panics_when(To::Wake);
    for i in 0..MOVES {
        let key = scheduler.schedule(3_000_000 + i as Tick, i).expect("the shard is open");
        advancer.register_waker(&panics);
        assert!(advancer.next_expiration().is_some());
        let moved =
            catch_unwind(AssertUnwindSafe(|| scheduler.reschedule(key, 2_000_000 - 5_000 * i as Tick)));
        assert!(moved.is_err() || moved.is_ok_and(|key| key.is_some()));
    }
    let mut fired: Vec<_> = advancer.advance(2_000_000).map(|fired| fired.payload).collect();
    fired.sort_unstable();
    assert_eq!(fired, Vec::from_iter(0..MOVES));
    // Dead nodes are linked until their ticks.
    (4_000_000..4_000_100).for_each(|tick| assert_eq!(advancer.advance(tick).count(), 0));
    let stats = scheduler.stats();
    assert!(stats.pending == 0 && stats.nodes < MOVES, "{stats:?}");
}

/// A waker that blocks in `reschedule` keeps no memory from being reused. Promise 5.
#[test]
fn a_waker_that_blocks_in_a_move_holds_no_memory() {
    const ROUNDS: Tick = 40;
    const TIMERS: u32 = 50_000;
    watched(|| {
        let (scheduler, mut advancer) = shard(&Config::default());
        let key = scheduler.schedule(1 << 40, 0).expect("the shard is open");
        let (waker, rings, gate) = stalls_at_first();
        advancer.register_waker(&waker);
        assert!(advancer.next_expiration().is_some());
        let other = scheduler.clone();
        let (sender, receiver) = mpsc::channel();
        let move_it = move || sender.send(other.reschedule(key, 1 << 30).is_some()).expect("the test waits");
        let stalled = thread::spawn(move_it);
        until("the producer is in the waker", || rings.get() == 1);
        for round in 1..=ROUNDS {
            (0..TIMERS).for_each(|i| assert!(scheduler.schedule(round, i).is_ok()));
            assert_eq!(advancer.advance(round).count(), TIMERS as usize);
            (0..10).for_each(|_| assert_eq!(advancer.advance(round).count(), 0));
        }
        let capacity = scheduler.stats().node_capacity;
        assert!(capacity <= 10 * TIMERS as usize, "{capacity} nodes, {TIMERS} timers at a time");
        gate.open();
        assert!(hear(&receiver));
        stalled.join().expect("the thread does not panic");
    });
}

/// Each shard's waker schedules on the next shard, and that of the last one on the first.
#[test]
fn wakers_may_schedule_in_a_circle() {
    const SHARDS: usize = 20;
    watched(|| {
        let mut shards: Vec<_> = (0..SHARDS).map(|_| shard::<u32>(&Config::default())).collect();
        for at in 0..SHARDS {
            let next = shards[(at + 1) % SHARDS].0.clone();
            let waker = hooked(move |to| {
                if to == To::Wake {
                    next.schedule(1, 7).expect("the shard is open");
                }
            });
            shards[at].1.register_waker(&waker);
        }
        assert!(shards.iter().all(|(_, advancer)| advancer.next_expiration().is_none()));
        shards[0].0.schedule(5, 8).expect("the shard is open");
        let fired: Vec<_> = shards.iter_mut().map(|(_, advancer)| advancer.advance(10).count()).collect();
        assert_eq!((fired[0], &fired[1..]), (2, &[1; SHARDS - 1][..]));
    });
}
