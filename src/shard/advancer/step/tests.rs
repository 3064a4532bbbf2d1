//! How the clock moves over buckets, on one thread.

use crate::shard::support::{cancel, schedule, small};
use crate::tick::Tick;

/// A timer a whole revolution of the private wheel ahead is in the bucket where the clock's bucket
/// was, and stays there.
#[test]
fn the_bucket_of_the_clock_is_past() {
    let (scheduler, mut advancer) = small();
    drop(advancer.advance(1));
    let key = scheduler.schedule(2, 0).expect("open");
    let ahead = advancer.shared.geometry.private_wheel_size() as Tick;
    assert_eq!(scheduler.reschedule(key, 1 + ahead), Some(key), "put off where it stands");
    for now in 2..=ahead {
        assert_eq!(advancer.advance(now).count(), 0);
        assert_eq!(
            (scheduler.stats().cascaded, advancer.next_expiration()),
            (1, Some(1 + ahead)),
            "at {now}"
        );
    }
    assert_eq!(advancer.advance(1 + ahead).count(), 1);
}

/// A coarse wheel is also idle while the clock passes one empty bucket of it after another.
#[test]
fn empty_buckets_that_are_passed_are_not_use() {
    let (scheduler, mut advancer) = small();
    let far = schedule(&scheduler, 40, 1);
    assert_eq!(scheduler.stats().wheels, 2);
    cancel(&scheduler, &far);
    for now in 1..100_000 {
        // As often as one of its buckets expires; the timer itself is in no overflow wheel.
        if now % 16 == 15 {
            schedule(&scheduler, now + 1, 1);
        }
        assert_eq!(advancer.advance(now).count(), usize::from(now % 16 == 0));
    }
    assert_eq!(scheduler.stats().wheels, 1);
}
