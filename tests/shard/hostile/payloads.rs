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

/// How a shard ends.
type End = fn(Advancer<Payload>);

const ENDS: [(&str, End); 3] = [
    ("the advancer is dropped", drop),
    ("into_pending is dropped", |advancer| drop(advancer.into_pending())),
    ("into_pending is dropped after its first item", |advancer| {
        let mut pending = advancer.into_pending();
        drop(pending.next());
        drop(pending);
    }),
];

/// One payload's drop panics when the advancer, or the iterator over what is pending, is dropped.
/// Promise 8.
#[test]
fn an_end_drops_all_payloads_if_one_panics() {
    for (name, end) in ENDS {
        println!("{name}");
        ends_whole(1, end);
    }
}

/// The drops of several payloads panic: the process does not abort, also where the caller's loop over
/// what is pending panics first. Promises 7 and 8.
#[test]
fn an_end_drops_all_payloads_if_several_panic() {
    survives(|| {
        for (name, end) in ENDS.into_iter().take(2) {
            println!("{name}");
            [2, 5].into_iter().for_each(|bombs| ends_whole(bombs, end));
        }
        ends_whole(2, |advancer| {
            let _pending = advancer.into_pending();
            panic!("the loop panics");
        });
    });
}
