//! Conservation: what was scheduled has one outcome, and none comes late.

use fastrand::Rng;
use shardwheel::{Scheduler, Tick};

use super::producers::produce;
use super::work::{PRODUCERS, at_work, times};
use crate::support::ledger::{End, Ledger, Payload};

use super::ends::{hand_back, open, take};

/// What was scheduled has fired, was cancelled, or is handed out by an advance to the end of time; the count
/// is right when the producers have stopped.
#[test]
fn conservation_with_a_drain_at_the_end() {
    for (seed, wheel_size) in [(1, 2), (2, 16), (3, 2_048)] {
        let steps = times(12_000);
        let ledger = Ledger::with_capacity(PRODUCERS * steps);
        produce(open(wheel_size), &ledger, (seed, steps, usize::MAX), |mut advancer| {
            assert_eq!(advancer.scheduler().len(), ledger.pending());
            take(&mut advancer, Tick::MAX, usize::MAX);
            assert_eq!(advancer.scheduler().len(), 0);
            let stats = advancer.scheduler().stats();
            assert_eq!(stats.fired, ledger.count(End::Fired) as u64);
            assert_eq!(stats.scheduled, stats.fired + stats.cancelled);
        });
        ledger.check_all_ended();
    }
}

/// What was scheduled has fired, was cancelled, or is handed back at the end.
#[test]
fn conservation_with_the_rest_handed_back() {
    for (seed, wheel_size) in [(11, 2), (12, 16), (13, 2_048)] {
        let steps = times(12_000);
        let ledger = Ledger::with_capacity(PRODUCERS * steps);
        produce(open(wheel_size), &ledger, (seed, steps, usize::MAX), |advancer| {
            let pending = ledger.pending();
            assert_eq!(advancer.scheduler().len(), pending);
            hand_back(advancer);
            assert_eq!(ledger.count(End::HandedBack), pending);
        });
        ledger.check_all_ended();
    }
}

/// Timers are set a few ticks ahead, or behind, while the clock goes tick by tick: each fires at its
/// deadline, or where that was passed while it was being set, in the advance after the one then under way.
#[test]
fn nothing_is_late() {
    for wheel_size in [2, 8, 256] {
        let steps = times(10_000);
        let ledger = Ledger::with_capacity(PRODUCERS * steps);
        let (scheduler, mut advancer) = open(wheel_size);
        let work = |seed| {
            let mut rng = Rng::with_seed(seed as u64);
            (0..steps).for_each(|_| set_soon(&scheduler, &ledger, rng.u64(..20)));
        };
        let mut now = 0;
        let mut tick = || {
            now += 1;
            take(&mut advancer, now, usize::MAX);
        };
        at_work(PRODUCERS, work, &mut tick);
        (0..20).for_each(|_| tick());
        ledger.check_all_ended();
        assert!(ledger.all_on_time(), "a timer was late, in a wheel of {wheel_size}");
    }
}

/// Schedules for about `ahead` ticks from now and notes by when that must have fired: the clock that is read
/// afterwards may be one behind the advance under way, and that one may have begun too early to see it.
fn set_soon(scheduler: &Scheduler<Payload>, ledger: &Ledger, ahead: Tick) {
    let deadline = (scheduler.now() + ahead).saturating_sub(2);
    let payload = ledger.payload_due(deadline);
    let id = payload.id();
    scheduler.schedule(deadline, payload).expect("open");
    ledger.must_fire_by(id, deadline.max(scheduler.now() + 2));
}
