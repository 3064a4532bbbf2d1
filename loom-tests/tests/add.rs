//! Producers add timers while the clock moves: hazards 1 to 5, and 11.

#![cfg(any(shardwheel_loom, shardwheel_model))]
#![allow(missing_docs)]

use shardwheel::{Key, Scheduler, Tick};
use shardwheel_loom_tests::{Ledger, Payload, model, model_within, small_shard, small_shard_from, thread};

/// With two producers, a second preemption takes minutes.
fn add_while_advancing(deadlines: &'static [Tick], clock: &'static [Tick]) {
    let preemptions = if deadlines.len() == 1 { 2 } else { 1 };
    model_within(preemptions, move || add_each(deadlines, clock));
}

/// Adds each timer from its own thread while the advancer goes through `clock`. Each timer fires
/// once, at the latest by the first advance to its deadline after its schedule call has returned.
fn add_each(deadlines: &'static [Tick], clock: &'static [Tick]) {
    add_each_from(0, deadlines, clock);
}

/// The same from tick `start` on. The clock may be set back; it then stays where it is.
fn add_each_from(start: Tick, deadlines: &'static [Tick], clock: &'static [Tick]) {
    let ledger = Ledger::new(deadlines.len());
    let (scheduler, mut advancer) = small_shard_from(start);
    let add = |(number, &deadline)| {
        let (scheduler, payload) = (scheduler.clone(), ledger.payload(number));
        thread::spawn(move || {
            scheduler.schedule(deadline, payload).expect("the advancer is there");
        })
    };
    let adders = deadlines.iter().enumerate().map(add).collect::<Vec<_>>();
    let mut reached = start;
    for &now in clock {
        reached = reached.max(now);
        ledger.advance_back(&mut advancer, now, reached);
    }
    adders.into_iter().for_each(|adder| adder.join().unwrap());
    let last = *clock.last().expect("the clock moves");
    ledger.advance_back(&mut advancer, last, reached);
    for (number, &deadline) in deadlines.iter().enumerate() {
        assert_eq!(ledger.has_fired(number), deadline <= reached, "deadline {deadline} at {reached}");
    }
    ledger.advance(&mut advancer, reached.saturating_add(8));
    drop((scheduler, advancer));
    ledger.balance();
}

/// A timer is due at 1 and fires when the clock moves to `now`, while a producer adds another timer
/// for that bucket or a later one.
fn add_beside_one_that_fires(deadline: Tick, now: Tick) {
    model(move || {
        let ledger = Ledger::new(2);
        let (scheduler, mut advancer) = small_shard();
        scheduler.schedule(1, ledger.payload(0)).unwrap();
        let adder = {
            let (scheduler, payload) = (scheduler.clone(), ledger.payload(1));
            thread::spawn(move || drop(scheduler.schedule(deadline, payload)))
        };
        ledger.advance(&mut advancer, now);
        assert!(ledger.has_fired(0));
        assert!(deadline <= now || !ledger.has_fired(1));
        adder.join().unwrap();
        ledger.advance(&mut advancer, deadline.max(now));
        assert!(ledger.has_fired(1));
        drop((scheduler, advancer));
        ledger.balance();
    });
}

#[test]
fn hazard_1_an_add_between_the_parts_of_a_flush() {
    add_while_advancing(&[1], &[1]);
}

#[test]
fn hazard_1_two_adds_to_one_bucket_being_flushed() {
    add_while_advancing(&[1, 1], &[1]);
}

#[test]
fn hazard_2_an_add_with_a_stale_clock_of_the_next_round() {
    add_while_advancing(&[2], &[1, 6]);
}

#[test]
fn hazard_2_an_add_to_the_next_round_of_a_bucket_being_flushed() {
    model_within(1, || add_each(&[1, 5], &[1, 2]));
}

/// The advancer skips a bucket. A producer that knows the new clock adds to the bucket's next
/// round. It must see the bit cleared, or its timer would be missed.
#[test]
fn hazard_2_an_add_to_the_next_round_of_a_bucket_that_was_leapt_over() {
    add_beside_one_that_fires(5, 2);
}

#[test]
fn hazard_2_neighbours_in_one_jump() {
    add_while_advancing(&[1, 2], &[2]);
}

#[test]
fn hazard_3_two_adders_create_the_overflow_wheel() {
    add_while_advancing(&[6, 9], &[1]);
}

#[test]
fn hazard_3_the_overflow_wheel_is_created_while_the_clock_moves() {
    add_while_advancing(&[6], &[4, 6]);
}

#[test]
fn hazard_5_a_bit_is_set_while_the_advancer_skips_over_its_tick() {
    add_while_advancing(&[3], &[7]);
}

#[test]
fn hazard_5_a_bit_of_an_overflow_wheel_is_set_while_the_advancer_skips_over_it() {
    add_while_advancing(&[6], &[9]);
}

/// The advancer seals both ticks of a window at the first of them.
#[test]
fn hazard_5_a_bit_is_set_while_its_tick_is_sealed_ahead() {
    add_while_advancing(&[3], &[2, 3]);
}

