//! Keys stay the same over resets, and find nothing where they should not.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

use shardwheel::{DelayQueue, QueueKey};

use crate::support::{HOUR, is_balanced, manual, ms};

/// What a key can do.
#[test]
fn keys_are_names() {
    fn names<K: Copy + Eq + Hash + Debug + Send + Sync + 'static>() {}
    names::<QueueKey>();
    let (timer, _clock) = manual();
    let queue = DelayQueue::new(&timer);
    let keys: HashSet<_> = (0..100).map(|i| queue.insert(i, HOUR).expect("it is open")).collect();
    assert_eq!(keys.len(), 100);
    assert!(format!("{:?}", keys.iter().next()).contains("id"));
    let hash = |key| BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
    let hashes: HashSet<u64> = keys.iter().map(hash).collect();
    assert!(hashes.len() > 90, "{} hashes of 100 keys", hashes.len());
}

/// A value is reset to later and earlier, again and again, and keeps its key. Promises 1 and 2.
#[test]
fn a_reset_value_keeps_its_key() {
    let (timer, clock) = manual();
    let (queue, start) = (DelayQueue::new(&timer), timer.now());
    let key = queue.insert("value", ms(50)).expect("it is open");
    for deadline in [100, 400, 70, 300, 20, 30] {
        assert!(queue.reset(&key, ms(deadline)));
        assert_eq!((queue.len(), timer.stats().pending), (1, 1));
    }
    clock.advance(ms(29));
    assert_eq!(queue.try_recv(), None);
    clock.advance(ms(1));
    let out = queue.try_recv().expect("it is due");
    assert_eq!((out.value, out.key, out.deadline), ("value", key, start + ms(30)));
    assert!(!queue.reset_at(&key, timer.now()) && queue.remove(&key).is_none());
    is_balanced(&timer);
}

/// A value that was reset to earlier is removed by its key; to the past, it expires at the next
/// tick. Promise 2.
#[test]
fn a_moved_value_is_removed_by_its_key() {
    let (timer, clock) = manual();
    let queue = DelayQueue::new(&timer);
    let key = queue.insert(7, HOUR).expect("it is open");
    assert!(queue.reset(&key, ms(5)));
    assert_eq!((queue.remove(&key), queue.remove(&key)), (Some(7), None));
    assert!(!queue.reset(&key, ms(5)));
    clock.advance(HOUR);
    let key = queue.insert(8, HOUR).expect("it is open");
    assert!(queue.reset_at(&key, timer.now() - ms(5)));
    clock.advance(ms(1));
    assert_eq!(queue.try_recv().map(|out| (out.value, out.key == key)), Some((8, true)));
    assert!(queue.is_empty());
    is_balanced(&timer);
}

/// A key of another queue finds nothing, on the same timer or another, whatever the values are.
/// Promise 6.
#[test]
fn a_key_of_another_queue_finds_nothing() {
    let ((timer, _clock), (other, _)) = (manual(), manual());
    let (numbers, texts) = (DelayQueue::new(&timer), DelayQueue::new(&timer));
    let elsewhere = DelayQueue::new(&other);
    let key = numbers.insert(7, HOUR).expect("it is open");
    texts.insert("seven", HOUR).expect("it is open");
    assert!(texts.remove(&key).is_none() && !texts.reset(&key, ms(1)));
    assert!(elsewhere.remove(&key).is_none() && !elsewhere.reset_at(&key, timer.now()));
    elsewhere.insert(9, HOUR).expect("it is open");
    assert_eq!(numbers.remove(&key), Some(7));
}
