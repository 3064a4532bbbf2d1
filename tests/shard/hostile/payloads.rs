//! Payloads whose drops panic: the payloads beside them are dropped, handed back and counted.

use std::panic::{AssertUnwindSafe, catch_unwind};

use shardwheel::{Advancer, Config, Scheduler, shard};

use crate::support::{Bomb, Count, Dropped, survives};

/// Counts its drops, and panics if it holds a bomb.
type Payload = (Dropped, Option<Bomb>);

/// Ten timers; `bombs` of their payloads panic when they are dropped.
fn ten(bombs: usize) -> (Scheduler<Payload>, Advancer<Payload>, Count) {
    let (scheduler, advancer) = shard(&Config::default());
    let dropped = Count::default();
    for i in 0..10 {
        let bomb = (2..2 + bombs).contains(&i).then(|| Bomb);
        scheduler.schedule(1_000 + i as u64, (Dropped(dropped.clone()), bomb)).expect("the shard is open");
    }
    (scheduler, advancer, dropped)
}

/// Ends a shard by `end`: all payloads have been dropped when it returns, and the first panic
/// reaches the caller.
fn ends_whole(bombs: usize, end: impl FnOnce(Advancer<Payload>)) {
    let (scheduler, advancer, dropped) = ten(bombs);
    assert!(catch_unwind(AssertUnwindSafe(|| end(advancer))).is_err());
    assert_eq!((dropped.get(), scheduler.len()), (10, 0), "of {bombs} bombs");
    drop(scheduler);
    assert_eq!(dropped.get(), 10);
}

/// One payload's drop panics when the advancer is dropped. Promise 8.
#[test]
fn a_dropped_advancer_drops_all_payloads_if_one_panics() {
    ends_whole(1, drop);
}

/// One payload's drop panics when the iterator over what is pending is dropped, at once or after
/// its first item. Promise 8.
#[test]
fn a_dropped_into_pending_drops_all_payloads_if_one_panics() {
    ends_whole(1, |advancer| drop(advancer.into_pending()));
    ends_whole(1, |advancer| {
        let mut pending = advancer.into_pending();
        drop(pending.next());
        drop(pending);
    });
}

/// The drops of several payloads panic when the advancer is dropped: the process does not abort.
/// Promises 7 and 8.
#[test]
fn a_dropped_advancer_drops_all_payloads_if_several_panic() {
    survives(|| [2, 5].into_iter().for_each(|bombs| ends_whole(bombs, drop)));
}

/// The drops of several payloads panic when the iterator over what is pending is dropped: the
/// process does not abort. Promises 7 and 8.
#[test]
fn a_dropped_into_pending_drops_all_payloads_if_several_panic() {
    survives(|| {
        for bombs in [2, 5] {
            ends_whole(bombs, |advancer| drop(advancer.into_pending()));
        }
    });
}

/// The caller's loop over what is pending panics, and the payloads' drops panic during the
/// unwinding: the process does not abort. Promises 7 and 8.
#[test]
fn payloads_may_panic_while_the_loop_over_pending_unwinds() {
    survives(|| {
        ends_whole(2, |advancer| {
            let _pending = advancer.into_pending();
            panic!("the loop panics");
        });
    });
}
