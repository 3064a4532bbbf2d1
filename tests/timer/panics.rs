//! Panics of callbacks, hooks, drops and schedules are caught, counted and reported, and affect no
//! other timer.

use std::panic::panic_any;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use shardwheel::{CallbackPanic, Job, ManualClock, Timer, TimerKey};

use crate::support::{Bomb, Count, Log, after, by_hand, is_balanced, ms, panics, survives, while_unwinding};

/// What the hook got: the timer's key, and the message.
type Told = (Option<TimerKey>, Option<String>);

/// A manual timer whose hook logs its arguments.
fn with_hook() -> (Timer, ManualClock, Log<Told>) {
    let log = Log::new();
    let entries = log.clone();
    let hook = move |panic: &CallbackPanic<'_>| {
        assert!(format!("{panic:?}").contains("CallbackPanic"));
        entries.add((panic.key(), panic.message().map(str::to_owned)));
    };
    let (timer, clock) = by_hand(Timer::builder().on_panic(hook));
    (timer, clock, log)
}

/// The hook gets the timer's key, the panic's payload unchanged, and its message: a literal, a formatted
/// one, or none. Promise 7.
#[test]
fn the_hook_gets_the_key_and_the_message() {
    let reports = Log::new();
    let entries = reports.clone();
    let hook = move |panic: &CallbackPanic<'_>| {
        let number = panic.payload().downcast_ref::<u64>().copied();
        entries.add((panic.key(), panic.message().map(str::to_owned), number));
    };
    let (timer, clock) = by_hand(Timer::builder().on_panic(hook));
    let callbacks: [fn(); 3] = [|| panic!("a literal"), || panic!("made of {}", "two"), || panic_any(7_u64)];
    let keys = callbacks.map(|callback| after(&timer, ms(5), callback));
    clock.advance(ms(5));
    let seen = reports.take();
    let messages = [(Some("a literal"), None), (Some("made of two"), None), (None, Some(7))];
    for (key, (message, number)) in keys.into_iter().zip(messages) {
        assert!(seen.contains(&(Some(key), message.map(str::to_owned), number)), "{message:?}: {seen:?}");
    }
    assert_eq!((seen.len(), timer.stats().panics), (3, 3));
}

/// A panic of the hook is caught as well, and so is a panic in the drop of the hook's panic
/// payload. Promise 7.
#[test]
fn a_panic_of_the_hook_is_caught() {
    for in_drop in [false, true] {
        let hook = move |_: &CallbackPanic<'_>| {
            if in_drop {
                panic_any(Bomb);
            }
            panic!("the hook panics");
        };
        let (timer, clock) = by_hand(Timer::builder().on_panic(hook));
        let count = Count::default();
        for _ in 0..3 {
            let mine = count.clone();
            after(&timer, ms(5), || panic!("a callback panics"));
            after(&timer, ms(5), || panic_any(Bomb));
            after(&timer, ms(6), move || mine.one());
        }
        clock.advance(ms(10));
        assert_eq!((count.get(), timer.stats().panics), (3, 6));
        is_balanced(&timer);
    }
}

/// The drop of what a callback holds panics after a run: the panic is counted and reported, and
/// later callbacks run. Checked for a timer that fires once, and for a recurring timer that ends,
/// or is cancelled while it runs. Promise 7.
#[test]
fn a_panic_in_the_drop_of_a_callback_is_reported() {
    let (timer, clock, reports) = with_hook();
    let held = Bomb;
    let once = after(&timer, ms(5), move || drop(held));

    let (held, mut left) = (Bomb, 2);
    let schedule = move |at: Instant| {
        left -= 1;
        (left >= 0).then(|| at + ms(5))
    };
    let callback = move || _ = &held;
    let ends = timer.schedule_with(schedule, callback).expect("the timer is open");

    let (held, inner, own) = (Bomb, timer.clone(), Arc::new(Mutex::new(None)));
    let key = Arc::clone(&own);
    let callback = move || {
        let _held = &held;
        assert!(inner.cancel(key.lock().expect("no thread panics with the lock").expect("it is set")));
    };
    *own.lock().expect("no thread panics with the lock") =
        Some(timer.schedule_every(ms(7), callback).expect("the timer is open"));

    let count = Count::default();
    timer.schedule_every(ms(1), count.adds()).expect("the timer is open");
    clock.advance(ms(20));
    let message = || Some("a drop panics".to_owned());
    assert_eq!(reports.take(), [(Some(once), message()), (None, message()), (Some(ends), message())]);
    assert_eq!((count.get(), timer.stats().panics), (20, 3));
    is_balanced(&timer);
}

/// A schedule that panics ends its timer, and no other. Promise 7.
#[test]
fn a_panicking_schedule_ends_its_timer_only() {
    let (timer, clock, reports) = with_hook();
    let mut asked = 0;
    let schedule = move |at: Instant| {
        asked += 1;
        assert!(asked <= 3, "the schedule panics");
        Some(at + ms(5))
    };
    let count = Count::default();
    let key = timer.schedule_with(schedule, count.adds()).expect("the timer is open");
    clock.advance(ms(100));
    assert_eq!(reports.take(), [(Some(key), Some("the schedule panics".to_owned()))]);
    assert_eq!((count.get(), timer.stats().pending, timer.cancel(key)), (3, 0, false));
    is_balanced(&timer);
}

