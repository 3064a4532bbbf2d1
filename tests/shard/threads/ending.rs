//! The end of the advancer, while producers are at work.

use shardwheel::Advancer;

use super::producers::produce;
use super::work::{PRODUCERS, times};
use crate::support::ledger::{End, Ledger, Payload};

use super::ends::{hand_back, open};

/// The shard ends while producers are at work: from then on each schedule is an error that hands the payload
/// back, and nothing that was accepted is left behind, though a scheduler lives on.
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

/// The advancer is dropped while producers are at work: what it had is dropped, once.
#[test]
fn the_advancer_is_dropped_while_producers_are_at_work() {
    ends_at_work(20, drop, Ledger::check);
}

/// What is pending is handed back while producers are at work: all that was accepted, and nothing twice.
#[test]
fn the_rest_is_handed_back_while_producers_are_at_work() {
    ends_at_work(30, hand_back, Ledger::check_all_ended);
}
