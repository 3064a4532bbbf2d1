//! Recurring timers: cancelled, rescheduled, and many at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use shardwheel::{ManualClock, Timer, TimerKey};

use crate::support::{Count, Dropped, HOUR, Log, hear, is_balanced, manual, ms, threads, until};

/// A timer with that period that logs the time on the clock.
fn log_every(timer: &Timer, clock: &ManualClock, period: Duration) -> (TimerKey, Log<Duration>) {
    let log = Log::new();
    let (entries, clock) = (log.clone(), clock.clone());
    let key = timer.schedule_every(period, move || entries.add(clock.elapsed())).expect("the timer is open");
    (key, log)
}

/// A recurring timer fires twice, is cancelled, and fires no more. Promise 2.
#[test]
fn a_cancelled_recurring_timer_fires_no_more() {
    let (timer, clock) = manual();
    let (key, log) = log_every(&timer, &clock, ms(100));
    clock.advance(ms(250));
    assert_eq!(log.take(), [ms(100), ms(200)]);
    assert!(timer.cancel(key) && !timer.cancel(key));
    clock.advance(HOUR);
    assert_eq!(log.len(), 0);
    is_balanced(&timer);
}

/// Ten thousand timers with a period of one millisecond: the count rises by all of them each
/// time. Promise 1.
#[test]
fn many_recurring_timers_all_fire_each_period() {
    const MANY: usize = 10_000;
    let (timer, clock) = manual();
    let count = Count::default();
    for _ in 0..MANY {
        timer.schedule_every(ms(1), count.adds()).expect("the timer is open");
    }
    for round in 1..=20 {
        clock.advance(ms(1));
        assert_eq!(count.get(), round * MANY);
    }
    clock.jump(ms(5));
    assert_eq!(count.get(), 25 * MANY);
    let stats = timer.stats();
    assert_eq!((stats.fired, stats.pending), (25 * MANY as u64, MANY));
    is_balanced(&timer);
}

/// Signals that it runs, and waits until `go`.
fn wait_inside(sender: &Sender<()>, go: &AtomicBool) {
    sender.send(()).expect("the test waits");
    until("the test releases the callback", || go.load(Ordering::SeqCst));
}

/// Another thread cancels a recurring timer while its callback runs: `cancel` returns true at once,
/// and once, and the current occurrence is the last. Promises 2 and 3.
#[test]
fn a_recurring_timer_may_be_cancelled_while_its_callback_runs() {
    let (timer, go, dropped) = (threads(1), Arc::new(AtomicBool::new(false)), Count::default());
    let (sender, receiver) = mpsc::channel();
    let (gate, held) = (Arc::clone(&go), Dropped(dropped.clone()));
    let callback = move || {
        let _held = &held;
        wait_inside(&sender, &gate);
    };
    let key = timer.schedule_every(ms(1), callback).expect("the timer is open");
    hear(&receiver);
    assert_eq!(timer.stats().pending, 1, "one that runs is pending");
    assert_eq!(timer.reschedule_after(key, ms(1)), None, "it is being fired");
    assert!(timer.cancel(key) && !timer.cancel(key));
    assert_eq!((timer.stats().pending, dropped.get()), (0, 0));
    go.store(true, Ordering::SeqCst);
    until("the drop is noted", || dropped.get() == 1);
    thread::sleep(ms(20));
    assert!(receiver.try_recv().is_err(), "it does not come again");
    is_balanced(&timer);
}

/// A recurring timer that is rescheduled goes on from its new deadline at its rate: occurrences
/// between were not due, so they are not missed. Promise 1.
#[test]
fn a_rescheduled_recurring_timer_goes_on_from_its_new_time() {
    let (timer, clock) = manual();
    let (key, log) = log_every(&timer, &clock, ms(100));
    clock.advance(ms(100));
    let key = timer.reschedule_after(key, ms(30)).expect("the timer is pending");
    clock.advance(ms(200));
    assert_eq!(log.take(), [100, 130, 230].map(ms), "brought forward: the one for 200 came at 130");
    let key = timer.reschedule_after(key, ms(250)).expect("the timer is pending");
    clock.advance(ms(400));
    assert_eq!(log.take(), [550, 650].map(ms), "put off: the one for 330 came at 550");
    assert_eq!(timer.stats().pending, 1);
    assert!(timer.cancel(key) && !timer.cancel(key));
    is_balanced(&timer);
}

/// Threads cancel and reschedule recurring timers with a short period: each cancel returns true
/// once, and when all are cancelled none fires. Promises 2 and 3.
#[test]
fn recurring_timers_cancelled_and_rescheduled_under_load_fall_silent() {
    let (timer, count) = (threads(2), Count::default());
    let set = || timer.schedule_every(ms(1), count.adds()).expect("the timer is open");
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0..200 {
                    let mut key = set();
                    thread::sleep(Duration::from_micros(round * 13 % 2_000));
                    key = timer.reschedule_after(key, ms(round % 3)).unwrap_or(key);
                    assert!(timer.cancel(key), "it recurs until it is cancelled");
                    assert!(!timer.cancel(key));
                }
            });
        }
    });
    assert_eq!((timer.stats().pending, timer.stats().cancelled), (0, 600));
    assert!(count.get() > 0);
    is_balanced(&timer);
    thread::sleep(ms(20));
    let settled = count.get();
    thread::sleep(ms(20));
    assert_eq!(count.get(), settled, "silence");
}
