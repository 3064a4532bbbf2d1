//! The far ends: cases from Akka, Caffeine, folly and ratas.

use std::ops::RangeInclusive;

use shardwheel::{Tick, shard};

use crate::rig::{Rig, WHEEL_SIZES, config, drain, fires_exactly};

/// All are cancelled, and then the clock jumps to its end: nothing fires. That the test ends at all shows
/// that the jump does not walk the ticks: there are 2^64 of them. Promises 2 and 4.
#[test]
fn caffeine_38_all_cancelled_then_the_end_of_time() {
    for size in WHEEL_SIZES {
        let mut rig = Rig::new(size, 0);
        let far = (0..64).map(|bit| 1 << bit).chain([0, Tick::MAX - 1, Tick::MAX]).collect::<Vec<Tick>>();
        for key in rig.set_all(&far) {
            assert!(rig.scheduler.cancel(key).is_some());
        }
        assert_eq!(rig.at(Tick::MAX), []);
        assert_eq!(rig.advancer.next_expiration(), None);
    }
}

/// The same with all of them pending: one jump to the end of time fires all, in order. Promise 4.
#[test]
fn caffeine_38_all_fire_by_the_end_of_time() {
    for size in WHEEL_SIZES {
        let mut rig = Rig::new(size, 0);
        let far = (0..64).map(|bit| 1 << bit).chain([Tick::MAX - 1, Tick::MAX]).collect::<Vec<Tick>>();
        rig.set_all(&far);
        assert_eq!(rig.at(Tick::MAX), far);
        rig.set_all(&[0, 17, Tick::MAX]);
        assert_eq!(rig.at(Tick::MAX).len(), 3, "at the end of time everything is due");
    }
}

/// A timer for 5 that is put off to 10 fires at 10 and only there, under the key it has by then. Promise 2.
#[test]
fn timeout_39_put_off() {
    let (scheduler, mut advancer) = shard(&config(16, 0));
    let key = scheduler.schedule(5, "put off").expect("the shard is open");
    let key = scheduler.reschedule(key, 10).expect("it is pending");
    assert_eq!(drain(&mut advancer, 5), []);
    assert_eq!(drain(&mut advancer, 9), []);
    let fired = advancer.advance(10).map(|f| (f.key, f.deadline, f.payload)).collect::<Vec<_>>();
    assert_eq!(fired, [(key, 10, "put off")]);
    assert_eq!(drain(&mut advancer, 1_000), []);
    assert_eq!(scheduler.reschedule(key, 2_000), None, "it has fired");
}

/// A timer that is brought nearer fires at the nearer tick and only there, be that ahead, now or past; and
/// the key that named its later deadline, where a new one was given, names nothing any more. Promises 2 and
/// 6.
#[test]
fn timeout_39_brought_nearer() {
    for (from, to) in [(10, 5), (5_000, 101), (5_000, 4_999), (Tick::MAX, 300), (500, 100), (500, 0)] {
        let mut rig = Rig::new(16, 100);
        let key = rig.set(from);
        let nearer = rig.scheduler.reschedule(key, to).expect("it is pending");
        assert_eq!(rig.scheduler.len(), 1);
        assert!(nearer == key || rig.scheduler.cancel(key).is_none());
        assert!(rig.advancer.next_expiration().is_some_and(|next| next <= to.max(100)));
        if to > 100 {
            assert_eq!(rig.at(to - 1), []);
        }
        assert_eq!(rig.at(to), [from]);
        assert_eq!(rig.at(Tick::MAX), []);
    }
}

/// An idle timeout, renewed at each of a thousand packets: it fires when the last renewal says, and not at
/// any of the earlier deadlines. Promise 2.
#[test]
fn timeout_39_renewed_again_and_again() {
    for size in WHEEL_SIZES {
        let mut rig = Rig::new(size, 0);
        let mut key = rig.set(30);
        for now in 1..=1_000 {
            assert_eq!(rig.at(now), []);
            key = rig.scheduler.reschedule(key, now + 30).expect("it is pending");
        }
        assert_eq!(rig.at(1_029), []);
        assert_eq!(rig.at(1_030), [30]);
        assert_eq!(rig.scheduler.cancel(key), None);
    }
}

/// 256 has not come at 255; 257, 1023 and 1029 come when they should, from slot 0 and from slot 5 of the
/// wheel. Promise 1.
#[test]
fn timeout_39_around_a_revolution_from_two_slots() {
    for size in WHEEL_SIZES {
        for start in [0, 5] {
            for delay in [255, 256, 257, 1_023, 1_024, 1_029] {
                fires_exactly(size, start, &[start + delay]);
            }
        }
    }
}

/// `next_expiration` is none when nothing is pending: at first, when all have fired, and, once the clock has
/// passed where they stood, when all were cancelled. Promise 9.
#[test]
fn ratas_40_nothing_pending_nothing_to_wake_for() {
    for size in WHEEL_SIZES {
        let mut rig = Rig::new(size, 7);
        assert_eq!(rig.advancer.next_expiration(), None);
        rig.set_all(&[8, 300, 70_000]);
        assert_eq!(rig.at(70_000), [8, 300, 70_000]);
        assert_eq!(rig.advancer.next_expiration(), None);
        let keys = rig.set_all(&[70_001, 70_300, 140_000]);
        assert!(keys.into_iter().all(|key| rig.scheduler.cancel(key).is_some()));
        rig.fires_by_sleeping(&[]);
    }
}

