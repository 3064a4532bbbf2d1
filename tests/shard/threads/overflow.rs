//! Overflow wheels: the first producer that needs one creates it.

use std::sync::mpsc::sync_channel;
use std::thread;

use fastrand::Rng;
use shardwheel::{Scheduler, Tick};

use super::work::{PRODUCERS, jump, times, together};
use crate::support::ledger::{Ledger, Payload};

use super::ends::{open, take};

/// In new shards several threads at once set the first timers of every level: whichever thread
/// creates a wheel, all timers fire exactly when they are due.
#[test]
fn threads_race_to_create_the_overflow_wheels() {
    let rounds = times(100);
    let ledger = Ledger::with_capacity(rounds * 2 * 60);
    for round in 0..rounds {
        let (scheduler, mut advancer) = open([2, 8, 64, 256][round % 4]);
        let far = |bit: usize| 1 << (if round % 8 < 4 { bit } else { 59 - bit });
        let set = || {
            for deadline in (0..60).map(far) {
                scheduler.schedule(deadline, ledger.payload_due(deadline)).expect("the shard is open");
            }
        };
        together(set, set);
        assert_eq!(scheduler.len(), 120);
        (0..60).for_each(|bit| take(&mut advancer, 1 << bit, usize::MAX));
    }
    ledger.check_exact();
}

/// More than a revolution of every wheel that the producers use.
const REVOLUTION: Tick = 1 << 25;

/// Producers set a few timers at a time, far enough ahead for overflow wheels. Meanwhile, and in
/// their pauses, the clock jumps over buckets of these wheels. No timer is lost in a wheel.
#[test]
fn the_clock_jumps_over_buckets_that_producers_fill() {
    let (rounds, turns, most) = (times(40), 60, 8);
    let ledger = Ledger::with_capacity(rounds * turns * most);
    let (scheduler, mut advancer) = open(16);
    let mut rng = Rng::with_seed(90);
    for _ in 0..rounds {
        thread::scope(|scope| {
            let gives = [(); PRODUCERS].map(|()| {
                // One request is handled while the next waits: this thread waits for a producer
                // that is far behind.
                let (give, get) = sync_channel::<Rng>(1);
                let (scheduler, ledger) = (&scheduler, &ledger);
                scope.spawn(move || get.into_iter().for_each(|rng| set_far(scheduler, ledger, rng, most)));
                give
            });
            for give in gives.iter().cycle().take(turns) {
                give.send(rng.fork()).expect("a producer at work");
                for _ in 0..rng.usize(..64) {
                    let now = scheduler.now() + jump(&mut rng, 14);
                    take(&mut advancer, now, usize::MAX);
                }
            }
        });
        take(&mut advancer, scheduler.now() + REVOLUTION, usize::MAX);
        assert!(scheduler.is_empty(), "left behind: {:?}", scheduler.stats());
    }
    ledger.check_all_ended();
}

/// Sets at most `most` timers for the first few overflow wheels.
fn set_far(scheduler: &Scheduler<Payload>, ledger: &Ledger, mut rng: Rng, most: usize) {
    for _ in 0..rng.usize(..=most) {
        let deadline = scheduler.now() + (1 << rng.u32(5..18));
        scheduler.schedule(deadline, ledger.payload_due(deadline)).expect("the shard is open");
    }
}
