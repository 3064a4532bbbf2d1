//! The advancer sleeps, sweeps or ends while producers work: hazards 6, 8, 10 and 13.

#![cfg(any(shardwheel_loom, shardwheel_model))]
#![allow(missing_docs)]

use std::task::Waker;

use shardwheel::Tick;
use shardwheel_loom_tests::{CountingWake, Ledger, StoppedWake, model, small_shard, thread};

/// Producers add timers while the advancer asks when to wake. The answer covers each deadline, or
/// the waker is woken.
fn sleep(standing: Option<Tick>, deadlines: &'static [Tick]) {
    model(move || {
        let ledger = Ledger::new(deadlines.len() + usize::from(standing.is_some()));
        let (scheduler, mut advancer) = small_shard();
        if let Some(tick) = standing {
            scheduler.schedule(tick, ledger.payload(deadlines.len())).unwrap();
        }
        let (woken, waker) = CountingWake::waker();
        advancer.register_waker(&waker);
        let add = |(number, &deadline)| {
            let (scheduler, payload) = (scheduler.clone(), ledger.payload(number));
            thread::spawn(move || drop(scheduler.schedule(deadline, payload)))
        };
        let adders = deadlines.iter().enumerate().map(add).collect::<Vec<_>>();
        let answer = advancer.next_expiration().unwrap_or(Tick::MAX);
        adders.into_iter().for_each(|adder| adder.join().unwrap());
        let first = deadlines.iter().copied().chain(standing).min().unwrap();
        assert!(answer <= first || woken.count() > 0, "asleep until {answer}, {first} is due");
        ledger.advance(&mut advancer, 20);
        drop((scheduler, advancer));
        ledger.balance();
    });
}

#[test]
fn hazard_6_asleep_without_a_timer_while_one_comes() {
    sleep(None, &[2]);
}

#[test]
fn hazard_6_asleep_until_later_while_two_come() {
    sleep(Some(3), &[1, 2]);
}

#[test]
fn hazard_6_a_timer_that_is_due_already() {
    sleep(Some(3), &[0]);
}

/// A producer stops in the waker that it calls. Another producer schedules a timer, earlier or
/// later than the first producer's. The advancer is woken before that schedule call returns. The
/// same holds for a producer that asks for a sweep.
fn stopped_in_its_wake(first: Tick, second: Tick) {
    model(move || {
        let ledger = Ledger::new(2);
        let (scheduler, mut advancer) = small_shard();
        let (woken, waker) = StoppedWake::waker();
        advancer.register_waker(&waker);
        assert_eq!(advancer.next_expiration(), None);
        let stopped = {
            let (scheduler, payload) = (scheduler.clone(), ledger.payload(0));
            thread::spawn(move || drop(scheduler.schedule(first, payload)))
        };
        scheduler.schedule(second, ledger.payload(1)).unwrap();
        assert!(woken.count() > 0, "a timer waits for a producer that has stopped");
        assert_eq!(ledger.advance(&mut advancer, 3), 1 + usize::from(ledger.has_fired(0)));
        woken.release();
        stopped.join().unwrap();
        ledger.advance(&mut advancer, 20);
        drop((scheduler, advancer));
        ledger.balance();
    });
}

#[test]
fn hazard_13_a_producer_stops_in_its_wake_and_another_comes_later() {
    stopped_in_its_wake(1, 2);
}

#[test]
fn hazard_13_a_producer_stops_in_its_wake_and_another_comes_earlier() {
    stopped_in_its_wake(2, 1);
}

#[test]
fn hazard_13_a_producer_stops_in_its_wake_and_another_asks_for_a_sweep() {
    model(|| {
        let ledger = Ledger::new(4);
        let (scheduler, mut advancer) = small_shard();
        let keys = [0, 1, 2].map(|number| scheduler.schedule(9, ledger.payload(number)).unwrap());
        let (woken, waker) = StoppedWake::waker();
        advancer.register_waker(&waker);
        assert_eq!(advancer.next_expiration(), Some(8));
        let stopped = {
            let (scheduler, payload) = (scheduler.clone(), ledger.payload(3));
            thread::spawn(move || drop(scheduler.schedule(2, payload)))
        };
        for key in keys {
            ledger.cancelled(scheduler.cancel(key));
        }
        // Natively a sweep is owed only at more dead nodes.
        assert!(!cfg!(shardwheel_loom) || woken.count() > 0, "a sweep waits for a producer that has stopped");
        woken.release();
        stopped.join().unwrap();
        ledger.advance(&mut advancer, 20);
        drop((scheduler, advancer));
        ledger.balance();
    });
}

/// The waker is replaced while a producer wakes the advancer: the new waker is woken, or the answer
/// covers the timer.
#[test]
fn hazard_13_the_waker_is_replaced_while_a_producer_rings() {
    model(|| {
        let ledger = Ledger::new(1);
        let (scheduler, mut advancer) = small_shard();
        let [(first, one), (second, other)] = [CountingWake::waker(), CountingWake::waker()];
        let register = |advancer: &mut shardwheel::Advancer<_>, waker: &Waker| {
            advancer.register_waker(waker);
            advancer.next_expiration()
        };
        register(&mut advancer, &one);
        let adder = {
            let (scheduler, payload) = (scheduler.clone(), ledger.payload(0));
            thread::spawn(move || drop(scheduler.schedule(2, payload)))
        };
        let answer = register(&mut advancer, &other);
        adder.join().unwrap();
        assert!(answer == Some(2) || second.count() > 0, "asleep with {answer:?}; before: {}", first.count());
        ledger.advance(&mut advancer, 2);
        drop((scheduler, advancer));
        ledger.balance();
    });
}

