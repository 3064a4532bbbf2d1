//! One run: schedule all, extend a tenth, cancel half, fire the rest.
//!
//! Beside the shard the process holds the keys that it needs (16 bytes each, for eleven timers of twenty) and two
//! histograms; the bytes a timer leave the keys out.

use std::time::{Duration, Instant};

use shardwheel::{Advancer, Config, Key, Scheduler, shard};
use shardwheel_benches::{Checksum, Times, peak_kib, resident_kib};

use crate::plan::{LAST_TICK, Plan};

/// How many timers an advance takes out at most; what is left comes in a further advance by the same tick. It is what
/// the thread of a `Timer` runs in a turn.
const BUDGET: usize = 1024;

/// The advancer is called after so many cancels, which stands for a million of them a second.
const CANCELS_PER_ADVANCE: usize = 1000;

const KIB: f64 = 1024.0;
const PAYLOAD_BYTES: f64 = 8.0;

/// How many timers there were of a kind, and how many there should have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) what: String,
    pub(crate) counted: u64,
    pub(crate) expected: u64,
}

/// What a run shows.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) counts: Vec<Count>,
    pub(crate) figures: Vec<(String, f64)>,
}

struct Run<'a> {
    plan: &'a Plan,
    scheduler: Scheduler<u64>,
    advancer: Advancer<u64>,
    keys: Vec<Key>,
    outcome: Outcome,
}

/// All of it.
pub(crate) fn run(plan: &Plan) -> Outcome {
    let start = resident_kib();
    let (scheduler, advancer) = shard(&Config::default());
    let keys = Vec::with_capacity(plan.keys());
    let outcome = Outcome { counts: Vec::new(), figures: Vec::new() };
    let mut run = Run { plan, scheduler, advancer, keys, outcome };
    run.schedule();
    let standing = resident_kib();
    run.extend();
    run.cancel();
    run.fire();
    run.memory(start, [standing, peak_kib(), resident_kib()]);
    run.outcome
}

