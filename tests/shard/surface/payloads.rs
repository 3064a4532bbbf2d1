//! What may be a payload.

use std::sync::atomic::{AtomicUsize, Ordering};

use shardwheel::Tick;

use super::halves;

/// A payload may borrow, and may be a callback that borrows and can be called once.
#[test]
fn payloads_may_borrow() {
    let name = String::from("local");
    let (scheduler, mut advancer) = halves::<&str>();
    let key = scheduler.schedule(1, &name).expect("the shard is open");
    scheduler.schedule(2, &name[1..]).expect("the shard is open");
    assert_eq!(scheduler.cancel(key), Some("local"));
    assert_eq!(advancer.advance(2).map(|fired| fired.payload.len()).sum::<usize>(), 4);

    let count = AtomicUsize::new(0);
    let (scheduler, mut advancer) = halves::<Box<dyn FnOnce() -> usize + Send + '_>>();
    for _ in 0..3 {
        scheduler.schedule(1, Box::new(|| count.fetch_add(1, Ordering::Relaxed))).expect("the shard is open");
    }
    assert_eq!(advancer.advance(1).map(|fired| (fired.payload)()).sum::<usize>(), 3);
}

/// A payload without a size is fired, cancelled, handed back and dropped like any other.
#[test]
fn payloads_may_have_no_size() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Nothing;
    impl Drop for Nothing {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (scheduler, mut advancer) = halves();
    let keys = [5, 6, 700].map(|deadline| scheduler.schedule(deadline, Nothing).expect("the shard is open"));
    assert!(scheduler.cancel(keys[1]).is_some());
    assert_eq!(advancer.advance(6).count(), 1);
    assert_eq!(DROPPED.load(Ordering::Relaxed), 2);
    assert_eq!(advancer.into_pending().map(|(deadline, _)| deadline).collect::<Vec<_>>(), [700]);
    assert_eq!(DROPPED.load(Ordering::Relaxed), 3);
}

/// A payload of a page, aligned more strictly than the nodes, comes back unchanged from a cancel, from
/// an advance and from the end.
#[test]
fn payloads_may_be_large_and_over_aligned() {
    comes_back(|i| Line(i as u8), |line| line.0);
    comes_back(|i| Page(std::array::from_fn(|at| (at * 31 + i * 7) as u8)), |page| page.0);
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(u8);

#[derive(Clone, Copy)]
#[repr(align(128))]
struct Page([u8; 4096]);

fn comes_back<T: Send, V: PartialEq>(payload: impl Fn(usize) -> T, value: impl Fn(&T) -> V) {
    let is_right = |given_back: &T, i: usize| {
        assert_eq!(std::ptr::from_ref(given_back).addr() % align_of::<T>(), 0, "a payload stood askew");
        value(given_back) == value(&payload(i))
    };
    let (scheduler, mut advancer) = halves();
    let keys: Vec<_> =
        (0..200).map(|i| scheduler.schedule(i as Tick, payload(i)).expect("the shard is open")).collect();
    for i in (0..200).step_by(3) {
        assert!(scheduler.cancel(keys[i]).is_some_and(|given_back| is_right(&given_back, i)));
    }
    let mut fired = advancer.advance(150);
    assert!(fired.by_ref().all(|fired| is_right(&fired.payload, fired.deadline as usize)));
    drop(fired);
    let mut rest = advancer.into_pending();
    assert!(rest.all(|(deadline, payload)| deadline > 150 && is_right(&payload, deadline as usize)));
}
