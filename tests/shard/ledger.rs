//! The ledger itself: it notices what it is meant to notice.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::support::ledger::{End, Ledger};

fn fails(check: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(check)).is_err()
}

/// More payloads than the first chunks of entries hold, each with one end and one drop.
#[test]
fn a_ledger_accepts_one_outcome_each() {
    let ledger = Ledger::default();
    for tick in 0..10_000 {
        let payload = ledger.payload_due(tick);
        if tick % 2 == 0 { payload.fire_at(tick) } else { payload.end(End::Cancelled) }
    }
    ledger.check_exact();
    assert_eq!((ledger.count(End::Fired), ledger.count(End::Cancelled)), (5_000, 5_000));
    assert_eq!((ledger.living(), ledger.dropped_without_an_end()), (0, Some(0)));
}

/// Two ends, no drop, no end, and an end that is early or late.
#[test]
fn a_ledger_notices_what_is_wrong() {
    let ledger = Ledger::default();
    let payload = ledger.payload();
    payload.note(End::Cancelled);
    payload.end(End::Fired);
    assert!(fails(|| ledger.check()));
    assert_eq!(ledger.dropped_without_an_end(), None);

    let ledger = Ledger::with_capacity(1);
    let payload = ledger.payload();
    payload.note(End::Fired);
    assert!(fails(|| ledger.check()));
    drop(payload);
    ledger.check_all_ended();

    drop(ledger.payload());
    ledger.check();
    assert!(fails(|| ledger.check_all_ended()));
    assert_eq!(ledger.dropped_without_an_end(), Some(1));

    for (fires_at, check) in [(9, Ledger::check as fn(&Ledger)), (11, Ledger::check_exact)] {
        let ledger = Ledger::default();
        let payload = ledger.payload_due(10);
        ledger.must_fire_by(payload.id(), 10);
        payload.fire_at(fires_at);
        assert!(fails(|| check(&ledger)), "fired at {fires_at}");
        assert_eq!(ledger.all_on_time(), fires_at <= 10);
    }
}
