//! The end of a timer: shutdown, from outside and from callbacks. No callback is lost, and no thread
//! is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use shardwheel::{Timer, UnfiredTask};

use crate::support::{
    Built, Count, Dropped, HOUR, Log, after, are_threads, both, hear, in_time, is_balanced, manual, ms,
    on_shard, pass, secs, threads, until,
};

/// A timer with two threads of a name that no other test uses.
pub(crate) fn named(name: &str) -> Timer {
    Timer::builder().shards(2).thread_name(name).built()
}

/// Three timers fire, and shutdown ends the threads, once. Promise 8.
#[test]
fn shutdown_ends_the_threads() {
    let timer = named("six");
    let (sender, receiver) = mpsc::channel();
    for delay in [1, 2, 3] {
        let sender = sender.clone();
        after(&timer, ms(delay), move || sender.send(()).expect("the test waits"));
    }
    (0..3).for_each(|_| hear(&receiver));
    are_threads("six-", 2);
    for _ in 0..3 {
        assert!(timer.shutdown().is_empty());
        are_threads("six-", 0);
    }
    is_balanced(&timer);
}

/// After shutdown each way to schedule returns an error and the callback; nothing blocks, and a
/// second shutdown returns nothing. Promises 3 and 8.
#[test]
fn after_shutdown_scheduling_returns_the_callback() {
    for (timer, clock) in both() {
        let (key, count) = (after(&timer, HOUR, || ()), Count::default());
        assert_eq!(timer.shutdown().len(), 1);
        let (mine, other, third) = (count.clone(), count.clone(), count.clone());
        let refused = timer.schedule_after(ms(1), move || mine.one()).expect_err("the timer is shut down");
        assert!(refused.is_shut_down() && !refused.is_full());
        refused.into_payload()();
        let refused = timer.schedule_every(ms(1), move || other.one()).expect_err("the timer is shut down");
        assert!(refused.is_shut_down());
        refused.into_payload()();
        timer
            .schedule_at(Instant::now(), move || third.one())
            .expect_err("the timer is shut down")
            .into_payload()();
        assert_eq!(count.get(), 3);
        assert_eq!((timer.cancel(key), timer.reschedule_after(key, ms(1))), (false, None));
        assert!(timer.shutdown().is_empty());
        pass(&clock, ms(10));
        assert_eq!(timer.stats().handed_back, 1);
        is_balanced(&timer);
    }
}

/// What has not fired is dropped by the caller, once; the timer keeps no callback. Promise 8.
#[test]
fn unfired_callbacks_are_dropped_once() {
    for (timer, _clock) in both() {
        let dropped = Count::default();
        for size in 0..10 {
            let (held, large) = (Dropped(dropped.clone()), [size; 16]);
            after(&timer, HOUR, move || drop((held, large)));
            let held = Dropped(dropped.clone());
            timer.schedule_every(HOUR, move || _ = held.0.get()).expect("the timer is open");
        }
        let unfired = timer.shutdown();
        assert_eq!((unfired.len(), unfired.is_empty(), dropped.get()), (20, false, 0));
        drop(unfired);
        assert_eq!(dropped.get(), 20);
        drop(timer);
        assert_eq!(dropped.get(), 20);
    }
}

/// Five timers of 5 s, shut down at 1 s: five come back, and none fires. Each can be run, and has
/// its deadline. Promises 1 and 8.
#[test]
fn shutdown_returns_what_has_not_fired() {
    let (timer, clock) = manual();
    let (count, start) = (Count::default(), timer.now());
    for _ in 0..5 {
        after(&timer, secs(5), count.adds());
    }
    clock.advance(secs(1));
    let unfired: Vec<UnfiredTask> = timer.shutdown().collect();
    assert_eq!(unfired.len(), 5);
    assert!(unfired.iter().all(|task| task.deadline() == Some(start + secs(5))));
    clock.advance(HOUR);
    assert_eq!((count.get(), timer.stats().fired, timer.stats().handed_back), (0, 0, 5));
    unfired.into_iter().for_each(UnfiredTask::run);
    assert_eq!(count.get(), 5);
    is_balanced(&timer);
}

/// The same with threads, from both shards. A timer whose deadline no `Instant` can represent comes
/// back without one. Promise 8.
#[test]
fn shutdown_returns_timers_of_all_shards() {
    let (timer, count) = (threads(2), Count::default());
    let set = || {
        let (mine, never) = (count.clone(), count.clone());
        after(&timer, HOUR, move || mine.one());
        after(&timer, std::time::Duration::MAX, move || never.one());
    };
    set();
    let sets = 1 + (0..2).filter_map(|shard| on_shard(&timer, shard, set)).count();
    let unfired = timer.shutdown();
    assert_eq!(unfired.len(), 2 * sets);
    assert_eq!(unfired.size_hint(), (2 * sets, Some(2 * sets)));
    let (named, never): (Vec<_>, Vec<_>) = unfired.partition(|task| task.deadline().is_some());
    assert_eq!((named.len(), never.len(), count.get()), (sets, sets, 0));
    is_balanced(&timer);
}

/// A callback shuts its timer down while a callback of the other shard runs. The shutdown does not
/// wait for that callback, and returns what is left of both shards. The recurring timer that runs
/// there has ended with it. Promise 8.
#[test]
fn a_callback_shuts_down_while_another_shard_runs_a_callback() {
    in_time(|| {
        let timer = threads(2);
        let (go, over) = (Arc::new(AtomicBool::new(false)), Count::default());
        let (sender, receiver) = mpsc::channel();
        let set = || {
            let (sender, gate, ended) = (sender.clone(), Arc::clone(&go), over.clone());
            let busy = move || {
                sender.send(()).expect("the test waits");
                until("the shutdown has returned", || gate.load(Ordering::SeqCst));
                ended.one();
            };
            timer.schedule_every(ms(1), busy).expect("the timer is open");
            after(&timer, HOUR, || ());
        };
        // On a machine with one core both callbacks are on one shard, which would wait for itself.
        if on_shard(&timer, 1, set).is_none() {
            return;
        }
        hear(&receiver);
        let log = Log::new();
        let set = || {
            let (inner, seen, entries, gate) = (timer.clone(), over.clone(), log.clone(), Arc::clone(&go));
            let shutdown = move || {
                let unfired = inner.shutdown();
                entries.add((unfired.len(), seen.get()));
                gate.store(true, Ordering::SeqCst);
            };
            after(&timer, ms(1), shutdown);
        };
        on_shard(&timer, 0, set).expect("there are two shards");
        until("both callbacks have ended", || over.get() == 1);
        assert_eq!(
            log.take(),
            [(1, 0)],
            "the one that was far off comes back before the other callback ends"
        );
        is_balanced(&timer);
    });
}
