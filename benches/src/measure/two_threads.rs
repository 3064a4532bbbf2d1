//! Two threads: what one thread achieves alone, two with an engine each, and two on one engine.
//!
//! Each thread has the whole work to do, and the time is divided by the operations of all threads:
//! perfect scaling halves it. An engine without a lock has no figure for two threads on one.

use std::time::Duration;

use super::one_thread::{OUT_OF_THE_WAY, PAIRS};
use crate::checksum::Checksum;
use crate::engines::{Cancel, Engine, Producer};
use crate::names::{ALONE, APART, SHARED};
use crate::passes::{Churn, fire_all, pairs, race_then, round_trip, schedule_all};
use crate::suite::{Outcome, Task};
use crate::workload::{Spread, THIRTY_MINUTES, Workload};

/// All standing timers, and those that a churn leaves, have fired by then.
const ALL_DUE: u64 = OUT_OF_THE_WAY + THIRTY_MINUTES;

/// Bytes a timer that are backed for each run.
const BYTES: usize = 128;

/// The most operations of a run that waits for a lock: the lock is as contended with fewer timers,
/// and a run with more takes minutes.
const ENOUGH_FOR_A_LOCK: usize = 1_000_000;

/// The operations of [`producers`].
pub(crate) const OPERATIONS: [&str; 3] =
    ["schedule, fresh nodes", "schedule, nodes used before", "schedule + cancel"];

/// The time of threads with an engine each, and the time of two threads on one engine.
type Own<'a> = &'a dyn Fn(usize, &Workload) -> Duration;
type Shared<'a> = &'a dyn Fn(&Workload) -> Duration;

/// Schedules at random over 30 minutes, for engines that threads cannot share. As many timers have
/// fired before: two threads that touch fresh memory wait for each other in the kernel.
pub(crate) fn two_schedule_apart<E: Engine>(task: &Task) -> Outcome {
    let own: Own<'_> = &|threads, work| on_own::<E>(threads, work, true, (schedule_all, 1));
    outcome(task, [1, task.timers], own, None)
}

/// As [`two_schedule_apart`], for engines that threads can share.
pub(crate) fn two_schedule<E: Engine<Producer: Send>>(task: &Task) -> Outcome {
    passes::<E>(task, 1, true, (schedule_all, 1))
}

/// A churn in each thread, for engines that threads cannot share. The task's timers stand.
pub(crate) fn two_churn_apart<E: Engine<Producer: Cancel>>(task: &Task) -> Outcome {
    outcome(task, [1, PAIRS], &churn_on_own::<E>, None)
}

/// As [`two_churn_apart`], for engines that threads can share.
pub(crate) fn two_churn<E: Engine<Producer: Cancel + Send> + Send>(task: &Task) -> Outcome {
    outcome(task, [1, PAIRS], &churn_on_own::<E>, Some(&churn_on_one::<E>))
}

/// Each of [`OPERATIONS`], repeated.
pub(crate) fn producers<E: Engine<Producer: Cancel + Send>>(task: &Task) -> Outcome {
    operations::<E>(task, task.repeats())
}

/// As [`producers`], with fewer repeats: two threads that wait for a lock are slow, and no verdict
/// rests on them.
pub(crate) fn producers_of_a_lock<E: Engine<Producer: Cancel + Send>>(task: &Task) -> Outcome {
    operations::<E>(task, task.operations.min(ENOUGH_FOR_A_LOCK) / task.timers)
}

fn operations<E: Engine<Producer: Cancel + Send>>(task: &Task, repeats: usize) -> Outcome {
    let passes: [&dyn Fn() -> Outcome; 3] = [
        &|| passes::<E>(task, repeats, false, (schedule_all, 1)),
        &|| passes::<E>(task, repeats, true, (schedule_all, 1)),
        &|| passes::<E>(task, repeats, true, (pairs, 0)),
    ];
    let mut all = Outcome::default();
    for (operation, pass) in OPERATIONS.into_iter().zip(passes).filter(|_| repeats > 0) {
        let one = pass();
        all.checksum = one.checksum;
        all.figures.extend(one.figures.into_iter().map(|(what, ns)| (format!("{operation}: {what}"), ns)));
    }
    all
}

fn passes<E: Engine<Producer: Send>>(task: &Task, repeats: usize, used: bool, pass: Pass<E>) -> Outcome {
    let own: Own<'_> = &|threads, work| on_own::<E>(threads, work, used, pass);
    outcome(task, [repeats, task.timers], own, Some(&|work| on_one::<E>(work, used, pass)))
}

