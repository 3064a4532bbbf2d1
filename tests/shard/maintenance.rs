//! A shard frees memory and sweeps dead nodes although nothing is due: the tests call the advancer
//! only when the shard asks for it.

use std::hint::black_box;
use std::sync::Arc;

use shardwheel::{Advancer, Config, Scheduler, shard};

use crate::support::{Bell, watched};

/// Timers of the burst, and the nodes that may be left of it: those of two segments.
const BURST: u64 = 500_000;
const LEFT: usize = 2 * 65_536;

/// Nothing is pending, and the clock stands still. Promise 5.
#[test]
fn maintenance_frees_memory_when_nothing_is_pending() {
    watched(|| {
        let (scheduler, mut advancer) = shard(&Config::default());
        assert!(!advancer.needs_maintenance(), "it is new");
        let keys: Vec<_> =
            (0..BURST).map(|i| scheduler.schedule(1_000 + i, i).expect("the shard is open")).collect();
        assert!(keys.into_iter().all(|key| scheduler.cancel(key).is_some()));
        let mut calls = 0;
        loop {
            assert_eq!(advancer.advance(0).count(), 0);
            if advancer.next_expiration().is_none() && !advancer.needs_maintenance() {
                break;
            }
            advancer.maintain();
            calls += 1;
        }
        let stats = scheduler.stats();
        assert!(stats.node_capacity <= LEFT, "after {calls} calls: {stats:?}");
    });
}

/// After a burst has fired, maintenance ends. One far timer is pending, which the calls of
/// `maintain` leave alone. Promises 5 and 9.
#[test]
fn maintenance_ends() {
    watched(|| {
        let (scheduler, mut advancer) = shard(&Config::default());
        scheduler.schedule(1 << 40, 0).expect("the shard is open");
        (0..BURST).for_each(|i| assert!(scheduler.schedule(1 + i % 1_000, i).is_ok()));
        assert_eq!(advancer.advance(1_000).count() as u64, BURST);
        while advancer.needs_maintenance() {
            advancer.maintain();
        }
        assert!(scheduler.stats().node_capacity <= LEFT);
        assert_eq!(scheduler.len(), 1);
    });
}

/// Calls the advancer only when the shard has woken it, and with `maintains` when it needs maintenance,
/// while the clock stands still. Returns how often it was woken.
fn answer_rings<T>(advancer: &mut Advancer<T>, rings: &Arc<Bell>, maintains: bool) -> usize {
    let (waker, mut answered) = (Arc::clone(rings).into(), rings.rings());
    let begin = answered;
    loop {
        advancer.register_waker(&waker);
        black_box(advancer.next_expiration());
        let rung = rings.rings();
        if std::mem::replace(&mut answered, rung) != rung {
            assert_eq!(advancer.advance(10).count(), 0);
        } else if maintains && advancer.needs_maintenance() {
            advancer.maintain();
        } else {
            return answered - begin;
        }
    }
}

/// A few timers of a burst, in all its segments, are cancelled when the others have fired and the
/// advancer sleeps. Their dead nodes are too few for a sweep. Promise 5.
#[test]
fn the_advancer_is_woken_to_give_back_what_a_few_dead_nodes_keep() {
    watched(|| {
        let (scheduler, mut advancer) = shard(&Config::default());
        let mut keys = Vec::new();
        for i in 0..BURST {
            let key = scheduler.schedule(if i % 500 == 0 { 1 << 40 } else { 10 }, i);
            keys.extend(key.ok().filter(|_| i % 500 == 0));
        }
        assert_eq!(advancer.advance(10).count(), BURST as usize - keys.len());
        let rings = Arc::default();
        answer_rings(&mut advancer, &rings, true);
        let rung = rings.rings();
        assert!(keys.into_iter().all(|key| scheduler.cancel(key).is_some()));
        assert_eq!(rings.rings(), rung + 1, "the advancer sleeps");
        assert_eq!(advancer.advance(10).count(), 0);
        answer_rings(&mut advancer, &rings, true);
        let stats = scheduler.stats();
        // Where there is no `membarrier`, the thread keeps the node of its last cancel.
        let kept = if cfg!(any(target_os = "linux", target_os = "android")) { 0 } else { 1 };
        assert!(stats.node_capacity <= LEFT && stats.dead_nodes <= kept, "{stats:?}");
    });
}

/// Dead nodes that a shard may hold however few timers are pending.
const DEAD: usize = 4_096;

/// Calls of the advancer in which a sweep must be done while the clock stands still.
const CALLS: usize = 200;

/// A shard whose far timers were cancelled while many others were pending; those have fired.
fn far_ones_cancelled_others_fired() -> (Scheduler<u64>, Advancer<u64>) {
    let (scheduler, mut advancer) = shard(&Config::default());
    let far = |i: u64| scheduler.schedule(1_000_000 + 7_919 * i, i).expect("the shard is open");
    let keys: Vec<_> = (0..60_000).map(far).collect();
    (0..100_000).for_each(|i| assert!(scheduler.schedule(10, i).is_ok()));
    assert!(keys.into_iter().all(|key| scheduler.cancel(key).is_some()));
    assert_eq!(advancer.advance(10).count(), 100_000);
    (scheduler, advancer)
}

/// Far timers are cancelled while many timers are pending, and those fire. The advancer is called again
/// and again, or only after the shard has woken it. Promise 5.
#[test]
fn dead_nodes_are_swept_when_other_timers_have_fired() {
    for is_woken in [false, true] {
        let (scheduler, mut advancer) = far_ones_cancelled_others_fired();
        if is_woken {
            answer_rings(&mut advancer, &Arc::default(), false);
        } else {
            (0..CALLS).for_each(|_| assert_eq!(advancer.advance(10).count(), 0));
        }
        let stats = scheduler.stats();
        assert!(stats.dead_nodes <= DEAD, "woken: {is_woken}: {stats:?}");
    }
}

/// While many timers were pending, many dead nodes were tolerated. Those timers have fired, and the
/// dead nodes are gone. Then a thousand more timers are cancelled than are tolerated now, while the
/// advancer sleeps: the shard wakes it. Promise 5.
#[test]
fn the_advancer_is_woken_to_sweep_after_the_bound_has_fallen() {
    let (scheduler, mut advancer) = shard(&Config::default());
    let rings = Arc::<Bell>::default();
    let far = |i: u64| scheduler.schedule(1_000_000 + 7_919 * i, i).expect("the shard is open");
    (0..200_000).for_each(|i| assert!(scheduler.schedule(10, i).is_ok()));
    let due_too: Vec<_> =
        (0..20_000).map(|i| scheduler.schedule(10, i).expect("the shard is open")).collect();
    assert!(due_too.into_iter().all(|key| scheduler.cancel(key).is_some()));
    assert_eq!(advancer.advance(10).count(), 200_000);
    answer_rings(&mut advancer, &rings, false);
    assert!(scheduler.stats().dead_nodes <= DEAD);

    let keys: Vec<_> = (0..DEAD as u64 + 1_000).map(far).collect();
    answer_rings(&mut advancer, &rings, false);
    let before = rings.rings();
    assert!(keys.into_iter().all(|key| scheduler.cancel(key).is_some()));
    assert!(rings.rings() > before);
    assert_eq!(advancer.advance(10).count(), 0);
    answer_rings(&mut advancer, &rings, false);
    let stats = scheduler.stats();
    assert!(stats.dead_nodes <= DEAD, "{stats:?}");
}
