//! The suite `scale`: one shard at its largest, a hundred million timers pending at once.
//!
//! A run schedules all, cancels half and fires the rest, on a virtual clock. It counts what happens
//! to each timer; a wrong count or checksum fails the run, and so the program. A timer's payload is
//! its number, and its deadline is computed from that and a seed, so no memory holds it. Every
//! second timer is cancelled; only the keys of those are kept.

use std::time::Instant;

use shardwheel::{Advancer, Config, Key, Scheduler, shard};

use crate::checksum::Checksum;
use crate::engines::{Engine, Wheel};
use crate::machine::{PEAK, RESIDENT, memory_kib};
use crate::measure::memory::{BYTES, KIB, PAYLOAD_BYTES};
use crate::samples::Times;
use crate::suite::{self, Outcome, Section, Suite, Task};
use crate::workload::THIRTY_MINUTES;

/// Timers that an advance takes out at most; a further advance by the same tick takes the rest. It
/// is the turn of a `Timer`'s thread.
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

/// A number of timers and a seed for their deadlines.
#[derive(Clone, Copy)]
struct Plan {
    timers: usize,
    seed: u64,
}

impl Plan {
    fn keys(&self) -> usize {
        self.timers.div_ceil(2)
    }

    #[inline]
    fn is_cancelled(payload: u64) -> bool {
        payload.is_multiple_of(2)
    }

    /// Returns a timer's deadline: uniform over 30 minutes. It is SplitMix64 with random access.
    #[inline]
    fn deadline(&self, payload: u64) -> u64 {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut bits = (self.seed << 40).wrapping_add(payload).wrapping_mul(GOLDEN);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        1 + ((u128::from(bits) * u128::from(THIRTY_MINUTES)) >> 64) as u64
    }

    /// The timers to cancel: the places of their keys, in steps of a prime, an order that no cache
    /// or prefetcher can use. The payload is twice the place.
    fn cancelled(&self) -> impl Iterator<Item = usize> {
        const PRIME: usize = 4_294_967_291;
        let keys = self.keys();
        (0..keys).map(move |nth| nth * PRIME % keys)
    }

    fn expected(&self) -> Checksum {
        let mut sum = Checksum::default();
        let left = (0..self.timers as u64).filter(|&payload| !Self::is_cancelled(payload));
        left.for_each(|payload| sum.expect(self.deadline(payload), payload));
        sum
    }
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
    let start = memory_kib(RESIDENT);
    let plan = Plan { timers: task.timers, seed: task.round as u64 };
    let (scheduler, advancer) = shard(&Config::default());
    let keys = Vec::with_capacity(plan.keys());
    let mut run = Run { plan, scheduler, advancer, keys, outcome: Outcome::default() };
    run.schedule();
    let standing = memory_kib(RESIDENT);
    run.cancel();
    run.fire();
    run.memory(start, [standing, memory_kib(PEAK), memory_kib(RESIDENT)]);
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
        let (elapsed, expected) = (begin.elapsed(), self.plan.keys());
        self.outcome.time("cancel half, ns each", elapsed, expected);
        self.outcome.figures.extend(advances.figures("advance between cancels, ns"));
        self.outcome.count("cancelled", cancelled, expected as u64);
        self.outcome.count("fired while others were cancelled", early, 0);
        self.pending("half cancelled", self.plan.timers - expected);
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
        fired.verify(&expected, Wheel::NAME);
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
    fn each_second_timer_is_cancelled_once_and_deadlines_are_spread() {
        let plan = Plan { timers: 20_000, seed: 7 };
        let mut cancelled = plan.cancelled().collect::<Vec<_>>();
        assert!(!cancelled.is_sorted());
        cancelled.sort_unstable();
        assert!(cancelled.into_iter().eq(0..10_000) && plan.expected().count() == 10_000);
        let deadlines = (0..20_000).map(|payload| plan.deadline(payload)).collect::<Vec<_>>();
        assert!(deadlines.iter().all(|deadline| (1..=THIRTY_MINUTES).contains(deadline)));
        let early = deadlines.iter().filter(|&&deadline| deadline <= THIRTY_MINUTES / 4).count();
        assert!((4_500..5_500).contains(&early), "{early}");
    }
}
