//! One thread that moves the clock as programs do.

use std::time::Duration;

use crate::checksum::Checksum;
use crate::engines::{Engine, Next};
use crate::names::BOTH;
use crate::passes::{fire_all, round_trip, schedule_all, time};
use crate::rhythm::{ByLoop, ByTicks, LONGEST, LOOPED, Rhythm, TICKED, drive, fire};
use crate::suite::{Outcome, Task};
use crate::workload::{Spread, THIRTY_MINUTES, Workload};

pub(crate) const IDLE: &str = "a tick, nothing due";
pub(crate) const INTO: &str = "schedule, as many pending";

/// The ticks over which an idle tick is measured, fewer than the flat wheel has buckets.
const IDLE_TICKS: u64 = 1_000_000;

/// Schedules a workload in a new engine at tick 0; returns the engine and what has to fire.
fn placed<E: Engine>(work: &Workload) -> (E, Checksum) {
    let engine = E::new();
    schedule_all(&engine.producer(), 0, work);
    (engine, work.expected(0, 1))
}

/// Fires a workload, placed in a new engine, in a rhythm; returns the time to fire it.
fn fire_placed<E: Engine, R: Rhythm<E>>(work: &Workload) -> Duration {
    let (mut engine, expected) = placed::<E>(work);
    fire::<E, R>(&mut engine, 0..work.span, &expected)
}

/// Fires a workload in a rhythm.
fn whole<E: Engine, R: Rhythm<E>>(task: &Task, spread: Spread, what: &str) -> Outcome {
    let work = task.workload(spread, 0);
    let elapsed = (0..task.repeats()).map(|_| fire_placed::<E, R>(&work)).sum();
    let mut outcome = Outcome::new(work.expected(0, 1).digest());
    outcome.time(what, elapsed, task.repeats() * task.timers);
    outcome
}

/// The longest call of a tick, until a workload has fired, in ns.
fn longest<E: Engine>(task: &Task, spread: Spread) -> f64 {
    let work = task.workload(spread, 0);
    let ((mut engine, expected), mut longest) = (placed::<E>(&work), Duration::ZERO);
    drive::<E, ByTicks>(&mut engine, 0..work.span, &expected, |engine, now, fired| {
        longest = longest.max(time(|| engine.advance(now, fired)));
    });
    longest.as_nanos() as f64
}

/// Deadlines over 30 minutes, and a call for each tick.
pub(crate) fn ticks<E: Engine>(task: &Task) -> Outcome {
    whole::<E, ByTicks>(task, Spread::ThirtyMinutes, TICKED)
}

/// Deadlines over 30 minutes, as an event loop.
pub(crate) fn event_loop<E: Next>(task: &Task) -> Outcome {
    whole::<E, ByLoop>(task, Spread::ThirtyMinutes, LOOPED)
}

/// All placed within one second for 30 minutes later: tick by tick, then as an event loop.
pub(crate) fn burst<E: Next>(task: &Task) -> Outcome {
    let spread = Spread::PlacedInOneSecond;
    let mut outcome = whole::<E, ByTicks>(task, spread, TICKED);
    outcome.figure(LONGEST, longest::<E>(task, spread));
    outcome.figures.extend(whole::<E, ByLoop>(task, spread, LOOPED).figures);
    outcome
}

/// Moves the clock of a new engine tick by tick, while a workload waits that is due later.
fn idle<E: Engine>(work: &Workload, ticks: u64) -> Duration {
    let mut engine = E::new();
    schedule_all(&engine.producer(), ticks, work);
    let elapsed = fire::<E, ByTicks>(&mut engine, 0..ticks, &Checksum::default());
    fire_all(&mut engine, ticks + work.span, &work.expected(ticks, 1));
    elapsed
}

/// Ticks at which nothing is due, one after the other, with the task's timers pending.
pub(crate) fn idle_ticks<E: Engine>(task: &Task) -> Outcome {
    let work = task.workload(Spread::ThirtyMinutes, 0);
    let mut outcome = Outcome::new(work.expected(IDLE_TICKS, 1).digest());
    outcome.time(IDLE, idle::<E>(&work, IDLE_TICKS), IDLE_TICKS as usize);
    outcome
}

/// Few timers in nodes used before: scheduled while as many are pending; and in bulk.
pub(crate) fn small<E: Engine>(task: &Task) -> Outcome {
    let [others, work] = [1, 0].map(|nth| task.workload(Spread::ThirtyMinutes, nth));
    let (mut engine, mut base, mut spent) = (E::new(), THIRTY_MINUTES, [Duration::ZERO; 2]);
    round_trip(&mut engine, 0, &others);
    for _ in 0..task.repeats() {
        schedule_all(&engine.producer(), base, &others);
        spent[0] += schedule_all(&engine.producer(), base, &work);
        base += THIRTY_MINUTES;
        engine.advance(base, &mut Checksum::default());
        spent[1] += round_trip(&mut engine, base, &work).into_iter().sum::<Duration>();
        base += THIRTY_MINUTES;
    }
    let mut outcome = Outcome::new(work.expected(0, 1).digest());
    for (what, elapsed) in [INTO, BOTH].into_iter().zip(spent) {
        outcome.time(what, elapsed, task.repeats() * task.timers);
    }
    outcome
}
