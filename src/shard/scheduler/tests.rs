//! What a producer does besides the counting and linking that the tests of whole shards check.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::sync::Ordering;
use crate::{Config, shard};

/// A producer that finds the shard closed after its insert takes the timer out again, unless the
/// timer has been handed over.
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

/// When it is dropped, notes whether its thread is in a call that uses the thread's own lane.
struct Probe {
    scheduler: Option<Scheduler<Self>>,
    in_call: Arc<AtomicBool>,
}

impl Drop for Probe {
    fn drop(&mut self) {
        if let Some(scheduler) = self.scheduler.take() {
            let has_own = scheduler.shared.lanes.enter().parts().0.is_own;
            // Ordering: Relaxed, there is one thread.
            self.in_call.store(!has_own, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_payload_that_comes_too_late_is_dropped_out_of_the_lane() {
    let (scheduler, mut advancer) = shard::<Probe>(&Config::default());
    let in_call = Arc::new(AtomicBool::new(false));
    let probe = |scheduler| Probe { scheduler, in_call: Arc::clone(&in_call) };
    let Ok(key) = scheduler.schedule(1, probe(None)) else { panic!("it is open") };
    assert_eq!(advancer.advance(1).count(), 1);
    let exchanged = scheduler.exchange(key, probe(Some(scheduler.clone())), |slot| drop(slot.read()));
    assert_eq!(exchanged, Exchanged::Gone);
    // Ordering: Relaxed, as above.
    assert!(!in_call.load(Ordering::Relaxed));
}
