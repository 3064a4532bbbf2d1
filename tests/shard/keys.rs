//! Keys: they are distinct, tell what is pending, and cancel in batches. The first case is from
//! Agrona's deadline timer wheel.

use std::collections::HashSet;

use shardwheel::{Key, Tick};

use crate::rig::{Rig, WHEEL_SIZES};

/// More timers than the first segment of nodes is likely to hold.
const MANY: u64 = 100_000;

/// More timers than the first segment holds: all keys are distinct. Each cancels its own timer, or
/// that fires with it. Promises 1 and 6.
#[test]
fn keys_are_distinct_beyond_the_first_segment() {
    let mut rig = Rig::new(256, 0);
    let keys = (0..MANY).map(|deadline| rig.set(deadline)).collect::<Vec<Key>>();
    assert_eq!(keys.iter().collect::<HashSet<_>>().len() as u64, MANY);
    for deadline in (0..MANY).step_by(2) {
        assert_eq!(rig.scheduler.cancel(keys[deadline as usize]), Some(deadline));
    }
    let fired = rig.advancer.advance(MANY).map(|fired| (fired.key, fired.deadline, fired.payload));
    assert!(fired.eq((1..MANY).step_by(2).map(|deadline| (keys[deadline as usize], deadline, deadline))));
    assert!(rig.scheduler.is_empty());
}

/// A shard says of a key whether its timer is pending, and when it is due: after a schedule, an
/// extension, a move, a cascade, a fire and a cancel, and when the node has another timer.
/// Promise 6.
#[test]
fn a_shard_says_what_is_pending_and_when() {
    for wheel_size in WHEEL_SIZES {
        let mut rig = Rig::new(wheel_size, 0);
        let at = |rig: &Rig, key| (rig.scheduler.is_pending(key), rig.scheduler.deadline(key));
        let keys = rig.set_all(&[0, 5, 90, 7_000, Tick::MAX]);
        let deadlines: Vec<_> = keys.iter().map(|&key| at(&rig, key)).collect();
        assert_eq!(deadlines, [0, 5, 90, 7_000, Tick::MAX].map(|due| (true, Some(due))));
        let later = rig.scheduler.reschedule(keys[1], 700).expect("it is pending");
        assert_eq!(at(&rig, later), (true, Some(700)));
        let earlier = rig.scheduler.reschedule(keys[3], 600).expect("it is pending");
        assert_eq!((at(&rig, earlier), at(&rig, keys[3])), ((true, Some(600)), (false, None)));
        rig.at(599);
        assert_eq!([keys[0], keys[2]].map(|key| at(&rig, key)), [(false, None); 2]);
        assert_eq!([later, earlier].map(|key| at(&rig, key)), [(true, Some(700)), (true, Some(600))]);
        // Due and not yet taken.
        drop(rig.advancer.advance(600));
        assert_eq!(at(&rig, earlier), (true, Some(600)));
        assert!(rig.scheduler.cancel(later).is_some() && rig.scheduler.cancel(earlier).is_some());
        let again = rig.set_all(&[700, 7_000]);
        assert_eq!([later, earlier].map(|key| at(&rig, key)), [(false, None); 2]);
        assert_eq!(again.iter().map(|&key| at(&rig, key).1).collect::<Vec<_>>(), [Some(700), Some(7_000)]);
        let other = Rig::new(wheel_size, 0);
        assert_eq!(at(&other, again[0]), (false, None), "a key of another shard");
    }
}

/// A batch cancels what is pending and returns each payload in the place of its key; dropped, it
/// cancels the rest. Promise 2.
#[test]
fn a_batch_cancels_each_key_once() {
    let mut rig = Rig::new(64, 0);
    for many in [0, 1, 7, 8, 9, 17, 100] {
        let keys: Vec<_> = (0..many).map(|i| rig.set(1_000 + i)).collect();
        let removed =
            keys.iter().skip(3).step_by(5).filter_map(|&key| rig.scheduler.cancel(key)).count() as u64;
        let answers: Vec<_> = rig.scheduler.cancel_batch(keys.iter().copied()).collect();
        let cancelled = (0..many).map(|i| (i % 5 != 3).then_some(1_000 + i)).collect::<Vec<_>>();
        assert_eq!(answers, cancelled);
        assert_eq!(cancelled.iter().flatten().count() as u64, many - removed);
        assert!(rig.scheduler.cancel_batch(keys).all(|answer| answer.is_none()));
        let keys: Vec<_> = (0..many).map(|i| rig.set(1_000 + i)).collect();
        let mut batch = rig.scheduler.cancel_batch(keys);
        assert_eq!(batch.next(), (many > 0).then_some(Some(1_000)));
        drop(batch);
        assert!(rig.scheduler.is_empty());
    }
    assert_eq!(rig.at(2_000), []);
}
