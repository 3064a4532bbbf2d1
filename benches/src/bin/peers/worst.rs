//! The longest single operation: each call is timed by itself.
//!
//! An advance is one call that moves the clock by one tick, and the taking of all that is due then.

use shardwheel_benches::{Checksum, Engine, Producer, Spread, Times, Workload};

use crate::peer::{Outcome, Task};

/// What a single move of the clock is called.
pub(crate) const ADVANCE: &str = "advance by a tick";

/// Schedules timers at random over 30 minutes and then moves the clock a tick at a time until all have fired.
pub(crate) fn operations<E: Engine>(task: Task) -> Outcome {
    let work = Workload::new(Spread::ThirtyMinutes, task.size, task.seed(0));
    let (mut engine, mut fired) = (E::new(), Checksum::default());
    let producer = engine.producer();
    let (mut schedule, mut advance) = (Times::default(), Times::default());
    for (&delay, payload) in work.delays().iter().zip(0..) {
        schedule.time(|| producer.schedule(delay, payload));
    }
    (1..=work.span()).for_each(|tick| advance.time(|| engine.advance(tick, &mut fired)));
    fired.verify(&work.expected(0, 1), E::NAME);
    let figures = [schedule.figures("schedule"), advance.figures(ADVANCE)].concat();
    Outcome { checksum: fired.digest(), figures }
}