/// Measures each column, a different one first in each round. Each run checks what fired at the
/// end; the digest names the work. `operations` are those of a thread.
fn outcome(
    task: &Task,
    [repeats, operations]: [usize; 2],
    own: Own<'_>,
    shared: Option<Shared<'_>>,
) -> Outcome {
    let work = task.workload(Spread::ThirtyMinutes, 0);
    let columns = [(ALONE, 1), (APART, 2), (SHARED, 2)];
    let count = if shared.is_some() { 3 } else { 2 };
    let mut times = [Duration::ZERO; 3];
    for nth in (0..count).map(|nth| (nth + task.round) % count) {
        for _ in 0..repeats {
            task.back(columns[nth].1 * task.timers * BYTES);
            times[nth] += match shared.filter(|_| nth == 2) {
                Some(shared) => shared(&work),
                None => own(columns[nth].1, &work),
            };
        }
    }
    let mut outcome = Outcome::new(work.expected(0, 1).digest());
    for ((what, threads), time) in columns.into_iter().zip(times).take(count) {
        outcome.time(what, time, repeats * operations * threads);
    }
    outcome
}

/// A pass of a producer over a workload that begins at a tick, and how many copies it leaves.
type Pass<E> = (fn(&<E as Engine>::Producer, u64, &Workload) -> Duration, usize);

/// Makes a pass in each thread, in nodes used before if `used`. Then fires what it left.
fn on_own<E: Engine>(threads: usize, work: &Workload, used: bool, (pass, copies): Pass<E>) -> Duration {
    let base = if used { work.span } else { 0 };
    let prepare = || {
        let mut engine = E::new();
        let producer = engine.producer();
        if used {
            round_trip(&mut engine, 0, work);
        }
        move || {
            pass(&producer, base, work);
            engine
        }
    };
    let then = |mut engine: E| fire_all(&mut engine, base + work.span, &work.expected(base, copies));
    race_then(vec![prepare; threads], then).0
}

/// As [`on_own`], by two threads on one engine.
fn on_one<E: Engine<Producer: Send>>(work: &Workload, used: bool, pass: Pass<E>) -> Duration {
    let mut engine = E::new();
    let mut make = |base, (pass, copies): Pass<E>| {
        let prepare = [engine.producer(), engine.producer()].map(|producer| {
            move || {
                producer.enter();
                move || pass(&producer, base, work)
            }
        });
        let elapsed = race_then(prepare.into(), drop).0;
        fire_all(&mut engine, base + work.span, &work.expected(base, 2 * copies));
        elapsed
    };
    if used {
        make(0, (schedule_all, 1));
    }
    make(if used { work.span } else { 0 }, pass)
}

fn churn_on_own<E: Engine<Producer: Cancel>>(threads: usize, standing: &Workload) -> Duration {
    let prepare = || {
        let mut engine = with_standing::<E>(standing);
        let mut churn = Churn::new(engine.producer());
        move || {
            churn.run(PAIRS, |clock| engine.advance(clock, &mut Checksum::default()));
            (engine, churn.pending())
        }
    };
    let then = |(mut engine, pending)| fire_all(&mut engine, ALL_DUE, &after_churns(standing, [pending]));
    race_then(vec![prepare; threads], then).0
}

/// The first thread moves the clock as well.
fn churn_on_one<E: Engine<Producer: Cancel + Send> + Send>(standing: &Workload) -> Duration {
    let mut engine = with_standing::<E>(standing);
    let producers = [engine.producer(), engine.producer()];
    let threads = producers.into_iter().zip([Some(&mut engine), None]).map(|(producer, mut advancer)| {
        move || {
            producer.enter();
            let mut churn = Churn::new(producer);
            move || {
                churn.run(PAIRS, |clock| {
                    if let Some(engine) = &mut advancer {
                        engine.advance(clock, &mut Checksum::default());
                    }
                });
                churn.pending()
            }
        }
    });
    let (elapsed, pending) = race_then(threads.collect(), |pending| pending);
    fire_all(&mut engine, ALL_DUE, &after_churns(standing, pending));
    elapsed
}

fn with_standing<E: Engine>(standing: &Workload) -> E {
    let engine = E::new();
    schedule_all(&engine.producer(), OUT_OF_THE_WAY, standing);
    engine
}

/// Returns what is left of the standing timers and of the churns.
fn after_churns(standing: &Workload, pending: impl IntoIterator<Item = Vec<(u64, u64)>>) -> Checksum {
    let mut expected = standing.expected(OUT_OF_THE_WAY, 1);
    pending.into_iter().flatten().for_each(|(deadline, payload)| expected.expect(deadline, payload));
    expected
}
