//! What may be a payload.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use shardwheel::Tick;

use super::halves;

/// A payload may borrow.
#[test]
fn payloads_may_borrow() {
    let name = String::from("local");
    let seen = Cell::new(0);
    let (scheduler, mut advancer) = halves::<&str>();
    let key = scheduler.schedule(1, &name).expect("the shard is open");
    scheduler.schedule(2, &name[1..]).expect("the shard is open");
    assert_eq!(scheduler.cancel(key), Some("local"));
    advancer.advance(2).for_each(|fired| seen.set(seen.get() + fired.payload.len()));
    assert_eq!(seen.get(), 4);
}

/// A payload may be a callback that borrows and can be called once.
#[test]
fn payloads_may_be_callbacks() {
    let count = AtomicUsize::new(0);
    let (scheduler, mut advancer) = halves::<Box<dyn FnOnce() -> usize + Send + '_>>();
    for _ in 0..3 {
        scheduler.schedule(1, Box::new(|| count.fetch_add(1, Ordering::Relaxed))).expect("the shard is open");
    }
    assert_eq!(advancer.advance(1).map(|fired| (fired.payload)()).sum::<usize>(), 3);
    assert_eq!(count.load(Ordering::Relaxed), 3);
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

/// A payload of a page comes back unchanged from a cancel, from an advance and from the end.
#[test]
fn payloads_may_be_large() {
    let page = |i: usize| std::array::from_fn::<u8, 4096, _>(|at| (at * 31 + i * 7) as u8);
    let (scheduler, mut advancer) = halves();
    let keys = (0..300)
        .map(|i| scheduler.schedule(i as Tick, page(i)).expect("the shard is open"))
        .collect::<Vec<_>>();
    assert!((0..300).step_by(3).all(|i| scheduler.cancel(keys[i]) == Some(page(i))));
    assert!(advancer.advance(150).all(|fired| fired.payload == page(fired.deadline as usize)));
    let rest =
        advancer.into_pending().map(|(deadline, payload)| (payload == page(deadline as usize), deadline));
    assert!(rest.inspect(|&(same, _)| assert!(same)).all(|(_, deadline)| deadline > 150));
}

/// Checks the address of a payload when it is dropped.
fn check_alignment<T>(payload: &T) {
    assert_eq!(std::ptr::from_ref(payload).addr() % align_of::<T>(), 0, "a payload stood askew");
}

#[repr(align(64))]
struct Line(u8);

#[repr(align(128))]
struct TwoLines(u8);

impl Drop for Line {
    fn drop(&mut self) {
        check_alignment(self);
    }
}

impl Drop for TwoLines {
    fn drop(&mut self) {
        check_alignment(self);
    }
}

/// Cancels one timer, fires some, and drops the rest with the shard.
fn comes_and_goes<T: Send>(payload: impl Fn(u8) -> T, number: impl Fn(&T) -> u8) {
    let (scheduler, mut advancer) = halves();
    let keys = (0..200)
        .map(|i| scheduler.schedule(Tick::from(i), payload(i)).expect("the shard is open"))
        .collect::<Vec<_>>();
    assert!(scheduler.cancel(keys[90]).is_some_and(|given_back| number(&given_back) == 90));
    let fired = advancer.advance(99).map(|fired| number(&fired.payload)).collect::<Vec<_>>();
    assert_eq!(fired, (0..100).filter(|&i| i != 90).collect::<Vec<_>>());
}

/// A payload may be aligned more strictly than the nodes.
#[test]
fn payloads_may_be_over_aligned() {
    comes_and_goes(Line, |line| line.0);
    comes_and_goes(TwoLines, |lines| lines.0);
}
