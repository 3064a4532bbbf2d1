//! Conservation: each timer has one outcome, and none is late.

use fastrand::Rng;
use shardwheel::{Scheduler, Tick};

use super::producers::produce;
use super::work::{PRODUCERS, at_work, hand_back, open, take, times};
use crate::support::ledger::{End, Ledger, Payload};

/// Each timer has fired, was cancelled, or fires in a last advance to the end of time; or it is handed
/// back at the end. The count is right when the producers have stopped.
#[test]
fn each_timer_has_fired_or_was_cancelled_or_is_handed_back() {
    for (seed, wheel_size, hands_back) in
        [(1, 2, false), (2, 16, false), (3, 2_048, false), (11, 2, true), (12, 16, true), (13, 2_048, true)]
    {
        let steps = times(12_000);
        let ledger = Ledger::with_capacity(PRODUCERS * steps);
        produce(open(wheel_size), &ledger, (seed, steps, usize::MAX), |mut advancer| {
            let pending = ledger.pending();
            assert_eq!(advancer.scheduler().len(), pending);
            if hands_back {
                hand_back(advancer);
                assert_eq!(ledger.count(End::HandedBack), pending);
                return;
            }
            take(&mut advancer, Tick::MAX, usize::MAX);
            assert_eq!(advancer.scheduler().len(), 0);
            let stats = advancer.scheduler().stats();
            assert_eq!(stats.fired, ledger.count(End::Fired) as u64);
            assert_eq!(stats.scheduled, stats.fired + stats.cancelled);
        });
        ledger.check_all_ended();
    }
}

/// Producers set timers a few ticks ahead, or behind, while the clock moves tick by tick. Each
/// timer fires at its deadline; if the clock passed the deadline while the timer was being set, it
/// fires in the advance after the current one.
#[test]
fn no_timer_is_late_under_producers() {
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

/// Schedules about `ahead` ticks from now, and notes by when the timer must have fired. The clock
/// that is read afterwards may be one tick behind the current advance, and that advance may have
/// begun too early to see the timer.
fn set_soon(scheduler: &Scheduler<Payload>, ledger: &Ledger, ahead: Tick) {
    let deadline = (scheduler.now() + ahead).saturating_sub(2);
    let payload = ledger.payload_due(deadline);
    let id = payload.id();
    scheduler.schedule(deadline, payload).expect("the shard is open");
    ledger.must_fire_by(id, deadline.max(scheduler.now() + 2));
}
