//! Limits, refusals and returned payloads: cases from Netty's hashed wheel timer.

use shardwheel::{Advancer, Config, ScheduleErrorKind, Scheduler, shard};

use crate::rig::drain;

/// A shard of strings that holds at most two timers.
fn two_at_most() -> (Scheduler<&'static str>, Advancer<&'static str>) {
    shard(&Config::builder().wheel_size(8).max_pending(2).build().expect("settings within their limits"))
}

/// With a limit of two the third timer is refused and its payload comes back; the error names the
/// limit, and the shard is unchanged. A cancel makes room, and so does a timer that was taken, but not
/// one that is only due; a reschedule needs none. Promises 5 and 8.
#[test]
fn a_timer_beyond_the_limit_is_refused_with_its_payload() {
    let (scheduler, mut advancer) = two_at_most();
    let first = scheduler.schedule(10, "first").expect("room for two");
    scheduler.schedule(1_000, "second").expect("room for two");
    let refused = scheduler.schedule(10, "third").expect_err("no room for three");
    assert_eq!(refused.kind(), ScheduleErrorKind::Full { limit: 2 });
    assert_eq!((refused.is_full(), refused.is_shut_down()), (true, false));
    assert!(refused.to_string().contains('2'), "{refused}");
    assert_eq!(refused.into_payload(), "third");
    let refused = scheduler.schedule_within(10..=20, "third").expect_err("no room for three");
    assert_eq!((refused.is_full(), refused.into_payload()), (true, "third"));
    assert_eq!(scheduler.len(), 2);

    let first = scheduler.reschedule(first, 20).expect("the timer is pending");
    assert_eq!((scheduler.cancel(first), scheduler.cancel(first)), (Some("first"), None));
    scheduler.schedule(30, "fourth").expect("one was cancelled");
    assert!(scheduler.schedule(30, "fifth").is_err());
    drop(advancer.advance(30));
    assert!(scheduler.schedule(30, "fifth").is_err(), "it was not taken");
    assert_eq!(drain(&mut advancer, 30), [(30, "fourth")]);
    scheduler.schedule(40, "sixth").expect("one was taken");
    assert!(scheduler.schedule(40, "seventh").is_err());
}
