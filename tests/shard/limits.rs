//! Limits, refusals and returned payloads: cases from Netty's hashed wheel timer.

use std::sync::Arc;

use shardwheel::{Advancer, Config, ScheduleErrorKind, Scheduler, shard};

use crate::rig::{Rig, config, drain};

/// A shard of strings that holds at most two timers.
fn two_at_most() -> (Scheduler<&'static str>, Advancer<&'static str>) {
    shard(&Config::builder().wheel_size(8).max_pending(2).build().expect("settings within their limits"))
}

/// With a limit of two the third timer is refused and its payload comes back; the shard is
/// unchanged. Promises 5 and 8.
#[test]
fn a_timer_beyond_the_limit_is_refused_with_its_payload() {
    let (scheduler, _advancer) = two_at_most();
    scheduler.schedule(10, "first").expect("room for two");
    scheduler.schedule(1_000, "second").expect("room for two");
    let refused = scheduler.schedule(10, "third").expect_err("no room for three");
    assert_eq!(refused.kind(), ScheduleErrorKind::Full { limit: 2 });
    assert_eq!((refused.is_full(), refused.is_shut_down()), (true, false));
    assert_eq!(refused.into_payload(), "third");
    let refused = scheduler.schedule_within(10..=20, "third").expect_err("no room for three");
    assert_eq!((refused.is_full(), refused.into_payload()), (true, "third"));
    assert_eq!(scheduler.len(), 2);
}

/// A cancel makes room for one timer, every time. Promise 5.
#[test]
fn a_cancel_makes_room() {
    let (scheduler, _advancer) = two_at_most();
    let mut key = scheduler.schedule(10, "first").expect("room for two");
    scheduler.schedule(10, "second").expect("room for two");
    for _ in 0..10_000 {
        assert!(scheduler.schedule(10, "refused").is_err());
        assert_eq!(scheduler.cancel(key), Some("first"));
        assert_eq!(scheduler.cancel(key), None, "which makes no more room");
        key = scheduler.schedule(10, "first").expect("room was made");
    }
}

/// A timer that was taken makes room for the next; a timer that is due and was not taken does not.
/// Promise 5.
#[test]
fn a_taken_timer_makes_room() {
    let (scheduler, mut advancer) = two_at_most();
    for round in 1..=1_000 {
        scheduler.schedule(10 * round, "first").expect("room for two");
        scheduler.schedule(10 * round, "second").expect("room for two");
        drop(advancer.advance(10 * round));
        assert!(scheduler.schedule(10, "refused").is_err());
        assert!(advancer.advance(10 * round).next().is_some());
        scheduler.schedule(10 * round, "third").expect("one has been taken");
        assert_eq!(drain(&mut advancer, 10 * round).len(), 2);
    }
}

/// Rescheduling needs no room: it works in a full shard, to later and to earlier deadlines. Promise
/// 5.
#[test]
fn rescheduling_needs_no_room() {
    let (scheduler, mut advancer) = two_at_most();
    let key = scheduler.schedule(100, "first").expect("room for two");
    scheduler.schedule(100, "second").expect("room for two");
    let later = scheduler.reschedule(key, 200).expect("the timer is pending");
    let earlier = scheduler.reschedule(later, 50).expect("the timer is pending");
    assert!(scheduler.schedule(10, "refused").is_err());
    assert_eq!(drain(&mut advancer, 50), [(50, "first")]);
    assert_eq!(scheduler.cancel(earlier), None);
    assert_eq!(drain(&mut advancer, 300), [(100, "second")]);
}

/// Two timers a hundred minutes ahead and one 90 ms ahead: three are pending. The two are
/// cancelled, the third fires, and none is pending. Promise 2.
#[test]
fn the_pending_count_follows_cancels_and_fires() {
    let mut rig = Rig::new(512, 0);
    let far = rig.set_all(&[6_000_000, 6_000_000]);
    rig.set(90);
    assert_eq!((rig.scheduler.len(), rig.scheduler.stats().pending), (3, 3));
    assert!(far.into_iter().all(|key| rig.scheduler.cancel(key).is_some()));
    assert_eq!((rig.scheduler.len(), rig.scheduler.stats().pending), (1, 1));
    assert_eq!(rig.at(90), [90]);
    assert_eq!((rig.scheduler.len(), rig.scheduler.stats().pending), (0, 0));
    let stats = rig.scheduler.stats();
    assert_eq!((stats.scheduled, stats.fired, stats.cancelled), (3, 1, 2));
}

/// The canceller gets the payload at once: the shard keeps no share of it until the deadline.
/// Promises 2 and 5.
#[test]
fn cancel_returns_the_payload_at_once() {
    let (scheduler, mut advancer) = shard(&config(8, 0));
    let payload = Arc::new("held");
    for deadline in [0, 5, 1_000, u64::MAX] {
        let key = scheduler.schedule(deadline, Arc::clone(&payload)).expect("the shard is open");
        assert_eq!(Arc::strong_count(&payload), 2);
        drop(scheduler.cancel(key).expect("the timer is pending"));
        assert_eq!(Arc::strong_count(&payload), 1, "cancelled, {deadline} not yet reached");
    }
    assert_eq!(drain(&mut advancer, u64::MAX), []);
}

/// A fired timer's payload is the caller's alone, and rescheduling makes no second one. Promise 2.
#[test]
fn the_shard_keeps_no_second_payload() {
    let (scheduler, mut advancer) = shard(&config(8, 0));
    let payload = Arc::new("held");
    let mut key = scheduler.schedule(500, Arc::clone(&payload)).expect("the shard is open");
    for deadline in [900, 20, 21, 7] {
        key = scheduler.reschedule(key, deadline).expect("the timer is pending");
        assert_eq!(Arc::strong_count(&payload), 2);
    }
    drop(drain(&mut advancer, 1_000));
    assert_eq!(Arc::strong_count(&payload), 1);
}