/// A callback panics after it has shut its timer down, and so does the drop of one that recurs: each
/// panic is caught and reported, and neither the shutdown nor the move of the clock has it. Promises 7
/// and 8.
#[test]
fn a_panic_after_a_shutdown_is_reported() {
    let (timer, clock, reports) = with_hook();
    let (inner, handed_back) = (timer.clone(), Log::new());
    let entries = handed_back.clone();
    let callback = move || {
        entries.add(inner.shutdown().len());
        panic!("after the end");
    };
    let key = after(&timer, ms(5), callback);
    after(&timer, ms(5), || unreachable!("shutdown returns the callback"));
    clock.advance(ms(10));
    assert_eq!(reports.take(), [(Some(key), Some("after the end".to_owned()))]);
    assert_eq!((handed_back.take(), timer.stats().panics), (vec![1], 1));
    is_balanced(&timer);

    let (timer, clock, reports) = with_hook();
    let (held, inner) = (Bomb, timer.clone());
    let callback = move || {
        let _held = &held;
        drop(inner.shutdown());
    };
    timer.schedule_every(ms(5), callback).expect("the timer is open");
    clock.advance(ms(10));
    assert_eq!(reports.take(), [(None, Some("a drop panics".to_owned()))]);
    assert_eq!(timer.stats().panics, 1);
    is_balanced(&timer);
}

/// A schedule that holds a bomb, and ends after `left` occurrences.
fn explosive(mut left: u32) -> impl FnMut(Instant) -> Option<Instant> + Send {
    let bomb = Bomb;
    move |at| {
        let _bomb = &bomb;
        left = left.checked_sub(1)?;
        Some(at + ms(5))
    }
}

/// Sets a timer whose callback's and schedule's drops panic.
fn with_two_bombs(timer: &Timer, left: u32) -> TimerKey {
    let bomb = Bomb;
    timer.schedule_with(explosive(left), move || _ = &bomb).expect("the timer is open")
}

/// Sets a hundred timers that fire once, and a hundred that recur; the drop of each panics.
fn two_hundred(timer: &Timer) -> Vec<TimerKey> {
    let set = |i| {
        let bomb = Bomb;
        let key = if i < 100 {
            timer.schedule_after(ms(5), move || drop(bomb)).ok()
        } else {
            timer.schedule_every(ms(5), move || _ = &bomb).ok()
        };
        key.expect("the timer is open")
    };
    (0..200).map(set).collect()
}

/// Checks how many panics were reported since the last check, and how many have been counted.
fn are_told(timer: &Timer, reports: &Log<Told>, since: usize, count: u64) {
    assert_eq!((reports.take().len(), timer.stats().panics), (since, count));
}

/// An executor panics, and so do the drops of its jobs: each panic counts. Promise 7.
#[test]
fn the_panics_of_an_executor_and_of_its_jobs_drops_all_count() {
    survives(|| {
        let log = Log::new();
        let entries = log.clone();
        let hook = move |panic: &CallbackPanic<'_>| entries.add((panic.key(), None));
        let executor = |_job: Job| panic!("the executor panics");
        let (timer, clock) = by_hand(Timer::builder().on_panic(hook).executor(executor));
        two_hundred(&timer);
        clock.advance(ms(5));
        are_told(&timer, &log, 400, 400);
        is_balanced(&timer);
    });
}

/// Guards, what a shutdown returned, and calls of `cancel` in a drop, while a panic unwinds: each
/// panic of a callback's drop counts. Promise 7.
#[test]
fn the_panics_of_drops_count_while_another_panic_unwinds() {
    survives(|| {
        let (timer, _clock, reports) = with_hook();
        let guards: Vec<_> = two_hundred(&timer).into_iter().map(|key| timer.guard(key)).collect();
        while_unwinding(|| drop(guards));
        are_told(&timer, &reports, 200, 200);
        let keys = two_hundred(&timer);
        while_unwinding(|| assert!(keys.into_iter().all(|key| timer.cancel(key))));
        are_told(&timer, &reports, 200, 400);
        let keys = two_hundred(&timer);
        while_unwinding(|| assert_eq!(timer.cancel_batch(keys), 200));
        are_told(&timer, &reports, 200, 600);
        two_hundred(&timer);
        let mut unfired = timer.shutdown();
        while_unwinding(|| drop((unfired.next(), unfired)));
        are_told(&timer, &reports, 200, 800);
        is_balanced(&timer);
    });
}

/// The drops of a schedule and its callback panic: both count, wherever they are dropped. Promise
/// 7.
#[test]
fn the_drops_of_a_schedule_and_its_callback_both_count() {
    survives(|| {
        let (timer, clock, reports) = with_hook();
        let told = |count| assert_eq!(reports.take().len(), count);
        with_two_bombs(&timer, 1);
        clock.advance(ms(5));
        told(2);
        drop(timer.guard(with_two_bombs(&timer, 9)));
        told(2);
        // The panic of a cancelled callback is the caller's.
        let key = with_two_bombs(&timer, 9);
        assert_eq!(panics(|| timer.cancel(key)), "a drop panics");
        told(1);
        let keys = [(); 3].map(|()| with_two_bombs(&timer, 9));
        assert_eq!(panics(|| timer.cancel_batch(keys)), "a drop panics");
        told(3 + 2);
        let [bomb, inner] = [Bomb, Bomb];
        let schedule = move |_: Instant| {
            let _inner = &inner;
            panic!("the schedule panics")
        };
        assert_eq!(
            panics(|| timer.schedule_with(schedule, move || _ = &bomb).is_ok()),
            "the schedule panics"
        );
        told(2);
        with_two_bombs(&timer, 9);
        drop(timer.shutdown());
        told(2);
        assert_eq!(timer.stats().panics, 2 + 2 + 1 + 5 + 2 + 2);
        is_balanced(&timer);
    });
}
