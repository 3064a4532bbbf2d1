//! [`Driver::run`], on an executor written by hand: one thread, which parks until it is woken or
//! until the sleep that waits is due.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use shardwheel::{Clock, Driver, Timer};

use crate::by_hand;
use crate::support::{Bell, HOUR, hear, in_time, ms};

struct Unparks(Thread, AtomicUsize);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.unpark();
    }
}

/// Runs the driver until its timer ends. The sleeps are not `Send`.
fn block_on_run(driver: &mut Driver) {
    let unparks = Arc::new(Unparks(thread::current(), AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&unparks));
    let sleeps_until = Rc::new(Cell::new(None));
    let mut run = pin!(driver.run(|deadline| {
        sleeps_until.set(Some(deadline));
        let sleeps_until = Rc::clone(&sleeps_until);
        poll_fn(move |_| {
            if Instant::now() < deadline {
                return Poll::Pending;
            }
            sleeps_until.set(None);
            Poll::Ready(())
        })
    }));
    loop {
        let woken = unparks.1.load(Ordering::SeqCst);
        if run.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            return;
        }
        let is_idle = || unparks.1.load(Ordering::SeqCst) == woken;
        let is_due = || sleeps_until.get().is_some_and(|at| at <= Instant::now());
        while is_idle() && !is_due() {
            let limit = sleeps_until.get().map(|at| at.saturating_duration_since(Instant::now()));
            limit.map_or_else(thread::park, thread::park_timeout);
        }
    }
}

/// Sends when the timer fires, and whether that is early.
fn schedule(timer: &Timer, delay: Duration, sender: &Sender<bool>) {
    let (due, sender) = (Instant::now() + delay, sender.clone());
    timer.schedule_after(delay, move || sender.send(Instant::now() < due).unwrap()).unwrap();
}

/// Never early and never lost, by many producers that race with the loop's sleep. The end of the
/// last handle ends the run, when nothing is pending.
#[test]
fn many_threads_schedule_on_a_loop_that_sleeps() {
    const PRODUCERS: u64 = 8;
    const EACH: u64 = 400;
    in_time(|| {
        let (timer, mut driver) = Timer::builder().shards(2).build_driven().unwrap();
        let (sender, receiver) = mpsc::channel();
        for producer in 0..PRODUCERS {
            let (timer, sender) = (timer.clone(), sender.clone());
            thread::spawn(move || {
                for number in 0..EACH {
                    schedule(&timer, Duration::from_micros((number * 37 + producer * 101) % 7_000), &sender);
                    if number % 50 == producer {
                        thread::sleep(ms(3));
                    }
                }
            });
        }
        let hears = thread::spawn(move || {
            let early = (0..PRODUCERS * EACH).filter(|_| hear(&receiver)).count();
            drop(timer);
            early
        });
        block_on_run(&mut driver);
        assert_eq!(hears.join().unwrap(), 0);
        assert!(driver.has_ended());
    });
}

/// A lone earlier timer, of another thread, while the loop sleeps for an hour or for ever.
#[test]
fn an_earlier_timer_ends_the_loops_sleep() {
    in_time(|| {
        let (timer, mut driver) = Timer::builder().build_driven().unwrap();
        let (sender, receiver) = mpsc::channel();
        let produces = thread::spawn(move || {
            for later in [None, Some(HOUR)] {
                later.map(|later| timer.schedule_after(later, || ()).unwrap());
                for _ in 0..20 {
                    thread::sleep(ms(2));
                    schedule(&timer, ms(1), &sender);
                    assert!(!hear(&receiver));
                }
            }
            drop(timer.shutdown());
        });
        block_on_run(&mut driver);
        produces.join().unwrap();
    });
}

