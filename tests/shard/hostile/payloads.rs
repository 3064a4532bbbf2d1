//! Payloads whose drops panic: the payloads beside them are dropped, handed back and counted.

use std::panic::{AssertUnwindSafe, catch_unwind};

use shardwheel::{Advancer, Config, Scheduler, Tick, shard};

use crate::support::{Bomb, Count, Dropped, survives};

/// Counts its drops, and panics if it holds a bomb.
type Payload = (Dropped, Option<Bomb>);

/// Ten timers, of which one was due and was not taken; `bombs` of their payloads panic when they are
/// dropped.
fn ten(bombs: usize) -> (Scheduler<Payload>, Advancer<Payload>, Count) {
    let (scheduler, mut advancer) = shard(&Config::default());
    let dropped = Count::default();
    let deadlines = [0, 1, 2, 3, 50, 3_000, 4_000_000, 4_000_000, 1 << 40, Tick::MAX];
    for (i, deadline) in deadlines.into_iter().enumerate() {
        let bomb = (2..2 + bombs).contains(&i).then(|| Bomb);
        scheduler.schedule(deadline, (Dropped(dropped.clone()), bomb)).expect("the shard is open");
    }
    drop(advancer.advance(0));
    (scheduler, advancer, dropped)
}

/// Ends a shard by `end`: all payloads have been dropped when it returns, although a scheduler is
/// alive, and the first panic reaches the caller.
fn ends_whole(bombs: usize, panics: bool, end: impl FnOnce(Advancer<Payload>)) {
    let (scheduler, advancer, dropped) = ten(bombs);
    assert_eq!(catch_unwind(AssertUnwindSafe(|| end(advancer))).is_err(), panics);
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

/// No payload's drop panics, one does, or several: the process does not abort, also where the caller's
/// loop over what is pending panics first. Promises 7 and 8.
#[test]
fn an_end_drops_all_payloads_if_several_panic() {
    survives(|| {
        for (number, (name, end)) in ENDS.into_iter().enumerate() {
            for bombs in [0, 1, 2, 5] {
                println!("{name}, {bombs} bombs");
                // The last one drops the first item by itself, and a panic there is not in an end.
                if number < 2 || bombs < 2 {
                    ends_whole(bombs, bombs > 0, end);
                }
            }
        }
        ends_whole(2, true, |advancer| {
            let _pending = advancer.into_pending();
            panic!("the loop panics");
        });
    });
}
