//! A manual clock that moves by itself: `next_deadline` and `run_until_stalled`.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use shardwheel::{Clock, ManualClock, Timer};

use crate::support::{Built, Count, after, hear, manual, ms, secs, until};

#[test]
fn the_next_deadline_is_that_of_the_next_timer() {
    let (timer, clock) = manual();
    assert_eq!(clock.next_deadline(), None);
    let begin = clock.now();
    let key = after(&timer, ms(20), || ());
    after(&timer, ms(30), || ());
    assert_eq!(clock.next_deadline(), Some(begin + ms(20)));
    assert!(timer.cancel(key));
    while let Some(next) = clock.next_deadline() {
        assert!(next <= begin + ms(30));
        clock.advance(next.saturating_duration_since(clock.now()));
    }
    assert_eq!((clock.elapsed(), timer.stats().fired), (ms(30), 1));
}

/// Two timers of the same clock, several futures at once, and callbacks in between.
#[test]
fn all_timers_of_the_clock_take_part() {
    let clock = ManualClock::new();
    let timers = [(); 2].map(|()| Timer::builder().clock(clock.clone()).built());
    let count = Count::default();
    timers[1].schedule_every(ms(10), count.adds()).expect("the timer is open");
    let both = futures::future::join(timers[0].sleep(ms(95)), timers[1].sleep(ms(42)));
    assert_eq!(clock.run_until_stalled(both), Some((Ok(()), Ok(()))));
    assert_eq!((clock.elapsed(), count.get()), (ms(95), 9));
}

/// The clock has an end, which a timer that was made later can name a time after. Promise 4.
#[test]
fn what_is_due_after_the_end_of_the_clock_never_comes() {
    let clock = ManualClock::new();
    clock.advance(secs(1));
    let timer = Timer::builder().clock(clock.clone()).built();
    let end = Duration::from_nanos(u64::MAX);
    let far = end - ms(500);
    after(&timer, far, || panic!("it never comes"));
    assert_eq!(clock.run_until_stalled(timer.sleep(far)), None);
    assert_eq!(clock.next_deadline(), None);
    clock.advance(Duration::MAX);
    assert_eq!(clock.elapsed(), end);
    after(&timer, ms(500), || panic!("it never comes"));
    clock.advance(secs(1));
    clock.jump(secs(1));
    assert_eq!((clock.elapsed(), timer.stats().fired), (end, 0));
}

/// A future that has stalled can be continued.
#[test]
fn a_stalled_future_is_kept_by_reference() {
    let (timer, clock) = manual();
    let (sender, receiver) = mpsc::channel();
    let reached = Cell::new(0);
    let mut future = pin!(async {
        timer.sleep(ms(5)).await.expect("the timer is open");
        reached.set(1);
        poll_fn(|_| match receiver.try_recv() {
            Ok(()) => std::task::Poll::Ready(()),
            Err(_) => std::task::Poll::Pending,
        })
        .await;
        timer.sleep(ms(5)).await.expect("the timer is open");
        2
    });
    assert_eq!((clock.run_until_stalled(future.as_mut()), reached.get()), (None, 1));
    sender.send(()).expect("the future holds the receiver");
    assert_eq!(clock.run_until_stalled(future.as_mut()), Some(2));
    assert_eq!(clock.elapsed(), ms(10));
}

/// In a callback of the same clock nothing can run: the call returns.
#[test]
fn within_a_callback_it_stalls() {
    let (timer, clock) = manual();
    let (sender, receiver) = mpsc::channel();
    let (own, within) = (clock.clone(), timer.clone());
    after(&timer, ms(1), move || {
        sender.send(own.run_until_stalled(within.sleep(ms(5)))).expect("the test receives it");
    });
    clock.advance(ms(1));
    assert_eq!(receiver.try_recv(), Ok(None));
}

/// A future that wakes itself is polled again, without moving the clock.
#[test]
fn a_yield_takes_no_time() {
    let (timer, clock) = manual();
    after(&timer, ms(1), || ());
    let mut left = 100;
    let yields = poll_fn(|context| {
        left -= 1;
        context.waker().wake_by_ref();
        if left == 0 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    });
    assert_eq!(clock.run_until_stalled(yields), Some(()));
    assert_eq!(clock.elapsed(), ms(0));
}

/// Another thread moves the same clock and is inside a callback. The call waits for that thread, and
/// does not take its own future for stalled.
#[test]
fn two_threads_run_futures_by_one_clock() {
    let (timer, clock) = manual();
    let (sender, receiver) = mpsc::channel();
    let polls = Count::default();
    let polled = polls.clone();
    let callback = move || {
        sender.send(()).expect("the test receives it");
        until("the other thread has polled", || polled.get() > 0);
        thread::sleep(ms(10)); // long enough for the other thread to look for what is pending
    };
    after(&timer, ms(1), callback);
    thread::scope(|scope| {
        scope.spawn(|| clock.advance(ms(1)));
        hear(&receiver);
        let mut sleep = timer.sleep(ms(5));
        let future = poll_fn(|context| {
            let polled = Pin::new(&mut sleep).poll(context);
            polls.one();
            polled
        });
        assert_eq!(clock.run_until_stalled(future), Some(Ok(())));
    });
}
