//! Payloads whose drops panic: the payloads beside them are dropped, handed back and counted.

use std::panic::{AssertUnwindSafe, catch_unwind};

use shardwheel::{Advancer, Config, Scheduler, shard};

use crate::support::{Bomb, Count, Dropped, survives};

/// Counts its drops, some of which panic.
type Payload = (Dropped, Option<Bomb>);

/// Ten timers, so many of which panic when they are dropped.
fn ten(bombs: usize) -> (Scheduler<Payload>, Advancer<Payload>, Count) {
    let (scheduler, advancer) = shard(&Config::default());
    let dropped = Count::default();
    for i in 0..10 {
        let bomb = (2..2 + bombs).contains(&i).then(|| Bomb);
        scheduler.schedule(1_000 + i as u64, (Dropped(dropped.clone()), bomb)).expect("it is open");
    }
    (scheduler, advancer, dropped)
}

/// The end of a shard by `end`: all payloads are dropped by the time it returns; the first panic
/// comes out.
fn ends_whole(bombs: usize, end: impl FnOnce(Advancer<Payload>)) {
    let (scheduler, advancer, dropped) = ten(bombs);
    assert!(catch_unwind(AssertUnwindSafe(|| end(advancer))).is_err());
    assert_eq!((dropped.get(), scheduler.len()), (10, 0), "of {bombs} bombs");
    drop(scheduler);
    assert_eq!(dropped.get(), 10);
}

/// Promise 8.
#[test]
fn item_10_a_panicking_payload_in_a_dropped_advancer() {
    ends_whole(1, drop);
}

/// Promise 8.
#[test]
fn item_10_a_panicking_payload_in_a_dropped_into_pending() {
    ends_whole(1, |advancer| drop(advancer.into_pending()));
    ends_whole(1, |advancer| {
        let mut pending = advancer.into_pending();
        drop(pending.next());
        drop(pending);
    });
}

/// Promises 7 and 8.
#[test]
fn read_panicking_payloads_in_a_dropped_advancer() {
    survives(|| [2, 5].into_iter().for_each(|bombs| ends_whole(bombs, drop)));
}

/// Promises 7 and 8.
#[test]
fn read_panicking_payloads_in_a_dropped_into_pending() {
    survives(|| {
        for bombs in [2, 5] {
            ends_whole(bombs, |advancer| drop(advancer.into_pending()));
        }
    });
}

/// A payload that is left to the caller, whose loop panics meanwhile. Promises 7 and 8.
#[test]
fn read_panicking_payloads_while_the_loop_over_pending_unwinds() {
    survives(|| {
        ends_whole(2, |advancer| {
            let _pending = advancer.into_pending();
            panic!("the loop panics");
        });
    });
}