/// The first tick of a window starts an overflow bucket.
#[test]
fn hazard_5_a_bit_of_an_overflow_wheel_is_set_while_its_tick_is_sealed_ahead() {
    add_while_advancing(&[5], &[4, 5]);
}

/// A bucket that already holds a timer is sealed, and flushed at the next tick, while a producer
/// adds another timer to it or to its next round.
fn add_to_a_sealed_bucket(deadline: Tick) {
    model(move || {
        let ledger = Ledger::new(2);
        let (scheduler, mut advancer) = small_shard();
        scheduler.schedule(3, ledger.payload(0)).unwrap();
        let adder = {
            let (scheduler, payload) = (scheduler.clone(), ledger.payload(1));
            thread::spawn(move || drop(scheduler.schedule(deadline, payload)))
        };
        ledger.advance(&mut advancer, 2);
        assert!(!ledger.has_fired(0) && !ledger.has_fired(1), "early");
        ledger.advance(&mut advancer, 3);
        assert!(ledger.has_fired(0));
        adder.join().unwrap();
        ledger.advance(&mut advancer, deadline);
        assert!(ledger.has_fired(1));
        drop((scheduler, advancer));
        ledger.balance();
    });
}

#[test]
fn hazard_1_an_add_to_a_sealed_bucket() {
    add_to_a_sealed_bucket(3);
}

#[test]
fn hazard_2_an_add_to_the_next_round_of_a_sealed_bucket() {
    add_to_a_sealed_bucket(7);
}

#[test]
fn hazard_11_an_add_while_the_clock_goes_back() {
    add_while_advancing(&[2], &[2, 1]);
}

#[test]
fn hazard_11_an_add_that_is_due_when_the_clock_has_gone_back() {
    add_while_advancing(&[1], &[2, 0]);
}

/// Ten revolutions of the finest wheel, and two of the next.
#[test]
fn hazard_11_an_add_while_the_clock_leaps_over_revolutions() {
    add_while_advancing(&[9], &[40]);
}

#[test]
fn hazard_11_an_add_to_the_coarsest_wheel_while_the_clock_leaps() {
    add_while_advancing(&[38], &[40]);
}

#[test]
fn hazard_11_an_add_at_the_end_of_time() {
    model(|| add_each_from(Tick::MAX - 6, &[Tick::MAX], &[Tick::MAX]));
}

#[test]
fn hazard_11_two_adds_at_the_end_of_time() {
    model_within(1, || {
        add_each_from(Tick::MAX - 2, &[Tick::MAX - 1, Tick::MAX], &[Tick::MAX - 1, Tick::MAX])
    });
}

#[test]
fn hazard_1_an_add_to_an_overflow_bucket_that_is_drawn_ahead() {
    add_while_advancing(&[6], &[1, 6]);
}

#[test]
fn hazard_1_two_adds_to_an_overflow_bucket_that_is_drawn_ahead_and_flushed() {
    model_within(1, || add_each(&[6, 7], &[1, 7]));
}

/// A timer in the overflow bucket is moved or cancelled during the bucket's early cascade.
fn change_while_drawing(change: fn(&Scheduler<Payload>, Key) -> Option<Payload>, by: Tick) {
    model(move || {
        let ledger = Ledger::new(1);
        let (scheduler, mut advancer) = small_shard();
        let key = scheduler.schedule(6, ledger.payload(0)).unwrap();
        let changer = {
            let (scheduler, ledger) = (scheduler.clone(), ledger.clone());
            thread::spawn(move || ledger.cancelled(change(&scheduler, key)))
        };
        ledger.advance(&mut advancer, 1);
        let is_cancelled = changer.join().unwrap();
        ledger.advance(&mut advancer, by - 1);
        assert!(!ledger.has_fired(0), "early");
        ledger.advance(&mut advancer, by);
        assert_ne!(ledger.has_fired(0), is_cancelled);
        drop((scheduler, advancer));
        ledger.balance();
    });
}

#[test]
fn hazard_4_an_extension_while_its_bucket_is_drawn_ahead() {
    let put_off = |scheduler: &Scheduler<Payload>, key| {
        assert_eq!(scheduler.reschedule(key, 18), Some(key));
        None
    };
    change_while_drawing(put_off, 18);
}

#[test]
fn hazard_4_a_move_while_its_bucket_is_drawn_ahead() {
    let move_up = |scheduler: &Scheduler<Payload>, key| {
        assert!(scheduler.reschedule(key, 5).is_some());
        None
    };
    change_while_drawing(move_up, 5);
}

#[test]
fn hazard_4_a_cancel_while_its_bucket_is_drawn_ahead() {
    change_while_drawing(Scheduler::cancel, 6);
}

/// A bucket that already holds a timer is flushed while a producer adds another timer to it.
#[test]
fn hazard_1_an_add_to_a_bucket_whose_bit_is_set_already() {
    add_beside_one_that_fires(1, 1);
}
