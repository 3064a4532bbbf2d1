//! Two threads contend for one timer: hazards 4 and 7.

#![cfg(any(shardwheel_loom, shardwheel_model))]
#![allow(missing_docs)]

use std::sync::Arc;

use shardwheel::testing::LoneNode;
use shardwheel::{Key, Scheduler, Tick};
use shardwheel_loom_tests::{Ledger, Payload, holding_shard, model, small_shard, thread};

/// One timer at `deadline`. One or two threads act on it while the advancer goes through `clock`.
fn contend(
    deadline: Tick,
    clock: &'static [Tick],
    first: fn(&Scheduler<Payload>, &Ledger, Key),
    second: Option<fn(&Scheduler<Payload>, &Ledger, Key)>,
) {
    model(move || {
        let ledger = Ledger::new(1);
        let (scheduler, mut advancer) = small_shard();
        let key = scheduler.schedule(deadline, ledger.payload(0)).unwrap();
        let run = |act: fn(&Scheduler<Payload>, &Ledger, Key)| {
            let (scheduler, ledger) = (scheduler.clone(), ledger.clone());
            thread::spawn(move || act(&scheduler, &ledger, key))
        };
        let threads = [Some(first), second].into_iter().flatten().map(run).collect::<Vec<_>>();
        for &now in clock {
            ledger.advance(&mut advancer, now);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        ledger.advance(&mut advancer, 20);
        assert!(scheduler.is_empty());
        assert!(scheduler.cancel(key).is_none());
        drop((scheduler, advancer));
        ledger.balance();
    });
}

fn cancel(scheduler: &Scheduler<Payload>, ledger: &Ledger, key: Key) {
    ledger.cancelled(scheduler.cancel(key));
}

/// Puts the timer off to 5. If that succeeds, the timer does not fire before 5 and keeps its key.
fn extend(scheduler: &Scheduler<Payload>, _: &Ledger, key: Key) {
    assert!(scheduler.reschedule(key, 5).is_none_or(|same| same == key));
}

/// Brings the timer forward to 1. If that succeeds, the timer has another key.
fn shorten(scheduler: &Scheduler<Payload>, _: &Ledger, key: Key) {
    assert!(scheduler.reschedule(key, 1).is_none_or(|moved| moved != key));
}

/// Asks for the deadline of a timer that was due at 1, and may have been put off to 5.
fn ask(scheduler: &Scheduler<Payload>, _: &Ledger, key: Key) {
    assert!(scheduler.deadline(key).is_none_or(|deadline| deadline == 1 || deadline == 5));
}

/// Cancels the timer, and schedules another, which may get its node. The first one's key never has
/// the second one's deadline.
fn replace(scheduler: &Scheduler<Payload>, ledger: &Ledger, key: Key) {
    if let Some(payload) = scheduler.cancel(key) {
        let second = scheduler.schedule(7, payload).expect("it is open");
        assert_eq!(scheduler.deadline(key), None);
        ledger.cancelled(scheduler.cancel(second));
    }
}

#[test]
fn hazard_4_fire_against_a_question() {
    contend(1, &[1], ask, None);
}

#[test]
fn hazard_4_fire_against_cancel() {
    contend(1, &[1], cancel, None);
}

#[test]
fn hazard_4_extend_against_fire() {
    contend(1, &[1], extend, None);
}

#[test]
fn hazard_4_extend_against_a_question() {
    contend(1, &[1], ask, Some(extend));
}

#[test]
fn hazard_7_reuse_against_a_question() {
    contend(1, &[1], ask, Some(replace));
}

#[test]
fn hazard_4_fire_against_two_cancels() {
    contend(1, &[1], cancel, Some(cancel));
}

#[test]
fn hazard_4_cascade_against_cancel() {
    contend(6, &[4, 6], cancel, None);
}

#[test]
fn hazard_4_extend_against_cancel() {
    contend(1, &[1], extend, Some(cancel));
}

#[test]
fn hazard_4_shorten_against_cancel() {
    contend(3, &[1], shorten, Some(cancel));
}

#[test]
fn hazard_4_shorten_against_fire() {
    contend(2, &[2], shorten, None);
}

/// A timer that was put off does not fire before its new deadline.
#[test]
fn hazard_4_an_extension_that_won_holds() {
    model(|| {
        let ledger = Ledger::new(1);
        let (scheduler, mut advancer) = small_shard();
        let key = scheduler.schedule(1, ledger.payload(0)).unwrap();
        let extender = {
            let scheduler = scheduler.clone();
            thread::spawn(move || scheduler.reschedule(key, 3).is_some())
        };
        ledger.advance(&mut advancer, 1);
        let extended = extender.join().unwrap();
        assert_eq!(ledger.has_fired(0), !extended);
        ledger.advance(&mut advancer, 2);
        assert_eq!(ledger.has_fired(0), !extended);
        ledger.advance(&mut advancer, 3);
        drop((scheduler, advancer));
        ledger.balance();
    });
}

/// A flush frees a node, and the node is handed out again, while a canceller with the old key reads
/// it.
#[test]
fn hazard_7_a_node_handed_out_again_against_a_stale_key() {
    model(|| {
        let ledger = Ledger::new(5);
        let (scheduler, mut advancer) = small_shard();
        let key = scheduler.schedule(1, ledger.payload(0)).unwrap();
        let stale = {
            let (scheduler, ledger) = (scheduler.clone(), ledger.clone());
            thread::spawn(move || ledger.cancelled(scheduler.cancel(key)))
        };
        ledger.advance(&mut advancer, 1);
        ledger.advance(&mut advancer, 1);
        // More timers than the first segment has nodes, so the freed node is used again.
        let keys = (1..5).map(|number| scheduler.schedule(2, ledger.payload(number)).unwrap());
        let keys = keys.collect::<Vec<_>>();
        let won = stale.join().unwrap();
        assert_eq!(ledger.has_fired(0), !won);
        ledger.advance(&mut advancer, 2);
        assert!((1..5).all(|number| ledger.has_fired(number)));
        assert!(keys.into_iter().all(|key| scheduler.cancel(key).is_none()));
        drop((scheduler, advancer));
        ledger.balance();
    });
}

/// A producer remembers a node in which it cancelled a timer. A flush has freed the node since, and
/// another producer has received it and cancels its own timer in it. The first producer must not
/// put a payload in before the other payload is out.
#[test]
fn hazard_7_a_remembered_node_that_was_handed_out_again_against_a_cancel() {
    model(|| {
        let ledger = Ledger::new(3);
        let (scheduler, mut advancer) = holding_shard();
        let dead = scheduler.schedule(1, ledger.payload(0)).unwrap();
        assert!(ledger.cancelled(scheduler.cancel(dead)));
        (0..3).for_each(|_| assert_eq!(ledger.advance(&mut advancer, 1), 0));
        let other = {
            let (scheduler, ledger) = (scheduler.clone(), ledger.clone());
            thread::spawn(move || {
                let key = scheduler.schedule(2, ledger.payload(1)).unwrap();
                assert!(ledger.cancelled(scheduler.cancel(key)));
            })
        };
        scheduler.schedule(3, ledger.payload(2)).unwrap();
        other.join().unwrap();
        ledger.advance(&mut advancer, 3);
        assert!(ledger.has_fired(2));
        drop((scheduler, advancer));
        ledger.balance();
    });
}

/// A move gives up and puts the payload back, while a canceller has read the word but not yet done
/// its compare-and-swap. The canceller gets the restored payload.
#[test]
fn hazard_4_a_move_in_vain_against_a_cancel() {
    model(|| {
        let (ledger, node) = (Ledger::new(1), Arc::new(LoneNode::new()));
        let generation = node.arm(1, ledger.payload(0)).unwrap();
        let mover = {
            let node = Arc::clone(&node);
            thread::spawn(move || node.take_in_vain(generation))
        };
        let cancelled = ledger.cancelled(node.cancel(generation));
        let moved = mover.join().unwrap();
        assert!(cancelled || moved);
        if !cancelled {
            assert!(ledger.cancelled(node.cancel(generation)));
        }
        ledger.balance();
    });
}

/// A thread looks at a timer while that is cancelled and its node armed anew. It never sees the
/// deadline of one timer with the tag of the other.
#[cfg(feature = "introspect")]
#[test]
fn hazard_7_a_look_at_a_node_that_is_armed_anew() {
    model(|| {
        let node = Arc::new(LoneNode::new());
        let first = node.arm(5, ()).unwrap();
        let looks = {
            let node = Arc::clone(&node);
            thread::spawn(move || node.look())
        };
        assert!(node.cancel(first).is_some() && node.free_cancelled());
        let second = node.arm(9, ()).unwrap();
        let seen = looks.join().unwrap();
        assert!(seen.is_none_or(|(deadline, tag)| deadline == tag && [5, 9].contains(&tag)), "{seen:?}");
        assert_eq!(node.look(), Some((9, 9)));
        node.cancel(second);
    });
}
