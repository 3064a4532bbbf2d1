//! Sleeps that are dropped and reset while they fire, and at the end of their timer.

#![cfg(shardwheel_shuttle)]
#![allow(missing_docs)]

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use shardwheel::Timer;
use shardwheel_shuttle_tests::{VirtualClock, explore, explore_both, millis, timer};
use shuttle::{future, thread};

/// One sleep is reset while it may be firing, and is over at its last deadline; one is dropped; and
/// one passes to another thread after its first poll.
#[test]
fn resets_and_drops() {
    explore("sleeps that are reset and dropped", || {
        let timer = timer().shards(2).build().expect("it starts");
        let task = |code: fn(Timer)| {
            let timer = timer.clone();
            thread::spawn(move || code(timer))
        };
        let reset = task(|timer| {
            let mut sleep = pin!(timer.sleep(millis(1)));
            future::block_on(async {
                assert!(poll_once(sleep.as_mut()).await.is_none_or(|result| result == Ok(())));
                VirtualClock::sleep(millis(1));
                let due = VirtualClock::now() + millis(3);
                sleep.as_mut().reset(VirtualClock::now() + millis(1_000));
                sleep.as_mut().reset(due);
                assert_eq!(sleep.await, Ok(()));
                assert!(VirtualClock::now() >= due, "early after a reset");
            });
        });
        let dropped = task(|timer| {
            let mut sleep = Box::pin(timer.sleep(millis(1)));
            future::block_on(async { poll_once(sleep.as_mut()).await });
            VirtualClock::sleep(millis(1));
            drop(sleep);
        });
        let passed = task(|timer| {
            let due = VirtualClock::now() + millis(2);
            let mut sleep = Box::pin(timer.sleep(millis(2)));
            let first = future::block_on(async { poll_once(sleep.as_mut()).await });
            if first.is_none() {
                let other = thread::spawn(move || future::block_on(sleep));
                assert_eq!(other.join().expect("it does not panic"), Ok(()));
            }
            assert!(VirtualClock::now() >= due, "early on another thread");
        });
        for thread in [reset, dropped, passed] {
            thread.join().expect("it does not panic");
        }
        let stats = timer.stats();
        assert_eq!(stats.pending, 0, "{stats:?}");
    });
}

/// Sleeps at the end of their timer: each is over, or refused, once.
#[test]
fn a_shutdown_while_they_fire() {
    explore_both("sleeps at a shutdown", || {
        let timer = timer().shards(2).build().expect("it starts");
        let sleepers = [1, 2].map(|delay| {
            let timer = timer.clone();
            thread::spawn(move || {
                let due = VirtualClock::now() + millis(delay);
                let slept = future::block_on(timer.sleep(millis(delay)));
                match slept {
                    Ok(()) => assert!(VirtualClock::now() >= due, "early"),
                    Err(error) => assert!(error.is_shut_down(), "{error}"),
                }
                slept.is_ok()
            })
        });
        VirtualClock::sleep(millis(1));
        drop(timer.shutdown());
        let slept = sleepers.map(|sleeper| sleeper.join().expect("it does not panic"));
        slept == [true; 2]
    });
}

/// The answer of one poll, if it is ready.
async fn poll_once<F: Future + Unpin>(mut future: F) -> Option<F::Output> {
    std::future::poll_fn(|context| match std::pin::Pin::new(&mut future).poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
