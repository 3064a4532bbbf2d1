//! The caller uses the shard while it takes timers from an advance: cases from folly's timing wheel.
//! What else it may do there the simulation does at random (`tests/model`).

use shardwheel::Tick;

use crate::rig::{Rig, WHEEL_SIZES};

/// Each of 128 timers schedules another as far ahead as the wheel reaches, while its own bucket is
/// being flushed. The new timers fire exactly then, not at once and not one revolution late.
/// Promises 1 and 7.
#[test]
fn timers_set_while_their_bucket_is_flushed_fire_on_time() {
    for size in WHEEL_SIZES {
        let ahead = size as Tick - 1;
        let mut rig = Rig::new(size, 0);
        let deadlines = (1..=128).collect::<Vec<Tick>>();
        rig.set_all(&deadlines);
        for now in 1..=128 + ahead {
            let own = usize::from(now <= 128);
            let armed = usize::from(now > ahead && now - ahead <= 128);
            assert_eq!(arm_at(&mut rig, now, ahead), own + armed, "at {now} in a wheel of {size}");
        }
        assert_eq!(rig.scheduler.len(), 0);
    }
}

/// Advances to `now`. Each timer whose payload is its deadline schedules one whose payload is
/// `Tick::MAX`. Returns how many timers fired, and checks that each was due at `now`.
fn arm_at(rig: &mut Rig, now: Tick, ahead: Tick) -> usize {
    let mut count = 0;
    for fired in rig.advancer.advance(now) {
        assert_eq!(fired.deadline, now);
        if fired.payload != Tick::MAX {
            rig.scheduler.schedule(now + ahead, Tick::MAX).expect("the shard is open");
        }
        count += 1;
    }
    count
}
