//! The virtual clock: thirty minutes in seconds, and the same outcome for every engine and any
//! number of threads.
//!
//! Time is divided into slices. In one step all producers work through a slice in parallel, while
//! the checker works through the slice after it. So timers are scheduled and cancelled while others
//! fire. The outcome does not depend on which thread is faster, and is that of the order of events in
//! `rules.rs`, for these reasons:
//!
//! - Only a payment's date decides whether it counts. So producers take payments two slices ahead of
//!   their dates, if their orders are placed by then ([`LEAD`]). A check of a slice finds all payments
//!   that count, since its order was placed long before.
//! - When producers begin a slice, its checks are made. The books put what these have taken back on
//!   sale by the time of the check, order by order.
//!
//! Slices without planned events are skipped.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, Scope, ScopedJoinHandle};

use crate::checker::{Checker, Measured};
use crate::clock::Clock;
use crate::engine::{Costs, Desk, Driver};
use crate::ledger::{Ledger, Micros};
use crate::load::Timeline;
use crate::producer::{Producer, Setting};
use crate::progress::Progress;

/// Slices in the time until a check: three seconds each for half an hour.
const SLICES: Micros = 600;
/// How many slices ahead of their dates payments are taken.
const LEAD: Micros = 2;

/// How long ahead of its date a payment is taken.
pub(crate) fn lead(check_after: Micros) -> Micros {
    LEAD * slice(check_after)
}

fn slice(check_after: Micros) -> Micros {
    check_after.div_ceil(SLICES)
}

/// Plays the timelines to their end, and then the remaining checks.
pub(crate) fn replay<D: Driver>(
    driver: D,
    ledger: &Ledger,
    progress: &Progress,
    timelines: Vec<Timeline>,
    check_after: Micros,
) -> Measured {
    let setting = Setting { ledger, clock: Clock::Virtual, progress };
    thread::scope(|scope| {
        let hands = timelines.into_iter().zip(0..).map(|(timeline, page)| {
            Hand::start(scope, Producer::new(setting, driver.desk(page), page, timeline))
        });
        let hands = hands.collect::<Vec<_>>();
        Replay { checker: Checker::new(setting, driver), hands, slice: slice(check_after) }.run()
    })
}

/// A producer in its own thread.
struct Hand<'scope> {
    next_event: Option<Micros>,
    until: Sender<Micros>,
    done: Receiver<Option<Micros>>,
    thread: ScopedJoinHandle<'scope, Costs>,
}

impl<'scope> Hand<'scope> {
    fn start<'env, D: Desk + 'env>(
        scope: &'scope Scope<'scope, 'env>,
        mut producer: Producer<'env, D>,
    ) -> Self {
        let (until, steps) = mpsc::channel();
        let (report, done) = mpsc::channel();
        let next_event = producer.next_event();
        let thread = scope.spawn(move || {
            for until in steps {
                producer.work(until);
                // No receiver is left if the replay ended in a panic; then no step follows either.
                let _ = report.send(producer.next_event());
            }
            producer.costs()
        });
        Self { next_event, until, done, thread }
    }

    fn begin(&self, until: Micros) {
        self.until.send(until).expect("a producer works until it is told to stop");
    }

    fn wait(&mut self) {
        self.next_event = self.done.recv().expect("a producer reports each step");
    }

    fn stop(self) -> Costs {
        drop(self.until);
        self.thread.join().expect("a producer does not panic")
    }
}

struct Replay<'scope, 'env, D: Driver> {
    checker: Checker<'env, D>,
    hands: Vec<Hand<'scope>>,
    slice: Micros,
}

impl<D: Driver> Replay<'_, '_, D> {
    fn run(mut self) -> Measured {
        while let Some(next) = self.hands.iter().filter_map(|hand| hand.next_event).min() {
            self.step(next / self.slice);
        }
        while let Some(due) = self.checker.next_expiration() {
            self.checker.advance(self.end_of(due / self.slice));
        }
        let Self { checker, hands, .. } = self;
        checker.finish(hands.into_iter().map(Hand::stop))
    }

    /// Runs slice `number` of the producers, and the checks of the next one.
    fn step(&mut self, number: u64) {
        let end = self.end_of(number);
        self.checker.advance(end);
        self.hands.iter().for_each(|hand| hand.begin(end));
        self.checker.advance(self.end_of(number + 1));
        self.hands.iter_mut().for_each(Hand::wait);
    }

    /// The last microsecond of a slice.
    fn end_of(&self, number: u64) -> Micros {
        (number + 1) * self.slice - 1
    }
}
