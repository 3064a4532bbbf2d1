//! Panics of payloads' drops, also in the caller's loop.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::panics;

use super::{Counted, halves};

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
