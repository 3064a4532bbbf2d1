//! A producer puts its next timer into the node that it cancelled last, where the node is linked: the
//! parts of hazards 6, 7, 8 and 10 with such a node.

#![cfg(any(shardwheel_loom, shardwheel_model))]
#![allow(missing_docs)]

use shardwheel::{Key, Scheduler, Tick};
use shardwheel_loom_tests::{CountingWake, Ledger, Payload, holding_shard, model, model_within, thread};

/// Cancels the timer, and schedules timer 1 for `again`.
fn replace(scheduler: &Scheduler<Payload>, ledger: &Ledger, key: Key, again: Tick) {
    ledger.cancelled(scheduler.cancel(key));
    scheduler.schedule(again, ledger.payload(1)).unwrap();
}

/// A thread replaces a timer, another thread cancels with the old key, and the clock advances.
fn reuse(deadline: Tick, again: Tick, clock: &'static [Tick]) {
    model(move || {
        let ledger = Ledger::new(2);
        let (scheduler, mut advancer) = holding_shard();
        let key = scheduler.schedule(deadline, ledger.payload(0)).unwrap();
        let both = (scheduler.clone(), ledger.clone());
        let reuser = thread::spawn(move || replace(&both.0, &both.1, key, again));
        let both = (scheduler.clone(), ledger.clone());
        // The old key must not affect the new timer.
        let stale = thread::spawn(move || both.1.cancelled(both.0.cancel(key)));
        for &now in clock {
            ledger.advance(&mut advancer, now);
        }
        reuser.join().unwrap();
        stale.join().unwrap();
        let last = *clock.last().unwrap();
        ledger.advance(&mut advancer, last);
        assert_eq!(ledger.has_fired(1), again <= last, "{again} at {last}");
        ledger.advance(&mut advancer, 20);
        drop((scheduler, advancer));
        ledger.balance();
    });
}

#[test]
fn hazard_7_a_dead_node_against_a_stale_key_and_a_flush() {
    reuse(1, 2, &[1]);
}

#[test]
fn hazard_7_a_dead_node_for_the_same_tick() {
    reuse(1, 1, &[1]);
}

#[test]
fn hazard_7_a_dead_node_in_a_bucket_that_is_cascaded() {
    reuse(6, 7, &[4, 7]);
}

/// The clock reaches the tick at which the bucket of the dead node is cascaded. Meanwhile a timer
/// for that very tick is put into the node: the advancer finds the node busy at first, and then
/// places the timer in a bucket that it is about to pass.
#[test]
fn hazard_7_a_dead_node_for_the_tick_of_a_cascade() {
    model(|| {
        let ledger = Ledger::new(2);
        let (scheduler, mut advancer) = holding_shard();
        let key = scheduler.schedule(8, ledger.payload(0)).unwrap();
        ledger.cancelled(scheduler.cancel(key));
        let other = ledger.clone();
        let advancing = thread::spawn(move || {
            other.advance(&mut advancer, 8);
            advancer
        });
        scheduler.schedule(8, ledger.payload(1)).unwrap();
        let mut advancer = advancing.join().unwrap();
        ledger.advance(&mut advancer, 8);
        assert!(ledger.has_fired(1));
        drop((scheduler, advancer));
        ledger.balance();
    });
}

/// The dead node is linked for a tick that is too late. The producer leaves it in its list, dead,
/// and takes another node.
#[test]
fn hazard_7_a_dead_node_is_of_no_use() {
    reuse(3, 1, &[1, 3]);
}

/// A timer is put off, so the flush of its bucket finds it early and places it again. Meanwhile the
/// timer is cancelled, and its node is wanted for a tick after that bucket's and before the new
/// bucket's.
#[test]
fn hazard_7_a_dead_node_that_is_placed_anew() {
    model(|| {
        let ledger = Ledger::new(2);
        let (scheduler, mut advancer) = holding_shard();
        let key = scheduler.schedule(1, ledger.payload(0)).unwrap();
        assert_eq!(scheduler.reschedule(key, 6), Some(key));
        let both = (scheduler.clone(), ledger.clone());
        let reuser = thread::spawn(move || replace(&both.0, &both.1, key, 2));
        ledger.advance(&mut advancer, 1);
        reuser.join().unwrap();
        ledger.advance(&mut advancer, 2);
        assert!(ledger.has_fired(1));
        drop((scheduler, advancer));
        ledger.balance();
    });
}

/// The advancer may meet the node, dead or busy, in the bucket that it flushes. The timer that is
/// put into the node is due later, and fires in time.
#[test]
fn hazard_7_a_dead_node_whose_bucket_is_past() {
    model(|| {
        let ledger = Ledger::new(2);
        let (scheduler, mut advancer) = holding_shard();
        let both = (scheduler.clone(), ledger.clone());
        let reuser = thread::spawn(move || {
            let key = both.0.schedule(1, both.1.payload(0)).unwrap();
            replace(&both.0, &both.1, key, 3);
        });
        ledger.advance(&mut advancer, 1);
        ledger.advance(&mut advancer, 2);
        reuser.join().unwrap();
        ledger.advance(&mut advancer, 3);
        assert!(ledger.has_fired(1));
        drop((scheduler, advancer));
        ledger.balance();
    });
}

/// The producer has no use for the node that the advancer may be about to free: its next timers fire
/// in time, and the node is freed once.
#[test]
fn hazard_7_a_dead_node_is_of_no_use_while_its_bucket_is_flushed() {
    model_within(3, || {
        let ledger = Ledger::new(3);
        let (scheduler, mut advancer) = holding_shard();
        let both = (scheduler.clone(), ledger.clone());
        let reuser = thread::spawn(move || {
            let key = both.0.schedule(2, both.1.payload(0)).unwrap();
            replace(&both.0, &both.1, key, 1);
            both.0.schedule(3, both.1.payload(2)).unwrap();
        });
        ledger.advance(&mut advancer, 2);
        reuser.join().unwrap();
        ledger.advance(&mut advancer, 2);
        assert!(ledger.has_fired(1));
        ledger.advance(&mut advancer, 3);
        assert!(ledger.has_fired(2));
        drop((scheduler, advancer));
        ledger.balance();
    });
}

