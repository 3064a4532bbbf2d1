//! The engine that runs by itself, on the real clock: the crate's `Timer`.
//!
//! A check is a callback. It captures the [`Checks`] of its order's page and the order's slot: two
//! words, which lie in the timer's node. It runs on one of the timer's threads. So the program has
//! no checker thread, and only the timer knows how many checks are left. Each pending check and the
//! producer hold the page's `Checks`. When the `Checks` is dropped, the producer has left, and every
//! check of the page has run or was cancelled. The end of the day waits for that.

use std::mem;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{BuildError, Timer, TimerKey};

use crate::checker::Measured;
use crate::clock::Clock;
use crate::engine::{Costs, Desk};
use crate::ledger::{Ledger, Micros, OrderRef};
use crate::load::Timeline;
use crate::producer::{Producer, Setting};
use crate::progress::Progress;

/// Checks between two updates of the progress bar.
const STEP: u64 = 256;

/// A timer with default settings, among them the job's tick of 1 ms.
pub(crate) fn start(shards: u32) -> Result<Timer, BuildError> {
    Timer::builder().shards(shards as usize).build()
}

/// Plays the timelines: each producer on its own thread, the checks on the timer's threads.
pub(crate) fn play(
    timer: Timer,
    ledger: &Arc<Ledger>,
    progress: &Progress,
    timelines: Vec<Timeline>,
) -> Measured {
    Day { timer, ledger, start: Instant::now(), progress }.pass(timelines)
}

/// One run of the job.
struct Day<'a> {
    timer: Timer,
    ledger: &'a Arc<Ledger>,
    start: Instant,
    progress: &'a Progress,
}

impl Day<'_> {
    fn pass(&self, timelines: Vec<Timeline>) -> Measured {
        let (ended, ends) = mpsc::channel();
        let mut costs = self.produce(timelines, ended);
        let lateness = ends.into_iter().flatten().collect();
        // Returns no unfired timers; the audit checks that by the `handed_back` count.
        drop(self.timer.shutdown());
        let stats = self.timer.stats();
        costs.fire.operations = stats.fired;
        Measured { costs, lateness, stats: Some(stats) }
    }

    /// Runs the producers until the last has left. Checks may still be pending then. When all
    /// checks of a page are done, `ended` receives their lateness.
    fn produce(&self, timelines: Vec<Timeline>, ended: Sender<Vec<Micros>>) -> Costs {
        let clock = Clock::Real { start: self.start };
        let setting = Setting { ledger: self.ledger, clock, progress: self.progress };
        thread::scope(|scope| {
            let start = |(timeline, page)| {
                let producer = Producer::new(setting, self.desk(page, ended.clone()), page, timeline);
                scope.spawn(move || produce(producer))
            };
            let producers: Vec<_> = timelines.into_iter().zip(0..).map(start).collect();
            let mut costs = Costs::default();
            producers.into_iter().for_each(|day| costs += day.join().expect("a producer does not panic"));
            costs
        })
    }

    fn desk(&self, page: u32, ended: Sender<Vec<Micros>>) -> TimerDesk {
        let checks = Checks {
            ledger: Arc::clone(self.ledger),
            page,
            clock: Clock::Real { start: self.start },
            progress: self.progress.clone(),
            lateness: Mutex::default(),
            ended,
        };
        TimerDesk { timer: self.timer.clone(), start: self.start, checks: Arc::new(checks) }
    }
}

/// A producer's day: handles the events planned by now, and sleeps until the next one.
fn produce(mut producer: Producer<'_, TimerDesk>) -> Costs {
    let clock = producer.clock();
    while let Some(next) = producer.next_event() {
        thread::sleep(clock.until(next));
        producer.work(clock.ends(next));
    }
    producer.costs()
}

/// What a producer schedules and cancels with.
#[derive(Clone)]
pub(crate) struct TimerDesk {
    timer: Timer,
    start: Instant,
    checks: Arc<Checks>,
}

impl Desk for TimerDesk {
    type Deadline = Instant;
    type Handle = TimerKey;

    fn deadline(&self, due: Micros) -> Instant {
        self.start + Duration::from_micros(due)
    }

    fn schedule(&self, deadline: Instant, order: OrderRef) -> Option<TimerKey> {
        let (checks, slot) = (Arc::clone(&self.checks), order.slot);
        // Pending timers have no limit here, so only a lack of memory can refuse a timer.
        self.timer.schedule_at(deadline, move || checks.check(slot)).ok()
    }

    fn cancel(&self, key: TimerKey) -> bool {
        self.timer.cancel(key)
    }
}

/// The checks of one page. Held by the page's producer and by each pending check.
struct Checks {
    ledger: Arc<Ledger>,
    page: u32,
    clock: Clock,
    progress: Progress,
    /// How late the checks were. Written by the timer's threads, mostly by one of them.
    lateness: Mutex<Vec<Micros>>,
    /// Receives the lateness when this is dropped.
    ended: Sender<Vec<Micros>>,
}

impl Checks {
    /// Checks an order that is due.
    fn check(&self, slot: u32) {
        let now = self.clock.ends(0);
        let late = self.ledger.page(self.page).check(slot, now);
        let mut lateness = self.lateness.lock().unwrap_or_else(PoisonError::into_inner);
        lateness.push(late);
        if (lateness.len() as u64).is_multiple_of(STEP) {
            self.progress.add(STEP);
        }
    }
}

impl Drop for Checks {
    fn drop(&mut self) {
        let lateness = self.lateness.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.progress.add(lateness.len() as u64 % STEP);
        // No receiver is left if the day has ended in a panic.
        let _ = self.ended.send(mem::take(lateness));
    }
}
