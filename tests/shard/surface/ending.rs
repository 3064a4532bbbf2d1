//! The end of one half, and of a shard.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shardwheel::{Scheduler, Tick};

use super::{Counted, halves};

/// The advancer outlives the schedulers, and fires the timers that they left.
#[test]
fn the_advancer_outlives_the_schedulers() {
    let (scheduler, mut advancer) = halves();
    scheduler.schedule(10, "left").expect("the shard is open");
    drop(scheduler);
    assert_eq!(advancer.advance(10).map(|fired| fired.payload).collect::<Vec<_>>(), ["left"]);
}

/// An advance that the caller forgets, which safe code may do, loses nothing: the timers that it
/// held are still due.
#[test]
fn a_forgotten_advance_loses_nothing() {
    let drops = AtomicUsize::new(0);
    let (scheduler, mut advancer) = halves();
    for deadline in [1, 2, 3, 4_000] {
        scheduler.schedule(deadline, Counted::new(&drops)).expect("the shard is open");
    }
    let mut expired = advancer.advance(3);
    assert!(expired.next().is_some());
    std::mem::forget(expired);
    assert_eq!(scheduler.len(), 3);
    assert_eq!(advancer.advance(3).map(|fired| fired.deadline).collect::<Vec<_>>(), [2, 3]);
    drop((scheduler, advancer));
    assert_eq!(drops.load(Ordering::Relaxed), 4);
}

/// A payload that holds a scheduler of its own shard, and uses it in its drop.
struct Inside {
    scheduler: Option<Scheduler<Inside>>,
    drops: Arc<AtomicUsize>,
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
        let Some(scheduler) = self.scheduler.take() else { return };
        let again = Inside { scheduler: None, drops: Arc::clone(&self.drops) };
        assert!(scheduler.schedule(1, again).is_err_and(|refused| refused.is_shut_down()));
    }
}

/// Payloads that hold a scheduler of their own shard do not keep the shard alive: they are dropped
/// with the advancer. A payload that schedules in its drop gets an error, not a deadlock. Promises
/// 7 and 8.
#[test]
fn payloads_that_hold_a_scheduler_do_not_keep_the_shard_alive() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (scheduler, advancer) = halves();
    for deadline in [1, 2_000, Tick::MAX] {
        let inside = Inside { scheduler: Some(scheduler.clone()), drops: Arc::clone(&drops) };
        scheduler.schedule(deadline, inside).expect("the shard is open");
    }
    drop((scheduler, advancer));
    assert_eq!(drops.load(Ordering::Relaxed), 6, "three, and the three that they tried to schedule");
    assert_eq!(Arc::strong_count(&drops), 1);
}
