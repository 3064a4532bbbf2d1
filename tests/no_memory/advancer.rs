//! An advancer whose requests for memory are refused.

use std::task::Waker;

use shardwheel::{Advancer, Scheduler, Tick};

use crate::child::at_every_request;
use crate::faults::short;
use crate::producer::{deadlines, small_shard};
use crate::support::ledger::{Ledger, Payload};

/// Timers of a crowd: freed nodes fill many words, and whole segments.
const MANY: usize = 140_000;

fn set(scheduler: &Scheduler<Payload>, ledger: &Ledger, deadline: Tick) {
    assert!(scheduler.schedule(deadline, ledger.payload()).is_ok());
}

/// Advances with memory refused, as programs do, until nothing is due. Returns how many timers have
/// fired. Without memory for a wheel its timers fire an advance later, and each advance tries
/// again.
fn advance(advancer: &mut Advancer<Payload>, now: Tick) -> usize {
    let mut fired = 0;
    for turn in 0.. {
        let before = fired;
        short(|| {
            for timer in advancer.advance(now) {
                assert!(timer.deadline <= now);
                fired += 1;
            }
        });
        let is_due = short(|| advancer.next_expiration()).is_some_and(|next| next <= now);
        if !is_due || turn > 0 && fired == before {
            break;
        }
    }
    fired
}

/// Timers come down from every wheel, and the wheels are freed when they have been idle.
#[test]
fn advance_over_every_wheel() {
    at_every_request(|| {
        let ((scheduler, mut advancer), ledger) = (small_shard(), Ledger::default());
        deadlines().for_each(|deadline| set(&scheduler, &ledger, deadline));
        let (mut fired, all) = (0, deadlines().count());
        short(|| advancer.register_waker(Waker::noop()));
        for bits in 0..64 {
            let now = 1 << bits;
            fired += advance(&mut advancer, now - 1) + advance(&mut advancer, now);
            // Several checks for idle wheels.
            fired += (1..10).map(|more| advance(&mut advancer, now + more * 4_096)).sum::<usize>();
        }
        fired += advance(&mut advancer, Tick::MAX);
        assert_eq!((fired, ledger.living()), (all, 0));
        set(&scheduler, &ledger, 0);
        assert_eq!(advancer.advance(Tick::MAX).count(), 1);
    });
}

/// Timers with past deadlines are in the inbox.
#[test]
fn advance_over_an_inbox() {
    at_every_request(|| {
        let ((scheduler, mut advancer), ledger) = (small_shard(), Ledger::default());
        assert_eq!(advancer.advance(1_000).count(), 0);
        (0..300).for_each(|number| set(&scheduler, &ledger, number as Tick));
        assert_eq!(advance(&mut advancer, 1_000), 300);
        (0..300).for_each(|number| set(&scheduler, &ledger, 1_000 - number as Tick));
        assert_eq!(advance(&mut advancer, 2_000), 300);
        assert_eq!(ledger.living(), 0);
    });
}

/// A crowd of timers fires, and its nodes and segments are freed.
#[test]
fn advance_over_a_crowd() {
    at_every_request(|| {
        let ((scheduler, mut advancer), ledger) = (small_shard(), Ledger::default());
        (0..MANY).for_each(|number| set(&scheduler, &ledger, 1 + number as Tick % 3_000));
        let fired = (1..=40).map(|step| advance(&mut advancer, step * 100)).sum::<usize>();
        assert_eq!((fired, ledger.living()), (MANY, 0));
        for number in 0..100 {
            set(&scheduler, &ledger, 5_000);
            assert_eq!(advancer.advance(4_000 + number as Tick).count(), 0);
        }
        assert_eq!(advancer.advance(5_000).count(), 100);
    });
}

/// The nodes of cancelled timers are swept.
#[test]
fn advance_over_cancelled_timers() {
    at_every_request(|| {
        let ((scheduler, mut advancer), ledger) = (small_shard(), Ledger::default());
        let schedule = |_| scheduler.schedule(1 << 30, ledger.payload()).ok();
        let keys: Vec<_> = (0..20_000).filter_map(schedule).collect();
        set(&scheduler, &ledger, 1 << 31);
        assert!(keys.into_iter().all(|key| scheduler.cancel(key).is_some()));
        let fired = (0..200).map(|now| advance(&mut advancer, now)).sum::<usize>();
        assert_eq!((fired, ledger.living()), (0, 1));
        assert!(scheduler.stats().dead_nodes <= 4_096, "{:?}", scheduler.stats());
        assert_eq!(advancer.advance(1 << 31).count(), 1);
    });
}

/// The end hands all payloads back, or drops them.
#[test]
fn the_end_returns_or_drops_all_payloads() {
    at_every_request(|| {
        let ledger = Ledger::default();
        for takes in [0, 3, 20] {
            let (scheduler, advancer) = small_shard();
            deadlines().for_each(|deadline| set(&scheduler, &ledger, deadline));
            let all = deadlines().count();
            let handed_back = short(|| advancer.into_pending().take(takes).count());
            assert_eq!((handed_back, ledger.living()), (takes.min(all), 0));
        }
        let (scheduler, advancer) = small_shard();
        deadlines().for_each(|deadline| set(&scheduler, &ledger, deadline));
        short(|| drop(advancer));
        assert_eq!(ledger.living(), 0);
        assert!(scheduler.schedule(1, ledger.payload()).is_err_and(|refused| refused.is_shut_down()));
    });
}