/// The advancer meets the node, and may defer it, while the producer puts one timer after the other
/// into it.
#[test]
fn hazard_7_a_node_is_reused_twice_while_its_bucket_is_flushed() {
    model_within(2, || {
        let ledger = Ledger::new(3);
        let (scheduler, mut advancer) = holding_shard();
        let both = (scheduler.clone(), ledger.clone());
        let reuser = thread::spawn(move || {
            let key = both.0.schedule(1, both.1.payload(0)).unwrap();
            both.1.cancelled(both.0.cancel(key));
            let key = both.0.schedule(3, both.1.payload(2)).unwrap();
            replace(&both.0, &both.1, key, 3);
        });
        ledger.advance(&mut advancer, 1);
        ledger.advance(&mut advancer, 2);
        reuser.join().unwrap();
        ledger.advance(&mut advancer, 3);
        assert!(ledger.has_fired(1));
        drop((scheduler, advancer));
        ledger.balance();
    });
}

/// The advancer's answer covers the timer in the node that is reused, or the timer wakes the
/// advancer. The node may be in a bucket, or deferred because the bucket's tick has passed.
fn sleep(preemptions: usize, now: Tick) {
    model_within(preemptions, move || {
        let ledger = Ledger::new(4);
        let (scheduler, mut advancer) = holding_shard();
        scheduler.schedule(3, ledger.payload(2)).unwrap();
        let (woken, waker) = CountingWake::waker();
        let both = (scheduler.clone(), ledger.clone());
        let adder = thread::spawn(move || {
            let key = both.0.schedule(1, both.1.payload(0)).unwrap();
            replace(&both.0, &both.1, key, 2);
        });
        ledger.advance(&mut advancer, now);
        advancer.register_waker(&waker);
        let answer = advancer.next_expiration().unwrap_or(Tick::MAX);
        adder.join().unwrap();
        assert!(answer <= 2 || woken.count() > 0);
        ledger.advance(&mut advancer, 3);
        assert!(ledger.has_fired(1));
        scheduler.schedule(4, ledger.payload(3)).unwrap();
        ledger.advance(&mut advancer, 4);
        drop((scheduler, advancer));
        ledger.balance();
    });
}

#[test]
fn hazard_6_a_timer_in_a_dead_node_wakes() {
    sleep(2, 0);
}

#[test]
fn hazard_6_a_timer_in_a_node_whose_bucket_is_past_wakes() {
    // Preemptions: to the producer, back while the node is busy, and to the producer again.
    sleep(3, 1);
}

/// A sweep passes the dead node while a timer is put into it.
#[test]
fn hazard_8_a_sweep_against_a_dead_node() {
    model(|| {
        let ledger = Ledger::new(4);
        let (scheduler, mut advancer) = holding_shard();
        let keys = [0, 2, 3].map(|number| scheduler.schedule(2, ledger.payload(number)).unwrap());
        // Two nodes are dead, and a sweep is owed.
        assert!(ledger.cancelled(scheduler.cancel(keys[1])));
        assert!(ledger.cancelled(scheduler.cancel(keys[2])));
        let both = (scheduler.clone(), ledger.clone());
        let reuser = thread::spawn(move || replace(&both.0, &both.1, keys[0], 3));
        ledger.advance(&mut advancer, 1);
        reuser.join().unwrap();
        ledger.advance(&mut advancer, 3);
        assert!(ledger.has_fired(1));
        drop((scheduler, advancer));
        ledger.balance();
    });
}

/// The advancer ends while a timer is put into a dead node: the advancer or the schedule call hands
/// it back.
#[test]
fn hazard_10_shutdown_against_a_timer_in_a_dead_node() {
    model(|| {
        let ledger = Ledger::new(2);
        let (scheduler, advancer) = holding_shard();
        let key = scheduler.schedule(1, ledger.payload(0)).unwrap();
        let both = (scheduler.clone(), ledger.clone());
        let adder = thread::spawn(move || {
            let (scheduler, ledger) = both;
            ledger.cancelled(scheduler.cancel(key));
            ledger.schedule(&scheduler, 2, 1);
        });
        advancer.into_pending().for_each(|(_, payload)| ledger.handed_back(&payload));
        adder.join().unwrap();
        assert!(scheduler.is_empty());
        drop(scheduler);
        ledger.balance();
    });
}

/// A timer is moved while its thread has a dead node while the advancer ends.
#[test]
fn hazard_10_shutdown_against_a_move_into_a_dead_node() {
    model(|| {
        let ledger = Ledger::new(2);
        let (scheduler, advancer) = holding_shard();
        let both = (scheduler.clone(), ledger.clone());
        let key = scheduler.schedule(3, ledger.payload(0)).unwrap();
        let mover = thread::spawn(move || {
            let (scheduler, ledger) = both;
            if let Some(dead) = ledger.schedule(&scheduler, 1, 1) {
                ledger.cancelled(scheduler.cancel(dead));
            }
            scheduler.reschedule(key, 2)
        });
        advancer.into_pending().for_each(|(_, payload)| ledger.handed_back(&payload));
        mover.join().unwrap();
        assert!(scheduler.is_empty(), "nothing is left behind where nobody is stalled for three walks");
        drop(scheduler);
        ledger.balance();
    });
}
