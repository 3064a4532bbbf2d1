//! One thread that moves the clock as programs do.

use std::time::Duration;

use crate::checksum::Checksum;
use crate::engines::{Engine, Next};
use crate::names::BOTH;
use crate::passes::{round_trip, schedule_all};
use crate::rhythm::{AtOnce, ByLoop, ByTicks, Rhythm, drive, fire};
use crate::samples::Times;
use crate::suite::{Outcome, Task};
use crate::workload::{Spread, THIRTY_MINUTES, Workload};

pub(crate) const IDLE: &str = "a tick, nothing due";
pub(crate) const INTO: &str = "schedule, as many pending";

/// The ticks over which an idle tick is measured, fewer than the flat wheel has buckets.
const IDLE_TICKS: u64 = 1_000_000;

/// Schedules a workload in a new engine at tick 0; returns both and what has to fire.
fn placed<E: Engine>(task: &Task, spread: Spread) -> (E, Workload, Checksum) {
    let (engine, work) = (E::new(), task.workload(spread, 0));
    schedule_all(&engine.producer(), 0, &work);
    let expected = work.expected(0, 1);
    (engine, work, expected)
}

/// Fires a workload in a rhythm.
fn whole<E: Engine, R: Rhythm<E>>(task: &Task, spread: Spread) -> Outcome {
    let (mut outcome, mut elapsed) = (Outcome::default(), Duration::ZERO);
    for _ in 0..task.repeats() {
        let (mut engine, work, expected) = placed::<E>(task, spread);
        elapsed += fire::<E, R>(&mut engine, 0..work.span, &expected);
        outcome.checksum = expected.digest();
    }
    outcome.time(R::FIGURES[0], elapsed, task.repeats() * task.timers);
    outcome
}

/// Times each call of a rhythm, until a workload has fired.
fn single<E: Engine, R: Rhythm<E>>(task: &Task, spread: Spread) -> Outcome {
    let (mut engine, work, expected) = placed::<E>(task, spread);
    let (mut outcome, mut calls) = (Outcome::new(expected.digest()), Times::new());
    drive::<E, R>(&mut engine, 0..work.span, &expected, |engine, now, fired| {
        calls.time(|| engine.advance(now, fired));
    });
    outcome.figures.extend(calls.figures(R::FIGURES[1]));
    outcome
}

/// Deadlines over 30 minutes, and a call for each tick.
pub(crate) fn ticks<E: Engine>(task: &Task) -> Outcome {
    whole::<E, ByTicks>(task, Spread::ThirtyMinutes)
}

/// Deadlines over 30 minutes, as an event loop.
pub(crate) fn event_loop<E: Next>(task: &Task) -> Outcome {
    whole::<E, ByLoop>(task, Spread::ThirtyMinutes)
}

/// Deadlines over 30 minutes; single calls.
pub(crate) fn worst<E: Engine>(task: &Task) -> Outcome {
    single::<E, ByTicks>(task, Spread::ThirtyMinutes)
}

fn burst<E: Engine, R: Rhythm<E>>(task: &Task) -> Outcome {
    let mut outcome = whole::<E, R>(task, Spread::PlacedInOneSecond);
    outcome.figures.extend(single::<E, R>(task, Spread::PlacedInOneSecond).figures);
    outcome
}

/// All placed within one second for 30 minutes later, with a call for each tick.
pub(crate) fn burst_by_ticks<E: Engine>(task: &Task) -> Outcome {
    burst::<E, ByTicks>(task)
}

/// As [`burst_by_ticks`], then as an event loop.
pub(crate) fn bursts<E: Next>(task: &Task) -> Outcome {
    let mut outcome = burst::<E, ByTicks>(task);
    outcome.figures.extend(burst::<E, ByLoop>(task).figures);
    outcome
}

/// Ticks at which nothing is due, one after the other, with the task's timers pending.
pub(crate) fn idle_ticks<E: Engine>(task: &Task) -> Outcome {
    let (mut engine, work) = (E::new(), task.workload(Spread::ThirtyMinutes, 0));
    schedule_all(&engine.producer(), IDLE_TICKS, &work);
    let elapsed = fire::<E, ByTicks>(&mut engine, 0..IDLE_TICKS, &Checksum::default());
    let expected = work.expected(IDLE_TICKS, 1);
    fire::<E, AtOnce>(&mut engine, IDLE_TICKS..IDLE_TICKS + THIRTY_MINUTES, &expected);
    let mut outcome = Outcome::new(expected.digest());
    outcome.time(IDLE, elapsed, IDLE_TICKS as usize);
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
