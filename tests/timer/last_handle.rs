//! The drop of the last handle ends a timer: its threads end, and its callbacks are dropped.

use std::sync::{Arc, Mutex};

use shardwheel::Timer;

use crate::ending::named;
use crate::support::{Count, Dropped, HOUR, after, are_threads, both, ms, pass, until};

/// When the last handle is dropped the threads end, and callbacks are dropped once; while another
/// handle exists, neither happens. Promise 8.
#[test]
fn dropping_the_last_handle_ends_the_threads() {
    let (timer, dropped) = (named("last"), Count::default());
    for _ in 0..1_000 {
        let held = Dropped(dropped.clone());
        after(&timer, HOUR, move || drop(held));
    }
    let other = timer.clone();
    drop(timer);
    are_threads("last-", 2);
    assert_eq!(dropped.get(), 0);
    drop(other);
    assert_eq!(dropped.get(), 1_000);
    are_threads("last-", 0);
}

/// The drops of some callbacks panic when the last handle is dropped: the panics are caught, and
/// all callbacks are dropped. Promises 7 and 8.
#[test]
fn dropping_the_last_handle_drops_all_callbacks_if_some_panic() {
    struct PanicsInDrop(Dropped);
    impl Drop for PanicsInDrop {
        fn drop(&mut self) {
            assert_eq!(self.0.0.get(), usize::MAX, "a drop panics");
        }
    }
    for (timer, _clock) in both() {
        let (dropped, panics) = (Count::default(), Count::default());
        for _ in 0..3 {
            let (held, panics) = (Dropped(dropped.clone()), PanicsInDrop(Dropped(panics.clone())));
            after(&timer, HOUR, move || drop((held, panics)));
        }
        drop(timer);
        assert_eq!((dropped.get(), panics.get()), (3, 3));
    }
}

/// What is due at the same tick does not run any more: the timer ends with the handle. Promise 8.
#[test]
fn nothing_runs_after_the_callback_that_drops_the_last_handle() {
    for (timer, clock) in both() {
        let (last, count) = (Arc::new(Mutex::new(None::<Timer>)), Count::default());
        // A callback that runs before the handle is there waits for it.
        let mut handle = last.lock().expect("no panic");
        let deadline = timer.now() + ms(20);
        for _ in 0..3 {
            let (last, count) = (Arc::clone(&last), count.clone());
            let callback = move || {
                count.one();
                drop(last.lock().map(|mut last| last.take()));
            };
            timer.schedule_at(deadline, callback).expect("the timer is open");
        }
        *handle = Some(timer);
        drop(handle);
        pass(&clock, ms(30));
        until("the callbacks are dropped", || Arc::strong_count(&last) == 1);
        assert_eq!(count.get(), 1);
    }
}
