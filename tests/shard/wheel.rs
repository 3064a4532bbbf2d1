//! Counts, and deadlines that have passed: cases from Kafka's timing wheel and its lists of tasks.

use shardwheel::{Config, shard};

use crate::rig::Rig;

fn sorted(mut payloads: Vec<u64>) -> Vec<u64> {
    payloads.sort_unstable();
    payloads
}

/// The advancer finds a far-postponed timer in the bucket of its former deadline, and places it by
/// its new deadline. Nothing is to be done before the overflow bucket of the new deadline. Promise
/// 9.
#[test]
fn a_postponed_timer_is_moved_once_on_its_way() {
    let config = Config::builder().wheel_size(16).build().expect("a power of two");
    let (scheduler, mut advancer) = shard(&config);
    let key = scheduler.schedule(40, ()).expect("the shard is open");
    assert_eq!(scheduler.reschedule(key, 5040), Some(key));
    assert_eq!(advancer.advance(32).count(), 0);
    assert_eq!(advancer.next_expiration(), Some(4864), "its bucket of the second overflow wheel");
    #[cfg(debug_assertions)]
    advancer.check_invariants();
    assert_eq!(advancer.advance(5039).count(), 0);
    assert_eq!(advancer.advance(5040).count(), 1);
}

/// Moving a timer from bucket to bucket, by a cascade or by rescheduling, leaves the count
/// unchanged. Promise 2.
#[test]
fn moving_a_timer_leaves_the_count() {
    let mut rig = Rig::new(8, 0);
    let key = rig.set(4_000);
    for now in 0..3_999 {
        assert_eq!(rig.at(now), []);
        assert_eq!(rig.scheduler.len(), 1, "at {now}");
    }
    let later = rig.scheduler.reschedule(key, 9_000).expect("the timer is still pending");
    assert_eq!(rig.scheduler.len(), 1);
    rig.scheduler.reschedule(later, 4_001).expect("the timer is still pending");
    assert_eq!((rig.scheduler.len(), rig.scheduler.is_empty()), (1, false));
}

/// A cancel lowers the count by one; a second cancel does not lower it. Promise 2.
#[test]
fn cancelling_lowers_the_count_once() {
    let rig = Rig::new(8, 0);
    let keys = rig.set_all(&[5, 50, 500]);
    for (left, key) in [2, 1, 0].into_iter().zip(keys) {
        assert!(rig.scheduler.cancel(key).is_some());
        assert_eq!(rig.scheduler.len(), left);
        assert!(rig.scheduler.cancel(key).is_none());
        assert_eq!((rig.scheduler.len(), rig.scheduler.stats().pending), (left, left));
    }
    assert!(rig.scheduler.is_empty());
}

/// Timers whose deadlines are one to five ticks past, or are the clock's tick, fire at the next
/// advance, although the clock stands still; also before the clock has moved. (Kafka's wheel refuses
/// them.) Promise 4.
#[test]
fn past_deadlines_fire_at_the_next_advance() {
    for (clock, past) in [(100, [95, 96, 97, 98, 99]), (100, [100; 5]), (0, [0; 5])] {
        let mut rig = Rig::new(8, clock);
        rig.set_all(&past);
        assert_eq!(rig.scheduler.len(), 5, "due, but not yet taken");
        assert_eq!(sorted(rig.at(clock)), past);
        assert_eq!((rig.at(clock), rig.scheduler.len()), (vec![], 0));
    }
}
