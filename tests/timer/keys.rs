//! What a key is good for: questions, guards, and what had not fired. Weak handles.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use shardwheel::{Timer, TimerKey};

use crate::support::{Bomb, Count, Dropped, HOUR, after, both, is_balanced, manual, ms, pass, secs, threads};

/// A timer says of a key whether its timer is pending, and when it is due, rounded up to a tick.
/// Promise 6.
#[test]
fn a_timer_says_what_is_pending_and_when() {
    let (timer, clock) = manual();
    let start = timer.now();
    let asked = |key| (timer.is_pending(key), timer.deadline(key));
    let key = timer.schedule_at(start + Duration::from_micros(4_500), || ()).expect("the timer is open");
    let never = after(&timer, Duration::MAX, || ());
    assert_eq!(asked(key), (true, Some(start + ms(5))));
    assert_eq!(asked(never), (true, None));
    let key = timer.reschedule_after(key, secs(5)).expect("it is pending");
    assert_eq!(asked(key), (true, Some(start + secs(5))));
    clock.advance(secs(5));
    assert_eq!(asked(key), (false, None));
    assert!(timer.cancel(never));
    assert_eq!(asked(never), (false, None));
    let other = after(&threads(1), HOUR, || ());
    assert_eq!(asked(other), (false, None), "a key of another timer");
    let last = after(&timer, HOUR, || ());
    let unfired = timer.shutdown();
    assert_eq!(asked(last), (false, None));
    drop(unfired);
}

/// A recurring timer is pending while its callback runs, and has no deadline then. Promise 6.
#[test]
fn a_recurring_timer_is_pending_while_it_runs() {
    let (timer, clock) = manual();
    let (own, weak) = (Arc::new(OnceLock::<TimerKey>::new()), timer.downgrade());
    let (known, asked) = (Arc::clone(&own), Count::default());
    let count = asked.clone();
    let ask = move || {
        let (timer, key) =
            (weak.upgrade().expect("the test has it"), known.get().copied().expect("it is set"));
        assert_eq!((timer.is_pending(key), timer.deadline(key)), (true, None));
        assert!(!timer.is_pending(key) || timer.cancel(key));
        assert!(!timer.is_pending(key));
        count.one();
    };
    let key = timer.schedule_every(ms(10), ask).expect("the timer is open");
    own.set(key).expect("it is set once");
    assert_eq!((timer.is_pending(key), timer.deadline(key)), (true, Some(timer.now() + ms(10))));
    clock.advance(secs(1));
    assert_eq!((asked.get(), timer.is_pending(key), timer.deadline(key)), (1, false, None));
    assert_eq!(timer.stats().panics, 0);
    is_balanced(&timer);
}

/// A guard cancels its timer when it is dropped, one that recurs too, also while it runs. Promise 2.
#[test]
fn a_guard_cancels() {
    for (timer, clock) in both() {
        let held = Arc::new(());
        let (once, every) = (Arc::clone(&held), Arc::clone(&held));
        let once = after(&timer, HOUR, move || drop(once));
        let every = timer.schedule_every(HOUR, move || assert!(Arc::strong_count(&every) > 0));
        let guards = [once, every.expect("the timer is open")].map(|key| timer.guard(key));
        assert_eq!(guards[0].key(), once);
        assert_eq!(Arc::strong_count(&held), 3);
        drop(guards);
        assert_eq!((Arc::strong_count(&held), timer.stats().cancelled), (1, 2));
        pass(&clock, ms(1));
        is_balanced(&timer);
    }
}

/// A guard keeps its timer over reschedules by it, to other nodes and keys too. Promise 2.
#[test]
fn a_guard_that_reschedules_keeps_its_timer() {
    for (timer, _clock) in both() {
        let once = after(&timer, HOUR, || ());
        let every = timer.schedule_every(HOUR, || ()).expect("the timer is open");
        for key in [once, every] {
            let mut guard = timer.guard(key);
            assert!(guard.reschedule_after(HOUR / 2), "earlier: it moves to another node");
            assert_ne!(guard.key(), key);
            assert!(!timer.is_pending(key) && timer.is_pending(guard.key()));
            let (now, later) = (timer.now(), timer.now() + 2 * HOUR);
            assert!(guard.reschedule_at(later));
            assert!(timer.deadline(guard.key()).is_some_and(|due| due >= later && due < now + 3 * HOUR));
            let pending = timer.stats().pending;
            drop(guard);
            assert_eq!(timer.stats().pending, pending - 1);
        }
        let mut ended = timer.guard(once);
        assert!(!ended.reschedule_after(HOUR) && !ended.reschedule_at(timer.now()));
        assert!(!threads(1).guard(after(&timer, HOUR, || ())).reschedule_after(HOUR), "another timer's key");
        assert_eq!((timer.stats().cancelled, timer.stats().pending), (2, 1));
    }
}