impl Run<'_> {
    fn schedule(&mut self) {
        let (plan, all) = (self.plan, self.plan.timers() as u64);
        let begin = Instant::now();
        for payload in 0..all {
            let scheduled = self.scheduler.schedule(plan.deadline(payload), payload);
            let key =
                scheduled.unwrap_or_else(|refused| panic!("a shard without a bound refused: {refused}"));
            if Plan::is_named(payload) {
                self.keys.push(key);
            }
        }
        self.cost("schedule, ns a timer", begin.elapsed(), plan.timers());
        self.count("pending, all scheduled", self.scheduler.len() as u64, all);
    }

    fn extend(&mut self) {
        let (begin, mut extended) = (Instant::now(), 0);
        for timer in self.plan.extended() {
            if let Some(key) = self.scheduler.reschedule(self.keys[timer.key], self.plan.later(timer.payload))
            {
                self.keys[timer.key] = key;
                extended += 1;
            }
        }
        let (elapsed, expected) = (begin.elapsed(), self.plan.timers() / 10);
        self.cost("extend a tenth, ns each", elapsed, expected);
        self.count("extended", extended, expected as u64);
        self.count("pending, a tenth extended", self.scheduler.len() as u64, self.plan.timers() as u64);
    }

    /// The clock stands still; the advancer is called all the same, for it has nodes to give back.
    fn cancel(&mut self) {
        let (mut cancelled, mut early) = (0, 0);
        let mut advances = Times::default();
        let begin = Instant::now();
        for (timer, nth) in self.plan.cancelled().zip(1_usize..) {
            cancelled += u64::from(self.scheduler.cancel(self.keys[timer.key]) == Some(timer.payload));
            if nth.is_multiple_of(CANCELS_PER_ADVANCE) {
                early += advances.time(|| self.advancer.advance(0).count()) as u64;
            }
        }
        let (elapsed, expected) = (begin.elapsed(), self.plan.timers() / 2);
        self.cost("cancel half, ns each", elapsed, expected);
        self.outcome.figures.extend(advances.figures("advance between cancels, ns"));
        self.count("cancelled", cancelled, expected as u64);
        self.count("fired while others were cancelled", early, 0);
        self.count("pending, half cancelled", self.scheduler.len() as u64, expected as u64);
    }

    fn fire(&mut self) {
        let mut fired = Checksum::default();
        let (mut advances, mut late, mut cut_short) = (Times::default(), 0, 0_u32);
        let begin = Instant::now();
        for tick in 1..=LAST_TICK {
            while advances.time(|| advance(&mut self.advancer, tick, &mut fired, &mut late)) == BUDGET {
                cut_short += 1;
            }
        }
        let (elapsed, expected) = (begin.elapsed(), self.plan.expected());
        self.cost("fire the rest, ns each", elapsed, expected.count() as usize);
        self.outcome.figures.extend(advances.figures("advance by a tick, ns"));
        self.outcome.figures.push(("advances that the budget has ended".to_owned(), f64::from(cut_short)));
        self.count("fired", fired.count(), expected.count());
        self.count("fired at another tick than their own", late, 0);
        self.count("checksum of what fired", fired.digest(), expected.digest());
        self.count("pending, all fired", self.scheduler.len() as u64, 0);
    }

    /// Resident memory with all timers standing, at its peak, and in the end.
    fn memory(&mut self, start: Option<u64>, [standing, peak, end]: [Option<u64>; 3]) {
        let keys = size_of_val(&self.keys[..]) as f64;
        let beyond = |now: Option<u64>| Some(now?.saturating_sub(start?) as f64 * KIB - keys);
        let timers = self.plan.timers() as f64;
        let a_timer = |now| Some(beyond(now)? / timers - PAYLOAD_BYTES);
        let mib = |bytes: f64| bytes / KIB / KIB;
        let figures = [
            ("all standing, bytes a timer beyond the payload", a_timer(standing)),
            ("peak, bytes a timer beyond the payload", a_timer(peak)),
            ("peak, MiB", beyond(peak).map(mib)),
            ("left when all have fired, MiB", beyond(end).map(mib)),
            ("this program's own keys, left out above, MiB", Some(mib(keys))),
        ];
        let known = figures.into_iter().filter_map(|(what, figure)| Some((what.to_owned(), figure?)));
        self.outcome.figures.extend(known);
    }

    fn cost(&mut self, what: &str, elapsed: Duration, operations: usize) {
        let figure = elapsed.as_nanos() as f64 / operations as f64;
        self.outcome.figures.push((what.to_owned(), figure));
    }

    fn count(&mut self, what: &str, counted: u64, expected: u64) {
        self.outcome.counts.push(Count { what: what.to_owned(), counted, expected });
    }
}

/// Moves the clock to `tick` and takes out what is due, within the budget; returns how many that were.
#[inline]
fn advance(advancer: &mut Advancer<u64>, tick: u64, fired: &mut Checksum, late: &mut u64) -> usize {
    let mut taken = 0;
    for timer in advancer.advance(tick).take(BUDGET) {
        fired.add(timer.deadline, timer.payload);
        *late += u64::from(timer.deadline != tick);
        taken += 1;
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_is_right() {
        let outcome = run(&Plan::new(20_000, 3).unwrap());
        assert!(outcome.counts.iter().all(|count| count.counted == count.expected), "{:?}", outcome.counts);
        let fired = outcome.counts.iter().find(|count| count.what == "fired").unwrap();
        assert_eq!(fired.counted, 10_000);
        assert!(outcome.figures.iter().all(|(_, figure)| figure.is_finite()), "{:?}", outcome.figures);
    }

    #[test]
    fn a_budget_loses_nothing() {
        let (scheduler, mut advancer) = shard(&Config::default());
        let due = 2 * BUDGET as u64 + 1;
        (0..due).for_each(|payload| assert!(scheduler.schedule(5, payload).is_ok()));
        let (mut fired, mut late) = (Checksum::default(), 0);
        let taken = [0; 3].map(|_| advance(&mut advancer, 5, &mut fired, &mut late));
        assert_eq!((taken, late, fired.count()), ([BUDGET, BUDGET, 1], 0, due));
    }
}