/// A sweep goes through a bucket while a timer is added to it, and a timer in it is cancelled.
#[test]
fn hazard_8_a_sweep_against_an_add_and_a_cancel() {
    model(|| {
        let ledger = Ledger::new(5);
        let (scheduler, mut advancer) = small_shard();
        // Two of the four nodes are dead. The model tolerates two dead nodes, and a sweep is due
        // above three quarters of that.
        let dead = [0, 4].map(|number| scheduler.schedule(3, ledger.payload(number)).unwrap());
        let other = scheduler.schedule(3, ledger.payload(1)).unwrap();
        scheduler.schedule(3, ledger.payload(2)).unwrap();
        for key in dead {
            ledger.cancelled(scheduler.cancel(key));
        }
        let canceller = {
            let (scheduler, ledger) = (scheduler.clone(), ledger.clone());
            thread::spawn(move || {
                ledger.cancelled(scheduler.cancel(other));
            })
        };
        let adder = {
            let (scheduler, payload) = (scheduler.clone(), ledger.payload(3));
            thread::spawn(move || drop(scheduler.schedule(3, payload)))
        };
        ledger.advance(&mut advancer, 0);
        canceller.join().unwrap();
        adder.join().unwrap();
        // With the adder's timer and the canceller's, no sweep is due; without the latter, one is. The
        // first of these advances may find that out too late for itself.
        (0..2).for_each(|_| _ = ledger.advance(&mut advancer, 0));
        // Natively a sweep is owed only at more dead nodes.
        assert!(!cfg!(shardwheel_loom) || scheduler.stats().swept > 0);
        ledger.advance(&mut advancer, 3);
        assert!(ledger.has_fired(2) && ledger.has_fired(3));
        drop((scheduler, advancer));
        ledger.balance();
    });
}

/// A producer asks for a sweep between an advance and the next sleep, after the last wake has used
/// the waker up. The advancer sees the request, or is woken.
#[test]
fn hazard_8_a_sweep_is_asked_for_before_the_advancer_sleeps() {
    model(|| {
        let ledger = Ledger::new(4);
        let (scheduler, mut advancer) = small_shard();
        let keys = [0, 1, 2, 3].map(|number| scheduler.schedule(3, ledger.payload(number)).unwrap());
        let canceller = {
            let (scheduler, ledger) = (scheduler.clone(), ledger.clone());
            thread::spawn(move || {
                for key in &keys[..2] {
                    assert!(ledger.cancelled(scheduler.cancel(*key)));
                }
            })
        };
        ledger.advance(&mut advancer, 0);
        let (woken, waker) = CountingWake::waker();
        advancer.register_waker(&waker);
        let _ = advancer.next_expiration();
        canceller.join().unwrap();
        // Natively a sweep is owed only at more dead nodes.
        assert!(!cfg!(shardwheel_loom) || woken.count() > 0 || scheduler.stats().swept > 0);
        ledger.advance(&mut advancer, 3);
        drop((scheduler, advancer));
        ledger.balance();
    });
}

/// The advancer ends while a producer adds a timer: the advancer or the schedule call hands the
/// timer back.
#[test]
fn hazard_10_shutdown_against_an_add() {
    model(|| {
        let ledger = Ledger::new(2);
        let (scheduler, advancer) = small_shard();
        scheduler.schedule(1, ledger.payload(0)).unwrap();
        let adder = {
            let (scheduler, ledger) = (scheduler.clone(), ledger.clone());
            thread::spawn(move || ledger.schedule(&scheduler, 2, 1))
        };
        advancer.into_pending().for_each(|(_, payload)| ledger.handed_back(&payload));
        adder.join().unwrap();
        assert!(scheduler.is_empty());
        drop(scheduler);
        ledger.balance();
    });
}

#[test]
fn hazard_10_shutdown_against_a_cancel() {
    model(|| {
        let ledger = Ledger::new(1);
        let (scheduler, advancer) = small_shard();
        let key = scheduler.schedule(1, ledger.payload(0)).unwrap();
        let canceller = {
            let (scheduler, ledger) = (scheduler.clone(), ledger.clone());
            thread::spawn(move || {
                ledger.cancelled(scheduler.cancel(key));
            })
        };
        advancer.into_pending().for_each(|(_, payload)| ledger.handed_back(&payload));
        canceller.join().unwrap();
        drop(scheduler);
        ledger.balance();
    });
}

/// A timer is on its way from one node to another when the advancer ends.
#[test]
fn hazard_10_shutdown_against_a_move() {
    model(|| {
        let ledger = Ledger::new(1);
        let (scheduler, advancer) = small_shard();
        let key = scheduler.schedule(3, ledger.payload(0)).unwrap();
        let mover = {
            let scheduler = scheduler.clone();
            thread::spawn(move || scheduler.reschedule(key, 1))
        };
        advancer.into_pending().for_each(|(_, payload)| ledger.handed_back(&payload));
        mover.join().unwrap();
        assert!(scheduler.is_empty(), "nothing is left behind where nobody is stalled for three walks");
        drop(scheduler);
        ledger.balance();
    });
}