/// The loop asks for another sleep, and runs nothing early.
#[test]
fn a_sleep_that_ends_early_makes_nothing_early() {
    let (clock, timer, mut driver) = by_hand();
    let (sender, receiver) = mpsc::channel();
    timer.schedule_after(ms(10), move || sender.send(()).unwrap()).unwrap();
    let (wakes, waker) = Bell::new();
    let asked = Cell::new(0);
    let mut run = pin!(driver.run(|_| {
        asked.set(asked.get() + 1);
        async {}
    }));
    for polls in 1..=20 {
        assert!(run.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!((asked.get(), wakes.rings()), (polls, polls), "each poll asks, and wakes the task");
        assert!(receiver.try_recv().is_err());
    }
    clock.advance(ms(10));
    assert!(run.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    receiver.try_recv().unwrap();
}

/// A poll runs at most 1,024 of a shard, and wakes the task for the rest.
#[test]
fn a_crowd_leaves_the_runtime_time_for_other_tasks() {
    let (clock, timer, mut driver) = by_hand();
    let fired = Arc::new(AtomicUsize::new(0));
    let shards = timer.stats().shards.len();
    for _ in 0..5_000 * shards {
        let fired = Arc::clone(&fired);
        timer.schedule_after(ms(1), move || _ = fired.fetch_add(1, Ordering::SeqCst)).unwrap();
    }
    clock.advance(ms(2));
    let (wakes, waker) = Bell::new();
    let mut run = pin!(driver.run(|_| std::future::pending()));
    let mut polls = 0;
    while fired.load(Ordering::SeqCst) < 5_000 * shards {
        let before = fired.load(Ordering::SeqCst);
        assert_eq!(wakes.rings(), polls, "it wakes itself while more is due");
        assert!(run.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let ran = fired.load(Ordering::SeqCst) - before;
        assert!(ran <= 1_024 * shards && ran > 0, "{ran}");
        polls += 1;
    }
    assert!(polls >= 5);
}

/// On a runtime of several threads, a task that is woken while it is polled wakes another thread.
#[test]
fn a_poll_does_not_repeat_the_wake_that_has_caused_it() {
    let (clock, timer, mut driver) = by_hand();
    let (bell, waker) = Bell::new();
    let mut context = Context::from_waker(&waker);
    let mut run = pin!(driver.run(|_| std::future::pending()));
    assert!(run.as_mut().poll(&mut context).is_pending());
    for (earlier, seen) in [(HOUR, 1), (HOUR / 2, 2)] {
        timer.schedule_at(clock.now() + earlier, || {}).unwrap();
        assert_eq!(bell.rings(), seen, "the producer wakes the task");
        assert!(run.as_mut().poll(&mut context).is_pending());
        assert_eq!(bell.rings(), seen, "the task does not wake itself");
    }
}

/// The driver is as before, and runs again.
#[test]
fn the_drop_of_the_future_loses_nothing() {
    let (clock, timer, mut driver) = by_hand();
    let (sender, receiver) = mpsc::channel();
    for millis in [1, 2] {
        let sender = sender.clone();
        timer.schedule_after(ms(millis), move || sender.send(millis).unwrap()).unwrap();
    }
    let (wakes, waker) = Bell::new();
    let mut context = Context::from_waker(&waker);
    assert!(pin!(driver.run(|_| std::future::pending())).poll(&mut context).is_pending());
    clock.advance(ms(1));
    assert_eq!((driver.turn(), receiver.try_recv()), (1, Ok(1)));
    clock.advance(ms(1));
    {
        let mut run = pin!(driver.run(|_| std::future::pending()));
        assert!(run.as_mut().poll(&mut context).is_pending());
        assert_eq!(receiver.try_recv(), Ok(2));
        let before = wakes.rings();
        drop(timer);
        assert!(wakes.rings() > before, "the end of the timer wakes the task");
        assert!(run.as_mut().poll(&mut context).is_ready());
    }
    assert!(pin!(driver.run(|_| std::future::pending())).poll(&mut context).is_ready(), "at once");
}

/// The future is `Send` if the sleeps are.
#[test]
fn it_may_be_a_task_of_several_threads() {
    fn is_send<T: Send>(task: T) -> T {
        task
    }
    let (_clock, timer, mut driver) = by_hand();
    drop(timer);
    let mut run = pin!(is_send(driver.run(|_| std::future::pending())));
    assert!(run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
}
