//! What a callback may do: schedule, itself too, and cancel. Other calls are in `tests/misbehaviour`
//! and `tests/simulation`.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use shardwheel::{ManualClock, Timer, TimerKey};

use crate::support::{Count, Log, after, both, in_time, is_balanced, manual, ms, pass, threads, until};

/// Schedules a callback that schedules itself `left` times, and counts its runs.
fn rearm(timer: &Timer, delay: Duration, left: usize, runs: Count) {
    let inner = timer.clone();
    let callback = move || {
        runs.one();
        if left > 0 {
            rearm(&inner, delay, left - 1, runs);
        }
    };
    after(timer, delay, callback);
}

/// A callback that schedules itself for the past, or for now, runs once a tick: the current tick
/// ends. Promise 7.
#[test]
fn a_callback_that_schedules_itself_for_now_runs_once_a_tick() {
    in_time(|| {
        let (timer, clock) = manual();
        let runs = Count::default();
        rearm(&timer, Duration::ZERO, 1_000_000, runs.clone());
        clock.advance(ms(100));
        assert_eq!(runs.get(), 100);
        clock.jump(ms(100));
        assert_eq!(runs.get(), 101);
        is_balanced(&timer);
        // The pending callback holds a handle of its timer.
        assert_eq!(timer.shutdown().len(), 1);
    });
}

/// In real time a callback that schedules does not deadlock on the bucket that is being flushed;
/// and neither does a callback that waits for another thread's schedule. Promises 3 and 7.
#[test]
fn scheduling_from_callbacks_does_not_deadlock_in_real_time() {
    in_time(|| {
        let (timer, runs) = (threads(2), Count::default());
        for _ in 0..100 {
            rearm(&timer, Duration::ZERO, 20, runs.clone());
        }
        let on_another = timer.clone();
        let counted = runs.clone();
        let outer = move || {
            let add = || rearm(&on_another, ms(1), 0, counted.clone());
            thread::scope(|scope| drop(scope.spawn(add).join()));
        };
        after(&timer, ms(1), outer);
        until("all callbacks have run", || runs.get() == 100 * 21 + 1);
        is_balanced(&timer);
    });
}

/// Sets `count` timers for the same time, each of which cancels all the others. Returns how many
/// cancels succeeded in each callback.
fn cancel_each_other(timer: &Timer, clock: &Option<ManualClock>, count: usize) -> Vec<usize> {
    let (keys, log) = (Arc::new(Mutex::new(Vec::<TimerKey>::new())), Log::new());
    let mut guard = keys.lock().expect("no callback panics");
    for _ in 0..count {
        let (inner, keys, log) = (timer.clone(), Arc::clone(&keys), log.clone());
        let callback = move || {
            let keys = keys.lock().expect("no callback panics");
            log.add(keys.iter().filter(|&&key| inner.cancel(key)).count());
        };
        guard.push(after(timer, ms(5), callback));
    }
    drop(guard);
    pass(clock, ms(5));
    until("no timer is pending", || timer.stats().pending == 0);
    is_balanced(timer);
    until("the callbacks have logged", || log.len() > 0);
    log.take()
}

/// Several timers are due together, and each callback cancels all the others: one fires and the
/// rest are cancelled. Promises 2 and 7.
#[test]
fn of_callbacks_that_cancel_each_other_one_runs() {
    for count in [2, 10, 3_000] {
        for (timer, clock) in both() {
            let cancels = cancel_each_other(&timer, &clock, count);
            assert_eq!(
                cancels,
                [count - 1],
                "the first to fire cancels the rest, also beyond a turn's budget"
            );
        }
    }
}
