//! Panics of the caller's loop and of payloads' drops.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::panics;

use super::{Counted, halves};

/// A panic in the loop over due timers loses only the timer that the loop has taken: the rest fires
/// at the next advance. Promise 7.
#[test]
fn a_panic_in_the_loop_loses_only_the_taken_timer() {
    let drops = AtomicUsize::new(0);
    let (scheduler, mut advancer) = halves();
    for deadline in [3, 3, 4, 5, 900] {
        scheduler.schedule(deadline, Counted::new(&drops)).expect("the shard is open");
    }
    for lost in 1..=2 {
        panics(|| {
            let _in_hand = advancer.advance(6).next().expect("three and more are due");
            panic!("the loop panics on purpose");
        });
        assert_eq!((drops.load(Ordering::Relaxed), scheduler.len()), (lost, 5 - lost));
    }
    assert_eq!(advancer.advance(6).map(|fired| fired.deadline).collect::<Vec<_>>(), [4, 5]);
    assert_eq!(advancer.advance(900).count(), 1);
    assert_eq!(drops.load(Ordering::Relaxed), 5);
}

/// A payload's drop panics after a cancel or an advance has returned it: the shard works on.
/// Promise 7.
#[test]
fn a_payload_whose_drop_panics_leaves_the_shard_usable() {
    let drops = AtomicUsize::new(0);
    let bomb = || Counted { drops: &drops, panics: true };
    let (scheduler, mut advancer) = halves();
    let keys = [3, 4, 5].map(|deadline| scheduler.schedule(deadline, bomb()).expect("the shard is open"));
    panics(|| drop(scheduler.cancel(keys[1])));
    panics(|| advancer.advance(9).for_each(drop));
    assert_eq!((drops.load(Ordering::Relaxed), scheduler.len()), (2, 1));
    scheduler.schedule(9, Counted::new(&drops)).expect("the shard is open");
    panics(|| advancer.advance(9).for_each(drop));
    assert!(advancer.advance(9).count() <= 1, "the last may have come before the panic");
    assert_eq!((drops.load(Ordering::Relaxed), scheduler.len()), (4, 0));
}
