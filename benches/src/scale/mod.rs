//! The suite `scale`: one shard at its largest, a hundred million timers pending at once.
//!
//! A run schedules all, cancels half and fires the rest, on a virtual clock. It counts what happens to
//! each timer; a wrong count or checksum fails the program.

mod plan;

use std::time::Instant;

use shardwheel::{Advancer, Config, Key, Scheduler, shard};

use crate::args;
use crate::checksum::Checksum;
use crate::engines::{Engine, Wheel};
use crate::machine::{peak_kib, resident_kib};
use crate::measure::memory::{BYTES, KIB, PAYLOAD_BYTES};
use crate::samples::Times;
use crate::suite::{self, Outcome, Section, Suite, Task};
use crate::workload::THIRTY_MINUTES;
use plan::Plan;

/// Timers that an advance takes out at most; a further advance by the same tick takes the rest. It
/// is the turn of a `Timer`'s thread.
const BUDGET: usize = 1024;

/// Cancels between two calls of the advancer: it stands for a million cancels a second.
const CANCELS_PER_ADVANCE: usize = 1000;

pub(crate) static SUITE: Suite = Suite {
    name: "scale",
    title: "One shard at its largest",
    method: "one thread, a process for each run; a virtual clock with ticks of 1 ms",
    operations: 1,
    pinned: true,
    apart: true,
    // What a timer takes with its payload and its key, and a reserve.
    backing: 48,
    note: "",
    sections: &[Section::new("scale", "Costs and memory", &[suite::Run { engine: Wheel::NAME, measure }])],
};

/// Reads an even number of timers.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let size = args::parse_size(text)?;
    if size.is_multiple_of(2) { Ok(size) } else { Err("it has to be even".to_owned()) }
}

struct Run {
    plan: Plan,
    scheduler: Scheduler<u64>,
    advancer: Advancer<u64>,
    /// 16 bytes each, for every second timer; the bytes a timer leave the keys out.
    keys: Vec<Key>,
    outcome: Outcome,
}

fn measure(task: &Task) -> Outcome {
    let start = resident_kib();
    let plan = Plan { timers: task.timers, seed: task.round as u64 };
    let (scheduler, advancer) = shard(&Config::default());
    let keys = Vec::with_capacity(plan.timers / 2);
    let mut run = Run { plan, scheduler, advancer, keys, outcome: Outcome::default() };
    run.schedule();
    let standing = resident_kib();
    run.cancel();
    run.fire();
    run.memory(start, [standing, peak_kib(), resident_kib()]);
    run.outcome
}

impl Run {
    fn schedule(&mut self) {
        let all = self.plan.timers;
        let begin = Instant::now();
        for payload in 0..all as u64 {
            let scheduled = self.scheduler.schedule(self.plan.deadline(payload), payload);
            let key = scheduled.unwrap_or_else(|refused| panic!("a shard without a bound: {refused}"));
            if Plan::is_cancelled(payload) {
                self.keys.push(key);
            }
        }
        self.outcome.time("schedule, ns a timer", begin.elapsed(), all);
        self.pending("all scheduled", all);
    }

    /// The clock stands still. The advancer is called so that it releases nodes.
    fn cancel(&mut self) {
        let (mut cancelled, mut early, mut advances) = (0, 0, Times::new());
        let begin = Instant::now();
        for (key, nth) in self.plan.cancelled().zip(1_usize..) {
            cancelled += u64::from(self.scheduler.cancel(self.keys[key]) == Some(2 * key as u64));
            if nth.is_multiple_of(CANCELS_PER_ADVANCE) {
                early += advances.time(|| self.advancer.advance(0).count()) as u64;
            }
        }
        let (elapsed, expected) = (begin.elapsed(), self.plan.timers / 2);
        self.outcome.time("cancel half, ns each", elapsed, expected);
        self.outcome.figures.extend(advances.figures("advance between cancels, ns"));
        self.outcome.count("cancelled", cancelled, expected as u64);
        self.outcome.count("fired while others were cancelled", early, 0);
        self.pending("half cancelled", expected);
    }

    fn fire(&mut self) {
        let (mut fired, mut advances) = (Checksum::default(), Times::new());
        let (mut late, mut cut_short) = (0, 0_u32);
        let begin = Instant::now();
        for tick in 1..=THIRTY_MINUTES {
            while advances.time(|| advance(&mut self.advancer, tick, &mut fired, &mut late)) == BUDGET {
                cut_short += 1;
            }
        }
        let (elapsed, expected) = (begin.elapsed(), self.plan.expected());
        self.outcome.time("fire the rest, ns each", elapsed, expected.count() as usize);
        self.outcome.figures.extend(advances.figures("advance by a tick, ns"));
        self.outcome.figure("advances that the budget ended", f64::from(cut_short));
        self.outcome.count("fired", fired.count(), expected.count());
        self.outcome.count("fired at another tick than their own", late, 0);
        self.outcome.count("checksum of what fired", fired.digest(), expected.digest());
        self.pending("all fired", 0);
    }

    /// Resident memory with all timers standing, at its peak, and at the end.
    fn memory(&mut self, start: Option<u64>, [standing, peak, end]: [Option<u64>; 3]) {
        let keys = size_of_val(&self.keys[..]) as f64;
        let beyond = |now: Option<u64>| Some(now?.saturating_sub(start?) as f64 * KIB - keys);
        let a_timer = |now| Some(beyond(now)? / self.plan.timers as f64 - PAYLOAD_BYTES);
        let mib = |bytes: f64| bytes / KIB / KIB;
        for (what, figure) in [
            (BYTES, a_timer(standing)),
            ("peak, bytes a timer beyond the payload", a_timer(peak)),
            ("peak, MiB", beyond(peak).map(mib)),
            ("left when all have fired, MiB", beyond(end).map(mib)),
            ("this program's own keys, left out above, MiB", Some(mib(keys))),
        ] {
            self.outcome.figure(what, figure);
        }
    }

    fn pending(&mut self, when: &str, expected: usize) {
        let counted = self.scheduler.len() as u64;
        self.outcome.count(&format!("pending, {when}"), counted, expected as u64);
    }
}

/// Moves the clock to `tick` and takes out what is due, within the budget; returns how many.
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
        let outcome = measure(&Task::small(20_000));
        assert!(outcome.counts.iter().all(|count| count.counted == count.expected), "{:?}", outcome.counts);
        assert!(outcome.counts.iter().any(|count| count.what == "fired" && count.counted == 10_000));
        assert!(outcome.figures.iter().all(|(_, figure)| figure.is_finite()), "{:?}", outcome.figures);
    }

    #[test]
    fn a_budget_loses_no_timer() {
        let (scheduler, mut advancer) = shard(&Config::default());
        let due = 2 * BUDGET as u64 + 1;
        (0..due).for_each(|payload| assert!(scheduler.schedule(5, payload).is_ok()));
        let (mut fired, mut late) = (Checksum::default(), 0);
        let taken = [0; 3].map(|_| advance(&mut advancer, 5, &mut fired, &mut late));
        assert_eq!((taken, late, fired.count()), ([BUDGET, BUDGET, 1], 0, due));
    }
}
