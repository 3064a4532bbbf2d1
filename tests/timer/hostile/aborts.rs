//! Drops that panic, and timers that are used at a thread's end, do not abort the process.
//!
//! Each test runs in a process of its own. One panicking drop may reach its caller; a second one
//! must not meet it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use shardwheel::{Job, ManualClock, Schedule, Timer};

use crate::support::{
    Bomb, Count, Dropped, HOUR, after, by_hand, is_balanced, manual, ms, survives, threads, until,
};

/// Runs an action when its thread ends.
struct AtTheEnd(Option<Box<dyn FnOnce()>>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        if let Some(act) = self.0.take() {
            act();
        }
    }
}

thread_local! {
    static AT_THE_END: Cell<AtTheEnd> = const { Cell::new(AtTheEnd(None)) };
}

/// Uses all thread-locals of this crate.
fn use_a_timer() {
    let (timer, clock) = manual();
    after(&timer, ms(1), || ());
    clock.advance(ms(1));
    drop(threads(1).shutdown());
}

/// Runs `act` when a thread ends. Some thread-locals of this crate are gone by then.
fn at_a_threads_end(act: impl FnOnce() + Send + 'static) {
    let is_done = std::sync::Arc::new(AtomicBool::new(false));
    let done = std::sync::Arc::clone(&is_done);
    let thread = thread::spawn(move || {
        let act = move || {
            act();
            done.store(true, Ordering::SeqCst);
        };
        AT_THE_END.set(AtTheEnd(Some(Box::new(act))));
        use_a_timer();
    });
    thread.join().expect("the thread does not panic");
    assert!(is_done.load(Ordering::SeqCst));
}

/// A thread-local holds the last handle of a timer, with threads or with a manual clock. Promise 7.
#[test]
fn a_timer_may_be_dropped_at_a_threads_end() {
    survives(|| {
        for (timer, clock) in [(threads(1), ManualClock::new()), manual()] {
            let dropped = Count::default();
            let held = Dropped(dropped.clone());
            after(&timer, HOUR, move || drop(held));
            at_a_threads_end(move || drop(timer));
            clock.advance(HOUR);
            assert_eq!(dropped.get(), 1);
        }
    });
}

/// A thread-local moves a manual clock. Promise 7.
#[test]
fn a_manual_clock_may_be_moved_at_a_threads_end() {
    survives(|| {
        let (count, (timer, clock)) = (Count::default(), manual());
        after(&timer, ms(5), count.adds());
        at_a_threads_end(move || clock.advance(ms(5)));
        assert_eq!((count.get(), timer.stats().fired), (1, 1));
    });
}

/// A schedule whose second occurrence is none, or panics, and which may hold a bomb.
struct Ends {
    first: bool,
    by_panic: bool,
    _bomb: Option<Bomb>,
}

impl Ends {
    fn new(by_panic: bool, bomb: Option<Bomb>) -> Self {
        Self { first: true, by_panic, _bomb: bomb }
    }
}

impl Schedule for Ends {
    fn next(&mut self, previous: Instant) -> Option<Instant> {
        let is_first = std::mem::take(&mut self.first);
        assert!(is_first || !self.by_panic, "a schedule panics");
        is_first.then(|| previous + ms(5))
    }
}

/// Sets a timer whose callback's drop panics, and other timers; `pass` lets them fire. The shard
/// works on.
fn with_neighbours(timer: &Timer, schedule: Ends, mut pass: impl FnMut()) {
    let (bomb, count) = (Bomb, Count::default());
    timer.schedule_with(schedule, move || _ = &bomb).expect("the timer is open");
    for delay in [5, 50] {
        after(timer, ms(delay), count.adds());
    }
    pass();
    until("the neighbours fire", || count.get() == 2 && timer.stats().pending == 0);
    until("the panic is counted", || timer.stats().panics >= 1);
    is_balanced(timer);
}

/// A schedule panics, and the drop of its callback does, too, also on an executor. Or the schedule
/// ends, and its drop and that of its callback panic, also as a member of a group. Promise 7.
#[test]
fn a_schedule_and_the_drop_of_its_callback_may_panic() {
    survives(|| {
        for by_panic in [true, false] {
            let ends = || Ends::new(by_panic, (!by_panic).then(|| Bomb));
            with_neighbours(&threads(1), ends(), || ());
            for builder in [Timer::builder(), Timer::builder().executor(Job::run)] {
                let (timer, clock) = by_hand(builder);
                with_neighbours(&timer, ends(), || clock.advance(ms(50)));
            }
            let (timer, clock) = manual();
            with_neighbours(&timer.group(), ends(), || clock.advance(ms(50)));
            assert_eq!(timer.stats().panics, 2, "of the schedule and of the callback");
        }
    });
}

/// The drop of a cancelled callback panics with a bomb, and the caller's iterator of keys panics
/// after it. Promise 7.
#[test]
fn the_keys_of_a_batch_may_panic_and_so_may_the_drop_of_a_callback() {
    survives(|| {
        let (timer, _clock) = manual();
        let bomb = PanicsWithABomb;
        let mut keys = vec![after(&timer, HOUR, move || drop(bomb))];
        keys.extend((1..10).map(|_| after(&timer, HOUR, || ())));
        let bad = (0..20).map(|i| keys[i]);
        assert!(catch_unwind(AssertUnwindSafe(|| timer.cancel_batch(bad))).is_err());
        assert_eq!((timer.stats().cancelled, timer.stats().pending), (2, 8));
        is_balanced(&timer);
    });
}

struct PanicsWithABomb;

impl Drop for PanicsWithABomb {
    fn drop(&mut self) {
        std::panic::panic_any(Bomb);
    }
}

/// A clock whose drop panics.
struct Explosive {
    _bomb: Bomb,
}

impl shardwheel::Clock for Explosive {
    fn now(&self) -> Instant {
        Instant::now()
    }
}

/// The drops of the clock, the executor and the hook panic, whether the timer is built or refused.
/// Promise 7.
#[test]
fn a_clock_an_executor_and_a_hook_whose_drops_panic() {
    for shards in [0, 1, 2] {
        survives(|| {
            let [hook, executor] = [Bomb, Bomb];
            let builder = Timer::builder()
                .shards(shards)
                .clock(Explosive { _bomb: Bomb })
                .executor(move |job: Job| {
                    let _ = &executor;
                    job.run();
                })
                .on_panic(move |_| {
                    let _ = &hook;
                });
            let built = catch_unwind(AssertUnwindSafe(|| drop(builder.build())));
            drop(built);
        });
    }
}