/// `next_expiration` is never later than the truth, from many offsets, and a thread that sleeps until the
/// tick it names finds the timer on time. Promises 1 and 9.
#[test]
fn ratas_40_never_later_than_the_truth() {
    let delays = [1, 2, 3, 15, 16, 17, 100, 255, 256, 257, 300, 4_095, 4_096, 70_000, 1 << 40];
    for size in [8, 256] {
        for start in (0..300).step_by(7).chain([4_095, 65_535, (1 << 36) - 1]) {
            for deadline in delays.map(|delay| start + delay) {
                let mut rig = Rig::new(size, start);
                rig.set(deadline);
                rig.fires_by_sleeping(&[deadline]);
            }
        }
    }
}

/// With several pending, the answer is about the earliest, and an earlier one changes it. Promise 1.
#[test]
fn ratas_40_the_earliest_of_several() {
    let mut rig = Rig::new(16, 1_000);
    for deadline in [1 << 40, 90_000, 2_000, 1_999, 1_010, 1_001, 1_000, 3] {
        rig.set(deadline);
        let next = rig.advancer.next_expiration();
        assert!(next.is_some_and(|next| next <= deadline.max(1_000)), "{next:?} for {deadline}");
    }
    assert_eq!(rig.at(1_000).len(), 2);
}

/// Schedules within `window` and checks that the timer fires in it: not at the tick before, surely at its
/// last, with a deadline that lies within.
fn fires_within(wheel_size: usize, start: Tick, window: &RangeInclusive<Tick>) {
    let (scheduler, mut advancer) = shard(&config(wheel_size, start));
    scheduler.schedule_within(window.clone(), "windowed").expect("the shard is open, the window not empty");
    if *window.start() > start {
        assert_eq!(drain(&mut advancer, window.start() - 1), [], "{window:?}");
    }
    let fired = drain(&mut advancer, *window.end());
    assert!(
        matches!(&fired[..], [(deadline, "windowed")] if window.contains(deadline)),
        "{window:?}: {fired:?}"
    );
}

/// A timer that may fire anywhere in a window fires within it. Promise 1.
#[test]
fn ratas_41_windows() {
    for size in WHEEL_SIZES {
        for window in [281..=290, 1_023..=1_279, 1_025..=1_280, 5..=5, 1..=Tick::MAX, Tick::MAX..=Tick::MAX] {
            fires_within(size, 0, &window);
        }
    }
}

/// The same for many windows of every width, from several starts. Promises 1 and 4.
#[test]
fn ratas_41_random_windows() {
    let mut rng = fastrand::Rng::with_seed(41);
    for _ in 0..2_000 {
        let start = rng.u64(..) >> rng.u32(1..64);
        let first = start + 1 + (rng.u64(..) >> rng.u32(2..64));
        let window = first..=first.saturating_add(rng.u64(..) >> rng.u32(..64));
        fires_within(*rng.choice(&WHEEL_SIZES).expect("not empty"), start, &window);
    }
}

/// A window that has begun, or has passed, is met as well as it can be: in time, or at once. Promise 4.
#[test]
fn ratas_41_windows_that_have_begun() {
    for window in [0..=120, 100..=100, 100..=101, 50..=100, 0..=99, 0..=0] {
        let (scheduler, mut advancer) = shard(&config(16, 100));
        scheduler.schedule_within(window.clone(), "windowed").expect("the shard is open");
        assert_eq!(drain(&mut advancer, *window.end()).len(), 1, "{window:?}");
    }
}

/// A delay of exactly one revolution, at every level and from every slot of a small wheel, and its
/// neighbours. Promise 1.
#[test]
fn akka_42_exactly_one_revolution() {
    for start in 0..40 {
        for revolution in [8, 64, 512] {
            let delays = [revolution - 1, revolution, revolution + 1];
            fires_exactly(8, start, &delays.map(|delay| start + delay));
        }
    }
}

/// A clock that starts near its end: deadlines up to the last tick of all fire exactly, and nothing wraps.
/// Promise 4.
#[test]
fn akka_42_a_start_near_the_end_of_time() {
    for size in WHEEL_SIZES {
        let start = Tick::MAX - 700;
        let delays = [1, 2, 8, 16, 255, 256, 257, 512, 699, 700];
        fires_exactly(size, start, &delays.map(|delay| start + delay));
        fires_exactly(size, Tick::MAX, &[Tick::MAX]);
        fires_exactly(size, 0, &[Tick::MAX - 1, Tick::MAX]);
    }
}

/// Cancelled before it fires: the payload, then nothing. Promise 2.
#[test]
fn akka_43_cancel_before_firing() {
    let mut rig = Rig::new(16, 0);
    for deadline in [1, 20, 5_000, Tick::MAX] {
        let key = rig.set(deadline);
        assert_eq!(rig.scheduler.cancel(key), Some(deadline));
        assert_eq!(rig.scheduler.cancel(key), None);
        assert_eq!(rig.scheduler.reschedule(key, deadline), None);
    }
    assert_eq!(rig.at(Tick::MAX), []);
}

/// Cancelled after it has fired: nothing, and nothing again. Promise 2.
#[test]
fn akka_43_cancel_after_firing() {
    let mut rig = Rig::new(16, 0);
    for deadline in [1, 20, 5_000] {
        let key = rig.set(deadline);
        assert_eq!(rig.at(deadline), [deadline]);
        assert_eq!(rig.scheduler.cancel(key), None);
        assert_eq!(rig.scheduler.cancel(key), None);
    }
}

/// Cancelled from inside the loop that has just taken it: it is the caller's already. Promise 2.
#[test]
fn akka_43_cancel_while_firing() {
    let mut rig = Rig::new(16, 0);
    rig.set_all(&[3, 3, 4]);
    for fired in rig.advancer.advance(4) {
        assert_eq!(rig.scheduler.cancel(fired.key), None);
        assert_eq!(rig.scheduler.reschedule(fired.key, 9), None);
    }
    assert_eq!(rig.at(9), []);
}
