//! One thread: whole passes.

use std::time::Duration;

use crate::checksum::Checksum;
use crate::engines::{Cancel, Engine};
use crate::names::BOTH;
use crate::passes::{pair_each, round_trip, schedule_all, time};
use crate::suite::{Outcome, Task};
use crate::workload::{Spread, Workload};

/// Pairs of schedule and cancel between two calls of the advancer.
const PAIRS_PER_ADVANCE: usize = 4096;

/// Schedules and fires in a new engine: random deadlines over 30 minutes.
pub(crate) fn random<E: Engine>(task: &Task) -> Outcome {
    let work = task.workload(Spread::ThirtyMinutes, 0);
    let trip = |_| round_trip(&mut E::new(), 0, &work).into_iter().sum::<Duration>();
    let elapsed = (0..task.repeats()).map(trip).sum();
    let mut outcome = Outcome::new(work.expected(0, 1).digest());
    outcome.time(BOTH, elapsed, task.repeats() * task.timers);
    outcome
}

/// The time to schedule and cancel at once what the second workload has, over the first one.
pub(crate) fn pairs_over<E: Engine<Producer: Cancel>>(work: [&Workload; 2]) -> Duration {
    let [standing, work] = work;
    let (mut engine, mut fired) = (E::new(), Checksum::default());
    let producer = engine.producer();
    schedule_all(&producer, 0, standing);
    let elapsed = time(|| {
        for delays in work.delays.chunks(PAIRS_PER_ADVANCE) {
            pair_each(&producer, 0, delays);
            engine.advance(0, &mut fired);
        }
    });
    assert_eq!(fired.count(), 0, "a timer fired while the clock stood still");
    elapsed
}
