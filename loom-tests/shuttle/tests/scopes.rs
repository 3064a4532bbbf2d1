//! Tasks on several threads, in the scope of a manual clock.

#![cfg(shardwheel_shuttle)]
#![allow(missing_docs)]

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shardwheel::{ManualClock, sleep, timeout};
use shardwheel_shuttle_tests::{explore, explore_both, millis};
use shuttle::{future, thread};

/// Two tasks join a scope, each on a thread of its own, and a third thread moves the clock. Each
/// sleeps as long as it says by that clock, and the scope is left with nothing.
#[test]
fn tasks_of_one_scope() {
    explore("tasks of one scope", || {
        let clock = ManualClock::new();
        let ended = Arc::new(AtomicUsize::new(0));
        let ((), waiting) = clock.scope(|| {
            let tasks = [3, 5].map(|delay| {
                let (own, ended) = (clock.clone(), Arc::clone(&ended));
                let task = clock.scope_future(async move {
                    let begin = own.elapsed();
                    sleep(millis(delay)).await;
                    assert!(own.elapsed() >= begin + millis(delay), "it is early");
                    assert!(timeout(millis(1), pending::<()>()).await.is_err());
                    ended.fetch_add(1, Ordering::SeqCst);
                });
                thread::spawn(move || future::block_on(task))
            });
            while ended.load(Ordering::SeqCst) < 2 {
                clock.advance(millis(1));
                thread::yield_now();
            }
            for task in tasks {
                task.join().expect("it does not panic");
            }
        });
        assert_eq!(waiting.pending, 0, "{waiting}");
    });
}

/// A task is dropped, on another thread, while the clock reaches its deadline and while the scope
/// ends: it is left pending, or it is gone.
#[test]
fn a_task_is_dropped_while_its_scope_ends() {
    explore_both("a task is dropped while its scope ends", || {
        let clock = ManualClock::new();
        let (thread, waiting) = clock.scope(|| {
            let mut task = Box::pin(clock.scope_future(async { sleep(millis(2)).await }));
            let waker = std::task::Waker::noop();
            let polled = task.as_mut().poll(&mut std::task::Context::from_waker(waker));
            assert!(polled.is_pending());
            let thread = thread::spawn(move || drop(task));
            clock.advance(millis(1));
            thread
        });
        thread.join().expect("it does not panic");
        assert!(waiting.pending <= 1 && waiting.sleeps == waiting.pending);
        assert_eq!(clock.next_deadline(), None);
        waiting.pending == 1
    });
}
