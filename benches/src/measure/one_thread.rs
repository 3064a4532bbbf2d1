//! One thread: whole passes.

use std::time::Duration;

use crate::engines::Engine;
use crate::names::BOTH;
use crate::passes::round_trip;
use crate::suite::{Outcome, Task};
use crate::workload::Spread;

/// Schedules and fires in a new engine: random deadlines over 30 minutes.
pub(crate) fn random<E: Engine>(task: &Task) -> Outcome {
    let work = task.workload(Spread::ThirtyMinutes, 0);
    let trip = |_| round_trip(&mut E::new(), 0, &work).into_iter().sum::<Duration>();
    let elapsed = (0..task.repeats()).map(trip).sum();
    let mut outcome = Outcome::new(work.expected(0, 1).digest());
    outcome.time(BOTH, elapsed, task.repeats() * task.timers);
    outcome
}
