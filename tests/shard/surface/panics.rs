//! Panics of the caller's loop and of payloads' drops.

use std::sync::atomic::{AtomicUsize, Ordering};

use shardwheel::{Advancer, Scheduler};

use crate::support::panics;

use super::{Counted, halves};

/// A panic in the loop that takes what is due loses the item in hand only: the rest comes at the next
/// advance. Promise 7.
#[test]
fn a_panic_in_the_loop_loses_the_item_in_hand() {
    let drops = AtomicUsize::new(0);
    let (scheduler, mut advancer) = halves();
    for deadline in [3, 3, 4, 5, 900] {
        scheduler.schedule(deadline, Counted::new(&drops)).expect("open");
    }
    for lost in 1..=2 {
        panics(|| {
            let _in_hand = advancer.advance(6).next().expect("three and more are due");
            panic!("the loop panics, as the test wants it to");
        });
        assert_eq!((drops.load(Ordering::Relaxed), scheduler.len()), (lost, 5 - lost));
    }
    assert_eq!(advancer.advance(6).map(|fired| fired.deadline).collect::<Vec<_>>(), [4, 5]);
    assert_eq!(advancer.advance(900).count(), 1);
    assert_eq!(drops.load(Ordering::Relaxed), 5);
}

/// A payload whose drop panics, dropped by whoever got it from a cancel or from an advance: the shard goes
/// on. Promise 7.
#[test]
fn a_panicking_drop_leaves_the_shard_whole() {
    let drops = AtomicUsize::new(0);
    let bomb = || Counted { drops: &drops, panics: true };
    let (scheduler, mut advancer) = halves();
    let keys = [3, 4, 5].map(|deadline| scheduler.schedule(deadline, bomb()).expect("open"));
    panics(|| drop(scheduler.cancel(keys[1])));
    panics(|| advancer.advance(9).for_each(drop));
    assert_eq!((drops.load(Ordering::Relaxed), scheduler.len()), (2, 1));
    scheduler.schedule(9, Counted::new(&drops)).expect("open");
    panics(|| advancer.advance(9).for_each(drop));
    assert!(advancer.advance(9).count() <= 1, "the last may have come before the panic");
    assert_eq!((drops.load(Ordering::Relaxed), scheduler.len()), (4, 0));
}

/// Ten timers on several levels, of which the fourth's drop panics.
fn ten_with_a_bomb<'a>(drops: &'a AtomicUsize) -> (Scheduler<Counted<'a>>, Advancer<Counted<'a>>) {
    let (scheduler, advancer) = halves();
    for i in 0..10_u32 {
        scheduler.schedule(1 << (4 * i), Counted { drops, panics: i == 3 }).expect("open");
    }
    (scheduler, advancer)
}

/// The advancer is dropped with a payload whose drop panics: all the others are dropped none the less, each
/// once. Promise 8.
#[test]
fn a_panicking_drop_at_the_end_loses_no_other() {
    let drops = AtomicUsize::new(0);
    let (scheduler, advancer) = ten_with_a_bomb(&drops);
    panics(move || drop((advancer, scheduler)));
    assert_eq!(drops.load(Ordering::Relaxed), 10);
}

/// The same for what was to be handed back and is not taken. Promise 8.
#[test]
fn a_panicking_drop_among_what_is_handed_back() {
    let drops = AtomicUsize::new(0);
    let (scheduler, advancer) = ten_with_a_bomb(&drops);
    panics(move || {
        let _scheduler = scheduler;
        drop(advancer.into_pending());
    });
    assert_eq!(drops.load(Ordering::Relaxed), 10);
}