/// A detached guard, and one whose timer has ended or is of another `Timer`, cancels nothing.
/// Promise 2.
#[test]
fn a_guard_without_a_timer_does_nothing() {
    let (timer, clock) = manual();
    let key = after(&timer, ms(5), || ());
    assert_eq!(timer.guard(key).detach(), key);
    assert!(timer.is_pending(key));
    drop(threads(1).guard(key));
    assert!(timer.is_pending(key));
    let guard = timer.guard(key);
    clock.advance(ms(5));
    drop(guard);
    assert_eq!((timer.stats().fired, timer.stats().cancelled), (1, 0));
    // A guard outlives its timer, and does not keep it.
    let guard = timer.guard(after(&timer, HOUR, || ()));
    let weak = timer.downgrade();
    drop(timer);
    assert!(weak.upgrade().is_none());
    drop(guard);
}

/// What had not fired has the key that its owner knows, also after a move, and of a recurring
/// timer. Promise 8.
#[test]
fn what_had_not_fired_has_its_key() {
    let (timer, clock) = manual();
    let moved = after(&timer, HOUR, || ());
    let mut keys = vec![
        after(&timer, secs(5), || ()),
        timer.reschedule_after(moved, ms(5)).expect("it is pending"),
        after(&timer, Duration::MAX, || ()),
        timer.schedule_every(ms(3), || ()).expect("the timer is open"),
    ];
    keys.extend((0..1_000).map(|i| after(&timer, HOUR + ms(i), || ())));
    keys.push(timer.reschedule_after(keys[0], secs(6)).expect("it is pending"));
    clock.advance(ms(4));
    let deadlines: Vec<_> = keys.iter().map(|&key| (key, timer.deadline(key))).collect();
    let unfired: Vec<_> = timer.shutdown().map(|task| (task.key(), task.deadline())).collect();
    assert_eq!(unfired.len(), 1_004);
    for found in unfired {
        assert!(deadlines.contains(&found), "{found:?}");
        assert!(!timer.cancel(found.0));
    }
}

/// A recurring callback that holds a weak handle does not keep its timer alive. Promise 8.
#[test]
fn a_weak_handle_keeps_no_timer_alive() {
    for (timer, _clock) in both() {
        let dropped = Count::default();
        let (tells, weak) = (Dropped(dropped.clone()), timer.downgrade());
        let callback = move || {
            let _tells = &tells;
            drop(weak.upgrade());
        };
        timer.schedule_every(ms(1), callback).expect("the timer is open");
        let weak = timer.downgrade().clone();
        let again: Timer = weak.upgrade().expect("a handle exists");
        drop(timer);
        assert!(weak.upgrade().is_some() && dropped.get() == 0);
        drop(again);
        // A callback in real time may be the last to hold the timer.
        crate::support::until("the timer has ended", || dropped.get() == 1);
        assert!(weak.upgrade().is_none());
    }
}

/// A batch cancels each pending timer, recurring ones and those of other shards too, and counts
/// them; a panic in a drop comes after the others. Promises 2 and 7.
#[test]
fn a_batch_cancels_and_counts() {
    let timer = threads(2);
    let set = || (0..50).map(|i| after(&timer, HOUR + ms(i), || ())).collect::<Vec<_>>();
    let mut keys = set();
    keys.extend(std::thread::scope(|scope| scope.spawn(set).join().expect("no panic")));
    keys.push(timer.schedule_every(HOUR, || ()).expect("the timer is open"));
    keys.push(after(&threads(1), HOUR, || ()));
    assert!(timer.cancel(keys[7]));
    assert_eq!((timer.cancel_batch(keys.iter().copied()), timer.cancel_batch(keys)), (100, 0));
    let bomb = Bomb;
    let mut keys = vec![after(&timer, HOUR, move || drop(bomb))];
    keys.extend(set());
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| timer.cancel_batch(keys)));
    assert!(panics.is_err());
    assert_eq!(timer.stats().pending, 0);
    is_balanced(&timer);
}
