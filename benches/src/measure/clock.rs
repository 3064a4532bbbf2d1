//! One thread that moves the clock as programs do.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::checksum::Checksum;
use crate::engines::{Cancel, Engine, Next, Producer};
use crate::names::BOTH;
use crate::passes::{LOST, fire_all, round_trip, schedule_all};
use crate::rhythm::{ByLoop, ByTicks, LOOPED, Rhythm, TICKED, drive, fire};
use crate::samples::Times;
use crate::suite::{Outcome, Task};
use crate::workload::{Spread, THIRTY_MINUTES, Workload};

pub(crate) const IDLE: &str = "a tick, nothing due";
pub(crate) const BESIDE: &str = "a tick, nothing due, beside threads that have cancelled";
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
pub(crate) fn fire_placed<E: Engine, R: Rhythm<E>>(work: &Workload) -> Duration {
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

/// Times each call of a rhythm, until a workload has fired.
fn single<E: Engine, R: Rhythm<E>>(task: &Task, spread: Spread, what: &str) -> Outcome {
    let work = task.workload(spread, 0);
    let ((mut engine, expected), mut calls) = (placed::<E>(&work), Times::new());
    drive::<E, R>(&mut engine, 0..work.span, &expected, |engine, now, fired| {
        calls.time(|| engine.advance(now, fired));
    });
    Outcome { checksum: expected.digest(), figures: calls.figures(what).into() }
}

/// Deadlines over 30 minutes, and a call for each tick.
pub(crate) fn ticks<E: Engine>(task: &Task) -> Outcome {
    whole::<E, ByTicks>(task, Spread::ThirtyMinutes, TICKED[0])
}

/// Deadlines over 30 minutes, as an event loop.
pub(crate) fn event_loop<E: Next>(task: &Task) -> Outcome {
    whole::<E, ByLoop>(task, Spread::ThirtyMinutes, LOOPED[0])
}

/// Deadlines over 30 minutes; single calls.
pub(crate) fn worst<E: Engine>(task: &Task) -> Outcome {
    single::<E, ByTicks>(task, Spread::ThirtyMinutes, TICKED[1])
}

/// All placed within one second for 30 minutes later: tick by tick, then as an event loop.
pub(crate) fn burst<E: Next>(task: &Task) -> Outcome {
    let spread = Spread::PlacedInOneSecond;
    let mut outcome = whole::<E, ByTicks>(task, spread, TICKED[0]);
    outcome.figures.extend(single::<E, ByTicks>(task, spread, TICKED[1]).figures);
    outcome.figures.extend(whole::<E, ByLoop>(task, spread, LOOPED[0]).figures);
    outcome.figures.extend(single::<E, ByLoop>(task, spread, LOOPED[1]).figures);
    outcome
}

/// Moves the clock of a new engine tick by tick, while a workload waits that is due later.
pub(crate) fn idle<E: Engine>(work: &Workload, ticks: u64) -> Duration {
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

/// Ticks at which nothing is due, beside as many threads as the task has timers. Each thread has
/// cancelled a timer, whose tick has passed, and waits.
pub(crate) fn idle_ticks_beside<E: Engine<Producer: Cancel + Send>>(task: &Task) -> Outcome {
    let (mut engine, nothing) = (E::new(), Checksum::default());
    let [have_cancelled, end] = [(); 2].map(|()| Barrier::new(task.timers + 1));
    let elapsed = thread::scope(|scope| {
        for producer in (0..task.timers).map(|_| engine.producer()) {
            scope.spawn(|| {
                let producer = producer;
                producer.enter();
                assert!(producer.cancel(producer.schedule(1, 0)).is_some(), "{LOST}");
                have_cancelled.wait();
                end.wait();
            });
        }
        have_cancelled.wait();
        engine.advance(1, &mut Checksum::default());
        let elapsed = fire::<E, ByTicks>(&mut engine, 1..IDLE_TICKS + 1, &nothing);
        end.wait();
        elapsed
    });
    let mut outcome = Outcome::new(nothing.digest());
    outcome.time(BESIDE, elapsed, IDLE_TICKS as usize);
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
