//! Clocks that panic, or shut the timer down, at each reading that a shard makes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;

use futures::executor::block_on;
use shardwheel::{Job, ManualClock, Timer, UnfiredTask};

use crate::support::{
    Built, Count, Dropped, Fuse, HOUR, Log, Tampered, after, is_balanced, is_on_shard_of, ms, until, watched,
};

/// Readings that are tried: more than a shard makes in a test.
const READINGS: usize = 12;

/// A timer with one shard, whose clock runs `act` at the n-th reading after the fuse was set. With
/// a manual clock readings by any thread count, else only readings by the shard's thread.
fn tampered(manual: Option<ManualClock>, act: impl Fn() + Send + Sync + 'static) -> (Timer, Fuse) {
    let fuse = Fuse::default();
    let (lit, by_hand) = (fuse.clone(), manual.is_some());
    let before = move || {
        if (by_hand || is_on_shard_of("broken-")) && lit.goes_off() {
            act();
        }
    };
    let builder = Timer::builder().shards(1).thread_name("broken").clock(Tampered { before, manual });
    (builder.built(), fuse)
}

fn panics() {
    panic!("a clock panics");
}

/// A clock panics at one reading on the shard's thread: the panic is counted, all timers fire, and
/// all sleeps end in time. Promise 7.
#[test]
fn a_panicking_clock_is_counted_and_the_shard_works_on() {
    for nth in 1..=READINGS {
        watched(move || {
            let (timer, fuse) = tampered(None, panics);
            let (count, begin, sleep) = (Count::default(), timer.now(), timer.sleep(ms(60)));
            let schedule = |delay| {
                after(&timer, ms(delay), count.adds());
            };
            [30, 60, 90].into_iter().for_each(schedule);
            let sleeper = thread::spawn(move || (block_on(sleep), begin.elapsed()));
            fuse.set(nth);
            schedule(1);
            until("all timers fire", || count.get() == 4);
            let (slept, took) = sleeper.join().expect("the thread does not panic");
            assert!(slept.is_ok() && took >= ms(60), "reading {nth}: {slept:?} after {took:?}");
            assert!(!fuse.is_out() || timer.stats().panics >= 1, "reading {nth}: not counted");
            assert!(timer.shutdown().is_empty());
            is_balanced(&timer);
        });
    }
}

/// A clock panics while a job runs: the recurring timer goes on, or ends and its callback is
/// dropped. Promise 7.
#[test]
fn a_panicking_clock_in_a_job_leaves_one_outcome() {
    for nth in 1..=4 {
        let (clock, jobs) = (ManualClock::new(), Log::<Job>::new());
        let (keep, fuse) = (jobs.clone(), Fuse::default());
        let lit = fuse.clone();
        let before = move || assert!(!lit.goes_off(), "a clock panics");
        let builder = Timer::builder().shards(1).clock(Tampered { before, manual: Some(clock.clone()) });
        let timer = builder.executor(move |job: Job| keep.add(job)).built();
        let (count, dropped) = (Count::default(), Count::default());
        let (mine, held) = (count.clone(), Dropped(dropped.clone()));
        let callback = move || {
            let _held = &held;
            mine.one();
        };
        timer.schedule_every(ms(10), callback).expect("the timer is open");
        clock.advance(ms(10));
        let job = jobs.take().pop().expect("it is due");
        fuse.set(nth);
        drop(catch_unwind(AssertUnwindSafe(|| job.run())));
        fuse.set(0);
        clock.advance(ms(10));
        let before = count.get();
        jobs.take().into_iter().for_each(Job::run);
        clock.advance(ms(10));
        let goes_on = count.get() > before;
        let state = (timer.stats().pending, dropped.get());
        assert_eq!(state, if goes_on { (1, 0) } else { (0, 1) }, "reading {nth}");
    }
}

/// What the clock's shutdown returned.
type Returned = Arc<Mutex<Option<Vec<UnfiredTask>>>>;

/// A timer whose clock shuts it down.
fn shuts_down(manual: Option<ManualClock>) -> (Timer, Fuse, Returned) {
    let (own, returned) = (Arc::new(Mutex::new(None::<Timer>)), Returned::default());
    let (timer, result) = (Arc::clone(&own), Arc::clone(&returned));
    let act = move || {
        let timer = timer.lock().expect("no thread panics with the lock").take();
        let unfired = timer.expect("it goes off once").shutdown().collect();
        *result.lock().expect("no thread panics with the lock") = Some(unfired);
    };
    let (timer, fuse) = tampered(manual, act);
    *own.lock().expect("no thread panics with the lock") = Some(timer.clone());
    (timer, fuse, returned)
}

/// Each of three timers has fired, or was returned by the clock's shutdown or by the one after it.
fn accounts_for_all(
    nth: usize,
    clock: Option<&ManualClock>,
    (timer, fuse, returned): (Timer, Fuse, Returned),
) {
    let (ran, dropped) = (Count::default(), Count::default());
    for delay in [ms(1), ms(20), HOUR] {
        let (mine, held) = (ran.clone(), Dropped(dropped.clone()));
        let callback = move || {
            drop(held);
            mine.one();
        };
        after(&timer, delay, callback);
    }
    fuse.set(nth);
    match clock {
        Some(clock) => clock.advance(ms(20)),
        None => thread::sleep(ms(60)),
    }
    fuse.set(0);
    let later = timer.shutdown().len();
    until("the clock's shutdown has returned", || {
        later > 0 || returned.lock().expect("the thread does not panic").is_some()
    });
    let unfired =
        returned.lock().expect("no thread panics with the lock").take().map_or(0, |unfired| unfired.len());
    until("each timer has one outcome", || ran.get() + unfired + later == 3);
    drop((timer, returned));
    assert_eq!(dropped.get(), 3, "reading {nth}");
}

/// A clock shuts the timer down when the shard's thread reads it, or a thread that moves a manual clock.
/// Promise 8.
#[test]
fn a_clock_may_shut_the_timer_down() {
    for nth in 1..=READINGS {
        watched(move || accounts_for_all(nth, None, shuts_down(None)));
        watched(move || {
            let clock = ManualClock::new();
            accounts_for_all(nth, Some(&clock), shuts_down(Some(clock.clone())));
        });
    }
}
