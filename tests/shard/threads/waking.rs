//! Sleeping and waking: no timer is earlier than both the alarm and the wake. A thread that sleeps in
//! between is in `tests/driven/run.rs`.

use std::thread;

use fastrand::Rng;
use shardwheel::{Config, Tick, shard};

use crate::support::Bell;

use super::work::{times, together};

/// A timer that is earlier than `next_expiration` wakes the advancer before `schedule` returns, and
/// so does a timer that is rescheduled to an earlier tick. A timer that is not earlier wakes
/// nothing.
#[test]
fn an_earlier_timer_wakes_before_schedule_returns() {
    let (scheduler, mut advancer) =
        shard::<Tick>(&Config::builder().start(1_000_000).build().expect("settings within their limits"));
    let key = scheduler.schedule(Tick::MAX, 0).expect("the shard is open");
    for (earlier, by_moving) in
        [(1 << 40, false), (1 << 30, true), (1 << 21, false), (1_000_001, true), (5, false)]
    {
        let bell = Bell::hung_in(&mut advancer);
        let answer = advancer.next_expiration().expect("a timer is pending");
        scheduler.schedule(answer.saturating_add(1), 0).expect("the shard is open");
        assert_eq!(bell.rings(), 0, "no earlier than {answer}");
        if by_moving {
            let far = scheduler.schedule(Tick::MAX, 0).expect("the shard is open");
            scheduler.reschedule(far, earlier).expect("the timer is pending");
        } else {
            scheduler.schedule(earlier, 0).expect("the shard is open");
        }
        assert!(bell.rings() > 0, "{earlier} is earlier than {answer}");
    }
    assert!(scheduler.cancel(key).is_some());
}

/// With nothing pending the answer is none, and any timer is earlier than that, also one for the last
/// tick.
#[test]
fn a_timer_wakes_an_empty_shard() {
    for deadline in [0, 1, 5_000, 1 << 40, Tick::MAX - 1, Tick::MAX] {
        let (scheduler, mut advancer) = shard(&Config::default());
        let bell = Bell::hung_in(&mut advancer);
        assert_eq!(advancer.next_expiration(), None);
        scheduler.schedule(deadline, ()).expect("the shard is open");
        assert!(bell.rings() > 0, "{deadline} is earlier than never");
    }
}

/// While the advancer registers its waker and asks for the next expiration, two threads schedule:
/// each of their timers is in the answer, or wakes the advancer.
#[test]
fn a_timer_is_in_the_answer_or_wakes() {
    let (scheduler, mut advancer) = shard(&Config::default());
    let mut rng = Rng::with_seed(70);
    for _ in 0..times(300) {
        let now = scheduler.now() + rng.u64(..5_000);
        advancer.advance(now).for_each(drop);
        let [left, right] = [(); 2].map(|()| now + 1 + (1 << rng.u32(..20)));
        let set = |deadline| scheduler.schedule(deadline, ()).map(drop).expect("the shard is open");
        let (answer, bell) = thread::scope(|scope| {
            scope.spawn(|| set(left));
            together(
                || set(right),
                || {
                    let bell = Bell::hung_in(&mut advancer);
                    (advancer.next_expiration(), bell)
                },
            )
        });
        let first = left.min(right);
        assert!(
            answer.is_some_and(|answer| answer <= first) || bell.rings() > 0,
            "{first} is not in {answer:?}"
        );
    }
}
