//! What goes in comes out: when it is due, removed, or refused.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use shardwheel::delay_queue::Expired;
use shardwheel::{DelayQueue, Timer};

use crate::support::{HOUR, by_hand, hear, is_balanced, manual, ms, survives, threads};

/// Values come out at their deadlines, in that order, with their keys, and not before. Promise 1.
#[test]
fn values_come_out_at_their_deadlines() {
    let (timer, clock) = manual();
    let (queue, start) = (DelayQueue::new(&timer), timer.now());
    let keys = [30, 10, 20, 10].map(|delay| (delay, queue.insert(delay, ms(delay)).expect("it is open")));
    assert_eq!((queue.len(), queue.is_empty()), (4, false));
    clock.advance(ms(9));
    assert_eq!(queue.try_recv(), None);
    clock.advance(ms(11));
    assert_eq!(queue.len(), 4);
    let mut out: Vec<Expired<u64>> = std::iter::from_fn(|| queue.try_recv()).collect();
    assert_eq!(queue.len(), 1);
    clock.advance(HOUR);
    out.extend(queue.try_recv());
    assert_eq!(out.iter().map(|expired| expired.value).collect::<Vec<_>>(), [10, 10, 20, 30]);
    for Expired { value, key, deadline } in out {
        assert!(keys.contains(&(value, key)));
        assert_eq!(deadline, start + ms(value));
    }
    assert!(queue.is_empty());
    is_balanced(&timer);
}

/// The former name of `blocking_recv` still receives.
#[test]
#[expect(deprecated, reason = "this is about the former name")]
fn recv_is_blocking_recv() {
    let (timer, clock) = manual();
    let queue = DelayQueue::new(&timer);
    queue.insert("value", ms(5)).expect("it is open");
    clock.advance(ms(5));
    assert_eq!(queue.recv().map(|out| out.value), Some("value"));
}

/// The deadline is the one that was asked for, though the timer fires at a tick; one that has passed
/// expires at the next tick. Promise 4.
#[test]
fn a_value_says_when_it_was_due() {
    let (timer, clock) = manual();
    clock.advance(ms(10));
    let (queue, now) = (DelayQueue::new(&timer), timer.now());
    let deadline = now + Duration::from_micros(2_300);
    queue.insert_at("later", deadline).expect("it is open");
    queue.insert_at("past", now - ms(5)).expect("it is open");
    queue.insert("now", Duration::ZERO).expect("it is open");
    let never = queue.insert("never", Duration::MAX).expect("it is open");
    clock.advance(ms(1));
    let mut out = [queue.try_recv(), queue.try_recv()].map(|expired| expired.expect("both are due").value);
    out.sort_unstable();
    assert_eq!(out, ["now", "past"]);
    clock.advance(ms(1));
    assert_eq!(queue.try_recv(), None);
    clock.advance(ms(1));
    assert_eq!(queue.try_recv().expect("it is due").deadline, deadline);
    clock.advance(400 * 365 * 24 * HOUR);
    assert_eq!((queue.try_recv(), queue.remove(&never)), (None, Some("never")));
}

/// A removed value does not come out; one that has expired cannot be removed. Promise 2.
#[test]
fn a_value_is_removed_or_comes_out() {
    let (timer, clock) = manual();
    let queue = DelayQueue::new(&timer);
    let held = Arc::new(());
    let [first, second] =
        [5, 10].map(|delay| queue.insert(Arc::clone(&held), ms(delay)).expect("it is open"));
    assert!(queue.remove(&second).is_some() && queue.remove(&second).is_none());
    assert_eq!((Arc::strong_count(&held), queue.len(), timer.stats().pending), (2, 1, 1));
    clock.advance(ms(20));
    assert!(queue.remove(&first).is_none() && !queue.reset(&first, ms(5)));
    assert_eq!(queue.len(), 1);
    assert_eq!(queue.try_recv().map(|expired| expired.key), Some(first));
    assert!(queue.try_recv().is_none() && queue.is_empty());
    assert_eq!(Arc::strong_count(&held), 1);
    is_balanced(&timer);
}

/// A refused value comes back: the timer is full. Promise 5.
#[test]
fn a_refused_value_comes_back() {
    let (timer, clock) = by_hand(Timer::builder().max_pending(1));
    let queue = DelayQueue::new(&timer);
    queue.insert(1, ms(5)).expect("there is room for one");
    let refused = queue.insert(2, ms(5)).expect_err("there is no room for two");
    assert!(refused.is_full());
    assert_eq!((refused.into_payload(), queue.len()), (2, 1));
    clock.advance(ms(5));
    // The value has expired: its timer is over, though it was not taken.
    queue.insert_at(3, timer.now() + ms(5)).expect("there is room");
    clock.advance(ms(5));
    assert_eq!([queue.try_recv(), queue.try_recv()].map(|out| out.map(|out| out.value)), [Some(1), Some(3)]);
}

/// A value of 3 MB passes through a timer's thread, or is dropped there, and its stack has 2 MiB.
/// Promise 7.
#[test]
fn a_value_larger_than_the_stack_goes_through() {
    struct Large(mpsc::Sender<u8>, [u8; 3 << 20]);
    impl Drop for Large {
        fn drop(&mut self) {
            let _ = self.0.send(self.1[self.1.len() - 1]);
        }
    }
    survives(|| {
        let (sender, receiver) = mpsc::channel();
        let work = move || {
            let timer = threads(1);
            let large = || Large(sender.clone(), [7; 3 << 20]);
            let queue = DelayQueue::new(&timer);
            queue.insert(large(), ms(1)).expect("it is open");
            assert_eq!(queue.blocking_recv().expect("it is open").value.1[9], 7);
            queue.insert(large(), ms(20)).expect("it is open");
            drop(queue);
            timer
        };
        // The caller's own stack has room for it.
        let caller = thread::Builder::new().stack_size(64 << 20).spawn(work).expect("a thread starts");
        let _timer = caller.join().expect("no panic");
        assert_eq!([hear(&receiver), hear(&receiver)], [7, 7]);
    });
}
