//! The replay: thirty minutes in seconds, and the same outcome for every engine and any number of
//! threads.
//!
//! The clock is virtual. Times are in microseconds since the first order; timers tick once per
//! millisecond. Time is divided into slices. In one step all producers work through a slice in
//! parallel, while the checker works through the slice after it. So timers are scheduled and cancelled
//! while others fire. The outcome does not depend on which thread is faster, and is that of the order
//! of events in `rules.rs`, for these reasons:
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

use crate::engine::{self, Costs, Desk, Driver};
use crate::ledger::{Ledger, Micros, OrderRef};
use crate::plan::Timeline;
use crate::producer::Producer;

/// Files and options count in milliseconds.
pub(crate) const MICROS_PER_MS: Micros = 1_000;
/// Slices in the time until a check: three seconds each for half an hour.
const SLICES: Micros = 600;
/// How many slices ahead of their dates payments are taken.
const LEAD: Micros = 2;
/// Largest number of checks taken from the engine in one call. The heap's lock is held for one
/// batch at a time.
const BATCH: usize = 256;

/// How long ahead of its date a payment is taken.
pub(crate) fn lead(check_after: Micros) -> Micros {
    LEAD * slice(check_after)
}

fn slice(check_after: Micros) -> Micros {
    check_after.div_ceil(SLICES)
}

/// Plays the timelines to their end, and then the remaining checks. `check_after` is in ms.
pub(crate) fn replay<D: Driver>(
    driver: D,
    ledger: &Ledger,
    timelines: &[Timeline],
    check_after: u64,
) -> Costs {
    let slice = slice(check_after * MICROS_PER_MS);
    thread::scope(|scope| {
        let hands = timelines.iter().zip(0..).map(|(timeline, page)| {
            Hand::start(scope, Producer::new(ledger, driver.desk(page), page, timeline))
        });
        let hands = hands.collect::<Vec<_>>();
        Replay { driver, ledger, hands, slice, due: Vec::with_capacity(BATCH), costs: Costs::default() }.run()
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
            producer.costs
        });
        Self { next_event, until, done, thread }
    }

    fn begin(&self, until: Micros) {
        self.until.send(until).expect("a producer works until its steps end");
    }

    fn wait(&mut self) {
        self.next_event = self.done.recv().expect("a producer reports each step");
    }

    fn stop(self) -> Costs {
        drop(self.until);
        self.thread.join().expect("a producer does not panic")
    }
}

/// The checker: drives the timers' clock, and checks the orders that are due.
struct Replay<'scope, 'env, D: Driver> {
    driver: D,
    ledger: &'env Ledger,
    hands: Vec<Hand<'scope>>,
    slice: Micros,
    due: Vec<OrderRef>,
    costs: Costs,
}

impl<D: Driver> Replay<'_, '_, D> {
    fn run(mut self) -> Costs {
        while let Some(next) = self.hands.iter().filter_map(|hand| hand.next_event).min() {
            self.step(next / self.slice);
        }
        while let Some(due) = self.next_expiration() {
            self.advance(self.end_of(due / self.slice));
        }
        let mut costs = self.costs;
        self.hands.into_iter().for_each(|hand| costs += hand.stop());
        costs
    }

    /// Runs slice `number` of the producers, and the checks of the next one.
    fn step(&mut self, number: u64) {
        let end = self.end_of(number);
        self.advance(end);
        self.hands.iter().for_each(|hand| hand.begin(end));
        self.advance(self.end_of(number + 1));
        self.hands.iter_mut().for_each(Hand::wait);
    }

    /// The last microsecond of a slice.
    fn end_of(&self, number: u64) -> Micros {
        (number + 1) * self.slice - 1
    }

    /// Advances to `now`, and checks what is due by then.
    fn advance(&mut self, now: Micros) {
        let mut more = true;
        while more {
            let Self { driver, due, costs, ledger, .. } = self;
            more = costs.fire.time(|| driver.advance(engine::tick_at(now), BATCH, due));
            costs.fire.count(due.len());
            due.drain(..).for_each(|order| ledger.page(order.page).check(order.slot, now));
        }
    }

    /// When the next check is due, or a little earlier.
    fn next_expiration(&mut self) -> Option<Micros> {
        let driver = &mut self.driver;
        self.costs.fire.time(|| driver.next_expiration()).map(engine::start_of)
    }
}
