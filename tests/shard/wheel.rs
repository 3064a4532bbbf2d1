//! Wheel and lists: cases from Kafka's timing wheel and its lists of tasks.
//!
//! Kafka's wheel has five buckets of 10 ms and starts at 1000 ms. Here the number of buckets is a
//! power of two: these wheels have eight, so a case past the wheel's end is past 1080 ms where
//! Kafka's is past 1050 ms.

use std::time::Duration;

use shardwheel::{Advancer, Config, Scheduler, Tick, shard};

use crate::rig::{Rig, drain};

/// The wheel of these cases, with conversions from milliseconds to ticks.
struct Kafka {
    config: Config,
    scheduler: Scheduler<u64>,
    advancer: Advancer<u64>,
}

impl Kafka {
    fn new() -> Self {
        let builder = Config::builder().tick(Duration::from_millis(10)).wheel_size(8).start(100);
        let config = builder.build().expect("settings within their limits");
        let (scheduler, advancer) = shard(&config);
        Self { config, scheduler, advancer }
    }

    /// The deadline of a timer that is due at `millis`, rounded up to a tick.
    fn deadline(&self, millis: u64) -> Tick {
        self.config.ticks_ceil(Duration::from_millis(millis))
    }

    /// Advances to the last tick that has begun at `millis`, and returns what fires.
    fn at(&mut self, millis: u64) -> Vec<u64> {
        let now = self.config.ticks_floor(Duration::from_millis(millis));
        drain(&mut self.advancer, now).into_iter().map(|(_, payload)| payload).collect()
    }

    fn set(&self, millis: u64) {
        self.scheduler.schedule(self.deadline(millis), millis).expect("the shard is open and has no bound");
    }
}

fn sorted(mut payloads: Vec<u64>) -> Vec<u64> {
    payloads.sort_unstable();
    payloads
}

/// A deadline ahead of the clock is accepted and counted, and fires at its tick. Promise 1.
#[test]
fn a_deadline_ahead_is_counted_and_fires() {
    let mut wheel = Kafka::new();
    wheel.set(1020);
    assert_eq!(wheel.scheduler.len(), 1);
    assert_eq!(wheel.at(1019), []);
    assert_eq!(wheel.at(1020), [1020]);
    assert_eq!(wheel.scheduler.len(), 0);
}

/// A deadline before the clock is due at the next advance, even if that does not move the clock.
/// (Kafka's wheel refuses it and leaves it to the caller.) Promise 4.
#[test]
fn a_past_deadline_is_due_at_once() {
    let mut wheel = Kafka::new();
    wheel.set(999);
    wheel.set(900);
    assert_eq!(wheel.scheduler.len(), 2, "due, but not yet taken");
    assert_eq!(sorted(wheel.at(1000)), [900, 999]);
    assert_eq!(wheel.scheduler.len(), 0);
}

/// A timer that is cancelled before the wheel has placed it never fires, whether its deadline is
/// ahead of the clock or behind. Promise 2.
#[test]
fn a_timer_cancelled_at_once_never_fires() {
    let mut rig = Rig::new(8, 100);
    for deadline in [0, 99, 100, 101, 150, 10_000] {
        let key = rig.set(deadline);
        assert_eq!(rig.scheduler.cancel(key), Some(deadline));
        assert_eq!(rig.scheduler.len(), 0);
    }
    assert_eq!(rig.at(20_000), []);
}

/// The clock moves in whole ticks: half a tick does not move it. Promise 1.
#[test]
fn the_clock_moves_in_whole_ticks() {
    let mut wheel = Kafka::new();
    wheel.set(1010);
    assert_eq!(wheel.at(1005), []);
    assert_eq!(wheel.scheduler.now(), 100);
    assert_eq!(wheel.at(1010), [1010]);
    assert_eq!(wheel.scheduler.now(), 101);
}

/// Timers beyond the wheel's end go to a coarser wheel, which the first of them creates. All of
/// them, and one timer within the wheel, fire when they are due. (Kafka fires cascaded timers up to
/// one tick early.)
#[test]
fn timers_beyond_the_wheel_fire_on_time() {
    let mut wheel = Kafka::new();
    for millis in [1060, 1061, 1080, 1081, 1090] {
        wheel.set(millis);
    }
    assert_eq!(wheel.at(1059), []);
    assert_eq!(wheel.at(1060), [1060]);
    assert_eq!(wheel.at(1069), []);
    assert_eq!(wheel.at(1070), [1061], "rounded up to a whole tick");
    assert_eq!(wheel.at(1080), [1080]);
    assert_eq!(wheel.at(1089), []);
    assert_eq!(sorted(wheel.at(1090)), [1081, 1090]);
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

/// Five timers whose deadlines are one to five ticks past fire at the next advance, although the
/// clock stands still. Promise 4.
#[test]
fn past_deadlines_fire_at_the_next_advance() {
    let mut rig = Rig::new(8, 100);
    rig.set_all(&[99, 95, 98, 97, 96]);
    assert_eq!(sorted(rig.at(100)), [95, 96, 97, 98, 99]);
    assert_eq!(rig.at(100), []);
}

/// The same before the clock has moved, with the earliest deadline there is. Promise 4.
#[test]
fn deadlines_at_the_clock_fire_at_the_next_advance() {
    let mut rig = Rig::new(8, 0);
    rig.set_all(&[0, 0, 0, 0, 0]);
    assert_eq!(rig.at(0), [0; 5]);
    assert_eq!(rig.scheduler.len(), 0);
}
