//! The suite `scale`: one shard at its largest, a hundred million timers pending at once.
//!
//! A run schedules all, cancels half and fires the rest, on a virtual clock. It counts what happens
//! to each timer; a wrong count or checksum fails the run, and so the program. A timer's payload is
//! its number, and deadlines are drawn as they are needed, so no memory holds them. Every second
//! timer is cancelled; only the keys of those are kept.

use std::time::Instant;

use shardwheel::{Advancer, Config, Key, Scheduler, shard};

use crate::checksum::Checksum;
use crate::engines::{Engine, Producer, Wheel};
use crate::machine::{PEAK, RESIDENT, memory_kib};
use crate::measure::memory::{BYTES, KIB, PAYLOAD_BYTES};
use crate::samples::Times;
use crate::suite::{self, Outcome, Section, Suite, Task};
use crate::workload::THIRTY_MINUTES;

/// Timers that an advance takes out at most, as in a turn of a `Timer`'s thread.
const BUDGET: usize = 1024;

/// Cancels between two calls of the advancer: it stands for a million cancels a second.
const CANCELS_PER_ADVANCE: usize = 1000;

pub(crate) static SUITE: Suite = Suite {
    name: "scale",
    title: "One shard at its largest",
    method: "one thread, a process for each run; a virtual clock with ticks of 1 ms",
    options: &[("sizes", "1M,10M,100M")],
    operations: 1,
    pinned: true,
    apart: true,
    // What a timer takes with its payload and its key, and a reserve.
    backing: 48,
    sections: &[Section::new("scale", "Costs and memory", &[suite::Run { engine: Wheel::NAME, measure }])],
};

/// Returns the deadline of each timer, by its payload: uniform over 30 minutes.
fn deadlines(task: &Task) -> impl Iterator<Item = (u64, u64)> {
    let mut rng = fastrand::Rng::with_seed(task.seed(0));
    (0..task.timers as u64).map(move |payload| (rng.u64(1..=THIRTY_MINUTES), payload))
}

/// Returns the places of the keys in the order of the cancels, in steps of a prime: no cache or
/// prefetcher can use the order. The payload of a timer is twice the place of its key.
fn order(keys: usize) -> impl Iterator<Item = usize> {
    const PRIME: usize = 4_294_967_291;
    (0..keys).map(move |nth| nth * PRIME % keys)
}

fn expected(task: &Task) -> Checksum {
    let mut sum = Checksum::default();
    let left = deadlines(task).filter(|(_, payload)| !payload.is_multiple_of(2));
    left.for_each(|(deadline, payload)| sum.expect(deadline, payload));
    sum
}

struct Run<'a> {
    task: &'a Task,
    scheduler: Scheduler<u64>,
    advancer: Advancer<u64>,
    /// 16 bytes each, for every second timer; the bytes a timer leave the keys out.
    keys: Vec<Key>,
    outcome: Outcome,
}

fn measure(task: &Task) -> Outcome {
    let start = memory_kib(RESIDENT);
    let (scheduler, advancer) = shard(&Config::default());
    let keys = Vec::with_capacity(task.timers.div_ceil(2));
    let mut run = Run { task, scheduler, advancer, keys, outcome: Outcome::default() };
    run.schedule();
    let standing = memory_kib(RESIDENT);
    run.cancel();
    run.fire();
    run.memory(start, [standing, memory_kib(PEAK), memory_kib(RESIDENT)]);
    run.outcome
}

impl Run<'_> {
    fn schedule(&mut self) {
        let begin = Instant::now();
        for (deadline, payload) in deadlines(self.task) {
            let key = Producer::schedule(&self.scheduler, deadline, payload);
            if payload.is_multiple_of(2) {
                self.keys.push(key);
            }
        }
        self.outcome.time("schedule, ns a timer", begin.elapsed(), self.task.timers);
        self.pending("all scheduled", self.task.timers);
    }

    /// The clock stands still. The advancer is called so that it releases nodes.
    fn cancel(&mut self) {
        let (mut cancelled, mut early, mut advances) = (0, 0, Times::new());
        let begin = Instant::now();
        for (key, nth) in order(self.keys.len()).zip(1_usize..) {
            cancelled += u64::from(self.scheduler.cancel(self.keys[key]) == Some(2 * key as u64));
            if nth.is_multiple_of(CANCELS_PER_ADVANCE) {
                early += advances.time(|| self.advancer.advance(0).count()) as u64;
            }
        }
        let (elapsed, expected) = (begin.elapsed(), self.keys.len());
        self.outcome.time("cancel half, ns each", elapsed, expected);
        self.outcome.figures.extend(advances.figures("advance between cancels, ns"));
        self.outcome.count("cancelled", cancelled, expected as u64);
        self.outcome.count("fired while others were cancelled", early, 0);
        self.pending("half cancelled", self.task.timers - expected);
    }

    fn fire(&mut self) {
        let (mut fired, mut advances, mut late) = (Checksum::default(), Times::new(), 0);
        let begin = Instant::now();
        for tick in 1..=THIRTY_MINUTES {
            while advances.time(|| advance(&mut self.advancer, tick, &mut fired, &mut late)) == BUDGET {}
        }
        let (elapsed, expected) = (begin.elapsed(), expected(self.task));
        self.outcome.time("fire the rest, ns each", elapsed, expected.count() as usize);
        self.outcome.figures.extend(advances.figures("advance by a tick, ns"));
        self.outcome.count("fired", fired.count(), expected.count());
        self.outcome.count("fired at another tick than their own", late, 0);
        fired.verify(&expected, Wheel::NAME);
        self.pending("all fired", 0);
    }

    /// Resident memory with all timers standing, at its peak, and at the end.
    fn memory(&mut self, start: Option<f64>, [standing, peak, end]: [Option<f64>; 3]) {
        let keys = size_of_val(&self.keys[..]) as f64;
        let beyond = |now: Option<f64>| Some((now? - start?) * KIB - keys);
        let a_timer = |now| Some(beyond(now)? / self.task.timers as f64 - PAYLOAD_BYTES);
        let mib = |bytes: f64| bytes / KIB / KIB;
        for (what, figure) in [
            (BYTES, a_timer(standing)),
            ("peak, bytes a timer beyond the payload", a_timer(peak)),
            ("peak, MiB", beyond(peak).map(mib)),
            ("left when all have fired, MiB", beyond(end).map(mib)),
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
    fn each_second_timer_is_cancelled_once() {
        let mut cancelled = order(10_000).collect::<Vec<_>>();
        assert!(!cancelled.is_sorted());
        cancelled.sort_unstable();
        assert!(cancelled.into_iter().eq(0..10_000) && expected(&Task::small(20_001)).count() == 10_000);
    }
}
