//! The real clock: orders and payments come in at their planned times, and checks run when they are
//! due.
//!
//! Here a checker drives the engine and sleeps until the next check is due. `timer.rs` has the
//! engine that runs by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::thread::{self, Scope, ScopedJoinHandle, Thread};

use crate::checker::{Checker, Measured};
use crate::clock::Clock;
use crate::engine::{Costs, Desk, Sleeper};
use crate::ledger::Ledger;
use crate::load::Timeline;
use crate::producer::{Producer, Setting};
use crate::progress::Progress;

/// Plays the timelines: the checker on this thread, each producer on its own thread.
pub(crate) fn play<D: Sleeper>(
    driver: D,
    ledger: &Ledger,
    progress: &Progress,
    timelines: Vec<Timeline>,
) -> Measured {
    let setting = Setting { ledger, clock: Clock::start_now(), progress };
    let at_work = AtomicUsize::new(timelines.len());
    thread::scope(|scope| {
        let start = |(timeline, page)| {
            let leave = Leave { at_work: &at_work, checker: thread::current() };
            begin_day(scope, Producer::new(setting, driver.desk(page), page, timeline), leave)
        };
        let producers: Vec<_> = timelines.into_iter().zip(0..).map(start).collect();
        let mut checker = Checker::new(setting, driver);
        drive(&mut checker, setting, &at_work);
        checker.finish(producers.into_iter().map(end_day))
    })
}

/// Starts a producer in its own thread. `leave` is dropped when the producer leaves, after
/// everything that the producer works with.
pub(crate) fn begin_day<'scope, 'env: 'scope, D: Desk + 'env>(
    scope: &'scope Scope<'scope, 'env>,
    producer: Producer<'env, D>,
    leave: impl Send + 'scope,
) -> ScopedJoinHandle<'scope, Costs> {
    scope.spawn(move || {
        let _leave = leave;
        produce(producer)
    })
}

/// Waits until a producer has left, and returns what it spent in the engine.
pub(crate) fn end_day(producer: ScopedJoinHandle<'_, Costs>) -> Costs {
    producer.join().expect("a producer does not panic")
}

/// A producer's day: handles the events planned by now, and sleeps until the next one.
fn produce<D: Desk>(mut producer: Producer<'_, D>) -> Costs {
    let clock = producer.clock();
    while let Some(next) = producer.next_event() {
        thread::sleep(clock.until(next));
        producer.work(clock.ends(next));
    }
    producer.costs()
}

/// The checker's day: until the last producer has left and the last order has been checked.
fn drive<D: Sleeper>(checker: &mut Checker<'_, D>, setting: Setting<'_>, at_work: &AtomicUsize) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        checker.advance(setting.clock.ends(0));
        // Load this first: if no producer is at work now, no timer is scheduled after the look at
        // the timers.
        //
        // Ordering: Acquire, pairs with the Release in the drop of `Leave`: the timers of a
        // producer that has left are in the engine.
        let all_left = at_work.load(Ordering::Acquire) == 0;
        // Register the waker first, so that a check scheduled between these two calls wakes this
        // thread.
        checker.driver().register_waker(&waker);
        match checker.next_expiration() {
            Some(due) => thread::park_timeout(setting.clock.until(due)),
            None if all_left => return,
            None => thread::park(),
        }
    }
}

/// Held by a producer; tells the checker that the producer leaves, even by a panic.
struct Leave<'a> {
    at_work: &'a AtomicUsize,
    checker: Thread,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        // Ordering: Release, pairs with the checker's Acquire in `drive`.
        self.at_work.fetch_sub(1, Ordering::Release);
        self.checker.unpark();
    }
}

/// Wakes a parked thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
