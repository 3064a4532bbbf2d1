//! The end of the advancer while producers work.

use shardwheel::Advancer;

use super::producers::produce;
use super::work::{PRODUCERS, hand_back, open, times};
use crate::support::ledger::{End, Ledger, Payload};

/// Ends the shard while producers work: from then on each schedule returns an error and the
/// payload, and no accepted timer is left, although a scheduler is alive.
fn ends_at_work(seed: u64, end: impl Fn(Advancer<Payload>), check: impl Fn(&Ledger)) {
    for seed in seed..seed + 8 {
        let steps = times(4_000);
        let ledger = Ledger::with_capacity(PRODUCERS * steps + 1);
        let (scheduler, advancer) = open(64);
        produce((scheduler.clone(), advancer), &ledger, (seed, steps, PRODUCERS * steps / 2), |advancer| {
            end(advancer);
            let refused = scheduler.schedule(1, ledger.payload_due(1)).expect_err("the shard has ended");
            refused.into_payload().end(End::Refused);
        });
        assert_eq!(scheduler.len(), 0);
        check(&ledger);
    }
}

/// The advancer is dropped while producers work: it drops each pending payload once.
#[test]
fn a_dropped_advancer_drops_each_payload_once_under_producers() {
    ends_at_work(20, drop, Ledger::check);
}

/// What is pending is handed back while producers work: every accepted timer, and none twice.
#[test]
fn into_pending_returns_each_payload_once_under_producers() {
    ends_at_work(30, hand_back, Ledger::check_all_ended);
}
