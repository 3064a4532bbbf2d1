//! The end of a timer: shutdown, from outside and from callbacks. No callback is lost, and no thread
//! is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
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

/// A recurring timer comes back at shutdown, and runs once when the caller runs it. Promise 8.
#[test]
fn shutdown_returns_a_recurring_timer() {
    for (timer, clock) in both() {
        let count = Count::default();
        timer.schedule_every(ms(10), count.adds()).expect("the timer is open");
        pass(&clock, ms(30));
        until("the timer recurs", || count.get() >= 3);
        let unfired: Vec<_> = timer.shutdown().collect();
        let before = count.get();
        assert_eq!(unfired.len(), 1);
        unfired.into_iter().for_each(UnfiredTask::run);
        assert_eq!(count.get(), before + 1);
        is_balanced(&timer);
    }
}

/// A callback shuts its own timer down. It gets what has not fired, including what was due with it
/// in its own shard, and nothing fires after that. Promises 7 and 8.
#[test]
fn a_callback_may_shut_its_timer_down() {
    in_time(|| {
        for (timer, clock) in both() {
            let late = || unreachable!("shutdown returns the callback");
            let far = || _ = after(&timer, HOUR, late);
            let shards = 0..timer.shards().min(2);
            let elsewhere = shards.filter_map(|shard| on_shard(&timer, shard, far)).count();
            let (go, log) = (Arc::new(AtomicBool::new(false)), Log::new());
            let (inner, gate, entries) = (timer.clone(), Arc::clone(&go), log.clone());
            let callback = move || {
                until("all timers are set", || gate.load(Ordering::SeqCst));
                let unfired = inner.shutdown().len();
                assert!(inner.schedule_after(ms(1), || ()).is_err() && inner.shutdown().is_empty());
                entries.add(unfired);
            };
            after(&timer, ms(5), callback);
            for delay in [ms(6), ms(7), HOUR] {
                after(&timer, delay, late);
            }
            go.store(true, Ordering::SeqCst);
            // After a jump they are due together.
            clock.inspect(|clock| clock.jump(ms(20)));
            until("the timer is shut down", || log.len() == 1);
            assert_eq!((log.take(), timer.stats().pending), (vec![3 + elsewhere], 0));
            assert!(timer.shutdown().is_empty());
            is_balanced(&timer);
        }
    });
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

/// Callbacks of both shards shut the timer down at the same time: one gets all that is left, the
/// other nothing, and neither waits for the other for ever. Promises 7 and 8.
#[test]
fn two_callbacks_may_shut_down_at_once() {
    in_time(|| {
        for _ in 0..20 {
            let (timer, log, running) = (threads(2), Log::new(), Count::default());
            let set = || {
                let (inner, entries, both) = (timer.clone(), log.clone(), running.clone());
                let shutdown = move || {
                    both.one();
                    until("both callbacks run", || both.get() == 2);
                    entries.add(inner.shutdown().len());
                };
                after(&timer, HOUR, || ());
                after(&timer, ms(1), shutdown);
            };
            // On a machine with one core both callbacks are on one shard, which would wait for
            // itself.
            if on_shard(&timer, 1, set).is_none() {
                return;
            }
            on_shard(&timer, 0, set).expect("there are two shards");
            until("both callbacks have ended", || log.len() == 2);
            let mut seen = log.take();
            seen.sort_unstable();
            assert_eq!(seen, [0, 2]);
            is_balanced(&timer);
        }
    });
}

/// A thread shuts a timer down while a callback runs on the thread that moves the manual clock. The
/// shutdown waits for the callback, and returns what is left. Promise 8.
#[test]
fn shutdown_waits_for_the_callback_of_a_manual_clock() {
    in_time(|| {
        let (timer, clock) = manual();
        let (sender, receiver) = mpsc::channel();
        let over = Count::default();
        let ended = over.clone();
        let slow = move || {
            sender.send(()).expect("the test waits");
            thread::sleep(ms(30));
            ended.one();
        };
        timer.schedule_every(ms(10), slow).expect("the timer is open");
        after(&timer, ms(15), || unreachable!("shutdown returns the callback"));
        thread::scope(|scope| {
            scope.spawn(|| clock.advance(ms(12)));
            hear(&receiver);
            assert_eq!((timer.shutdown().len(), over.get()), (2, 1));
        });
        clock.advance(HOUR);
        is_balanced(&timer);
    });
}

/// Threads schedule and cancel, and timers fire, while the timer is shut down: each callback runs,
/// comes back, is cancelled or refused, and is dropped once. Promises 2 and 8.
#[test]
fn each_callback_has_one_outcome_when_shutdown_races_producers() {
    for round in 0..10 {
        let (timer, made, dropped) = (threads(2), Count::default(), Count::default());
        let outcomes = Count::default();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for i in 0..u64::MAX {
                        let (held, fired) = (Dropped(dropped.clone()), outcomes.clone());
                        made.one();
                        let callback = move || {
                            fired.one();
                            drop(held);
                        };
                        let Ok(key) = timer.schedule_after(ms(i % 4), callback) else {
                            outcomes.one();
                            break;
                        };
                        if i % 3 == 0 && timer.cancel(key) {
                            outcomes.one();
                        }
                    }
                });
            }
            thread::sleep(ms(5 + round));
            let unfired = timer.shutdown();
            unfired.for_each(|_| outcomes.one());
        });
        assert_eq!((outcomes.get(), dropped.get()), (made.get(), made.get()));
        is_balanced(&timer);
    }
}
