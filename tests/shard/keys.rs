//! Keys: cases from Agrona's deadline timer wheel.

use std::collections::HashSet;

use shardwheel::{Key, Tick, shard};

use crate::rig::{Rig, WHEEL_SIZES, config};

/// More timers than any first allocation of nodes is likely to hold.
const MANY: u64 = 100_000;

/// What is pending can be walked by the keys that the caller kept: each names its own timer, and cancels it.
/// (Agrona walks them inside the wheel; here the shard hands them out at its end, see the next test.)
/// Promises 2 and 6.
#[test]
fn agrona_34_the_keys_of_all_pending_cancel() {
    let mut rig = Rig::new(8, 0);
    let deadlines = [3, 9, 9, 64, 700, 5_000, Tick::MAX];
    let keys = rig.set_all(&deadlines);
    assert_eq!(rig.at(3), [3]);
    let given_back = keys.iter().map(|&key| rig.scheduler.cancel(key)).collect::<Vec<_>>();
    assert_eq!(given_back[0], None, "it has fired");
    assert_eq!(given_back[1..], deadlines[1..].iter().copied().map(Some).collect::<Vec<_>>());
    assert!(rig.scheduler.is_empty());
}

/// At the end the shard hands out what is pending, each with the deadline that it has by then: those on every
/// level, put off, brought nearer, overdue and not taken; not those fired or cancelled. Promise 8.
#[test]
fn agrona_34_what_is_pending_is_handed_back() {
    let mut rig = Rig::new(8, 0);
    let keys = rig.set_all(&[1, 2, 90, 800, 7_000, 7_001, Tick::MAX]);
    assert_eq!(rig.advancer.advance(2).next().map(|fired| fired.payload), Some(1));
    rig.scheduler.cancel(keys[2]).expect("pending");
    rig.scheduler.reschedule(keys[3], 900).expect("pending");
    rig.scheduler.reschedule(keys[4], 70).expect("pending");
    let mut pending = rig.advancer.into_pending().collect::<Vec<_>>();
    pending.sort_unstable();
    assert_eq!(pending, [(2, 2), (70, 7_000), (900, 800), (7_001, 7_001), (Tick::MAX, Tick::MAX)]);
    assert!(keys.into_iter().all(|key| rig.scheduler.cancel(key).is_none()), "they have had their outcome");
    assert!(rig.scheduler.is_empty());
}

/// More timers than a first allocation holds: all keys are distinct, and each gets its own timer back.
/// Promise 6.
#[test]
fn agrona_35_more_timers_than_the_first_segment_holds() {
    let rig = Rig::new(256, 0);
    let keys = (0..MANY).map(|deadline| rig.set(deadline)).collect::<Vec<Key>>();
    assert_eq!(keys.iter().collect::<HashSet<_>>().len() as u64, MANY);
    assert_eq!(rig.scheduler.len() as u64, MANY);
    for (deadline, key) in keys.into_iter().enumerate() {
        assert_eq!(rig.scheduler.cancel(key), Some(deadline as Tick));
    }
    assert!(rig.scheduler.is_empty());
}

/// The same, fired: each once, with the key that `schedule` gave. Promises 1 and 6.
#[test]
fn agrona_35_each_fires_with_its_own_key() {
    let (scheduler, mut advancer) = shard(&config(256, 0));
    let keys = (0..MANY).map(|i| scheduler.schedule(i % 1_000, i).expect("open")).collect::<Vec<Key>>();
    let mut seen = vec![false; keys.len()];
    for fired in advancer.advance(1_000) {
        let i = fired.payload as usize;
        assert_eq!((fired.key, fired.deadline), (keys[i], fired.payload % 1_000));
        assert!(!std::mem::replace(&mut seen[i], true), "{i} fired twice");
    }
    assert!(seen.into_iter().all(|fired| fired));
}

/// Nodes are used again, keys are not: through many generations of timers no key comes twice, and none of the
/// old ones touches a timer of today. Promise 6.
#[test]
fn agrona_35_old_keys_name_nothing() {
    for size in WHEEL_SIZES {
        let mut rig = Rig::new(size, 0);
        let mut old = HashSet::new();
        for now in 1..300 {
            let [cancelled, fired] = [now + 1, now].map(|deadline| rig.set(deadline));
            assert!(old.iter().all(|&key| rig.scheduler.cancel(key).is_none()));
            assert!(old.iter().all(|&key| rig.scheduler.reschedule(key, now + 9).is_none()));
            assert_eq!(rig.scheduler.cancel(cancelled), Some(now + 1));
            assert_eq!(rig.at(now), [now]);
            assert!(old.insert(cancelled) && old.insert(fired), "a key came twice");
        }
    }
}

/// A key means nothing to another shard, though that has a timer in the same place. Promise 6.
#[test]
fn agrona_35_a_key_names_nothing_in_another_shard() {
    let rigs = [Rig::new(8, 0), Rig::new(8, 0)];
    let [here, there] = [0, 1].map(|i: usize| rigs[i].set(10));
    assert_ne!(here, there);
    assert_eq!(rigs[1].scheduler.cancel(here), None);
    assert_eq!(rigs[1].scheduler.reschedule(here, 5), None);
    assert_eq!(rigs[1].scheduler.cancel(there), Some(10));
    assert_eq!(rigs[0].scheduler.cancel(here), Some(10));
}
