//! What a callback may do: schedule, cancel, reschedule, move the clock, use another timer.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use shardwheel::{ManualClock, Timer, TimerKey};

use crate::support::{
    Built, Count, HOUR, Log, after, both, by_hand, in_time, is_balanced, manual, ms, on_shard, pass, secs,
    threads, until,
};

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

/// A callback that schedules itself in 100 ms, at a tick of 100 ms, runs five times in 500 ms;
/// Netty asks for three. Promise 1.
#[test]
fn a_callback_that_schedules_itself_runs_at_each_tick() {
    let (timer, clock) = by_hand(Timer::builder().tick(ms(100)));
    let runs = Count::default();
    rearm(&timer, ms(100), 10, runs.clone());
    for run in 0..=5 {
        assert_eq!(runs.get(), run);
        clock.advance(ms(100));
    }
    is_balanced(&timer);
    // The pending callback holds a handle of its timer.
    assert_eq!(timer.shutdown().len(), 1);
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

/// A callback postpones a timer that is due with it, and advances the deadline of a later one.
/// Promises 2 and 7.
#[test]
fn a_callback_reschedules_other_due_timers() {
    let (timer, clock) = manual();
    let (log, keys) = (Log::new(), Arc::new(Mutex::new(Vec::<TimerKey>::new())));
    let set = |delay, name: &'static str| {
        let (inner, keys, log, time) = (timer.clone(), Arc::clone(&keys), log.clone(), clock.clone());
        let callback = move || {
            log.add((name, time.elapsed()));
            for key in keys.lock().expect("no callback panics").drain(..) {
                _ = inner.reschedule_after(key, ms(15));
            }
        };
        after(&timer, delay, callback)
    };
    let neighbours = [set(ms(10), "pair"), set(ms(10), "pair"), set(HOUR, "late")];
    *keys.lock().expect("no callback panics") = neighbours.into();
    clock.advance(ms(24));
    assert_eq!(log.take(), [("pair", ms(10))]);
    clock.advance(ms(1));
    let mut moved = log.take();
    moved.sort_unstable();
    assert_eq!(moved, [("late", ms(25)), ("pair", ms(25))]);
    is_balanced(&timer);
}

/// A callback moves its own clock, by steps and by a jump: what becomes due runs after the
/// callback, at the time that it finds. Promise 7.
#[test]
fn a_callback_may_move_its_clock() {
    in_time(|| {
        let (timer, clock) = manual();
        let log = Log::new();
        let (entries, time) = (log.clone(), clock.clone());
        let slow = move || {
            time.advance(ms(50));
            time.jump(ms(50));
            entries.add(("slow", time.elapsed()));
        };
        after(&timer, ms(10), slow);
        let (entries, time) = (log.clone(), clock.clone());
        let next = move || entries.add(("next", time.elapsed()));
        after(&timer, ms(20), next);
        clock.advance(ms(30));
        assert_eq!(log.take(), [("slow", ms(110)), ("next", ms(110))]);
        assert_eq!(clock.elapsed(), ms(110));
        is_balanced(&timer);
    });
}

/// A callback uses another timer on the same clock, and one on a clock of its own, which it moves.
/// Promise 7.
#[test]
fn a_callback_may_use_another_timer() {
    in_time(|| {
        let (timer, clock) = manual();
        let same = Timer::builder().clock(clock.clone()).built();
        let (other, others) = manual();
        let log = Log::new();
        let (inner, entries) = (same.clone(), log.clone());
        let callback = move || {
            let on_same = entries.clone();
            after(&inner, ms(5), move || on_same.add("same"));
            after(&other, secs(1), move || entries.add("other"));
            others.advance(secs(1));
        };
        after(&timer, ms(10), callback);
        clock.advance(ms(14));
        assert_eq!(log.take(), ["other"]);
        clock.advance(ms(1));
        assert_eq!(log.take(), ["same"]);
        is_balanced(&timer);
        is_balanced(&same);
    });
}

/// A callback that has used another timer in between still schedules on its own shard, whichever
/// that is. Promise 7.
#[test]
fn a_callback_that_used_another_timer_schedules_on_its_own_shard() {
    for shard in 0..2 {
        let (timer, clock) = by_hand(Timer::builder().shards(2));
        let (other, inner) = (manual().0, timer.clone());
        let callback = move || {
            after(&other, HOUR, || ());
            after(&inner, HOUR, || ());
        };
        let set = || after(&timer, ms(1), callback.clone());
        if on_shard(&timer, shard, set).is_some() {
            clock.advance(ms(1));
            assert_eq!(timer.stats().shards[shard].pending, 1, "shard {shard}");
        }
    }
}

/// Two threads move the same clock: one after the other, and each due callback runs once. Promises
/// 2 and 7.
#[test]
fn two_threads_may_move_the_clock() {
    in_time(|| {
        let (timer, clock) = manual();
        let count = Count::default();
        timer.schedule_every(ms(1), count.adds()).expect("the timer is open");
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..500).for_each(|_| clock.advance(ms(1))));
            }
        });
        assert_eq!((clock.elapsed(), count.get()), (secs(1), 1_000));
        is_balanced(&timer);
    });
}

/// Callbacks run in the order of their deadlines, with the clock at each deadline in turn, whatever
/// the order in which they were set, and the same in each run. Promise 1.
#[test]
fn callbacks_run_in_the_order_of_their_deadlines() {
    let run = || {
        let (timer, clock) = by_hand(Timer::builder().wheel_size(16));
        let (log, mut delay) = (Log::new(), 1);
        for _ in 0..1_000 {
            // A primitive root of a prime: each delay occurs once, in no obvious order.
            delay = delay * 3 % 1_009;
            let (entries, time, due) = (log.clone(), clock.clone(), ms(delay));
            let callback = move || entries.add((due, time.elapsed()));
            after(&timer, due, callback);
        }
        clock.advance(secs(2));
        log.take()
    };
    let seen = run();
    assert_eq!(seen.len(), 1_000);
    assert!(seen.iter().all(|(due, at)| due == at) && seen.is_sorted());
    assert_eq!(run(), seen);
}
