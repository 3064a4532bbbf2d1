//! What a producer does beside the counting and linking that the whole shard's tests see.

use crate::{Config, shard};

/// A producer that finds the shard closed when its timer is in takes it out again, unless it has been handed over.
#[test]
fn a_timer_that_is_taken_back_was_never_scheduled() {
    let config = Config::builder().max_pending(1).build().expect("in range");
    let (scheduler, mut advancer) = shard::<u32>(&config);
    for deadline in 1..=3 {
        let key = scheduler.schedule(deadline, 7).expect("there is room for one");
        let mut entered = scheduler.shared.lanes.enter();
        let (lane, local) = entered.parts();
        let taken = [(); 2].map(|()| scheduler.take_back(lane, local, key));
        drop(entered);
        assert_eq!((taken, scheduler.stats().scheduled, scheduler.len()), ([Some(7), None], 0, 0));
    }
    assert_eq!(advancer.advance(3).count(), 0);
}
