//! Two threads, with an engine each or on one; and timers that another thread cancels.
//!
//! Each producer has the whole work to do, and the time is divided by the operations of all
//! threads: perfect scaling halves it.

use std::thread;
use std::time::Duration;

use crate::checksum::Checksum;
use crate::engines::{Cancel, Engine};
use crate::machine::pin;
use crate::names::{ALONE, APART, SHARED};
use crate::passes::{cancel_all, fire_all, pairs, race, round_trip, schedule_all, schedule_keeping};
use crate::suite::{Outcome, Task};
use crate::workload::{Spread, Workload};

/// Bytes a timer that are backed for each run: more than an engine and a workload take.
const BYTES: usize = 128;

const CROSS: &str = "cancel, scheduled by another thread";

/// The operations of [`producers`].
const OPERATIONS: [&str; 2] = ["schedule, nodes used before", "schedule + cancel"];

/// What each operation is measured with, and the number of threads.
const LAYOUTS: [(&str, usize); 3] = [(ALONE, 1), (APART, 2), (SHARED, 2)];

/// Measures each operation in each layout, a different layout first in each round.
pub(crate) fn producers<E: Engine<Producer: Cancel + Send>>(task: &Task) -> Outcome {
    let repeats = task.repeats();
    let passes: [Pass<E>; 2] = [(schedule_all, 1), (pairs, 0)];
    let work = task.workload(Spread::ThirtyMinutes, 0);
    let mut outcome = Outcome::new(work.expected(0, 1).digest());
    for (operation, pass) in OPERATIONS.into_iter().zip(passes) {
        let mut times = [Duration::ZERO; 3];
        for nth in (0..3 * repeats).map(|nth| (nth / repeats + task.round) % 3) {
            task.back(LAYOUTS[nth].1 * task.timers * BYTES);
            times[nth] += match LAYOUTS[nth] {
                (SHARED, _) => on_one::<E>(&work, pass),
                (_, threads) => on_own::<E>(threads, &work, pass),
            };
        }
        for ((layout, threads), time) in LAYOUTS.into_iter().zip(times) {
            outcome.time(format!("{operation}: {layout}"), time, repeats * task.timers * threads);
        }
    }
    outcome
}

/// A pass of a producer over a workload that begins at a tick, and how many copies it leaves.
type Pass<E> = (fn(&<E as Engine>::Producer, u64, &Workload) -> Duration, usize);

/// Makes a pass in each thread, in nodes used before. Then fires what it left.
fn on_own<E: Engine>(threads: usize, work: &Workload, (pass, copies): Pass<E>) -> Duration {
    let base = work.span;
    let prepare = || {
        let mut engine = E::new();
        let producer = engine.producer();
        round_trip(&mut engine, 0, work);
        move || {
            pass(&producer, base, work);
            engine
        }
    };
    let then = |mut engine: E| {
        fire_all(&mut engine, base + work.span, &work.expected(base, copies));
    };
    race(vec![prepare; threads], then)
}

/// As [`on_own`], by two threads on one engine.
fn on_one<E: Engine<Producer: Send>>(work: &Workload, pass: Pass<E>) -> Duration {
    let mut engine = E::new();
    let mut make = |base, (pass, copies): Pass<E>| {
        let prepare = [engine.producer(), engine.producer()]
            .map(|producer| move || move || pass(&producer, base, work));
        let elapsed = race(prepare.into(), drop);
        fire_all(&mut engine, base + work.span, &work.expected(base, 2 * copies));
        elapsed
    };
    make(0, (schedule_all, 1));
    make(work.span, pass)
}

/// One thread schedules all; another one cancels them, in random order.
pub(crate) fn cross_cancel<E: Engine<Producer: Cancel<Handle: Send> + Send>>(task: &Task) -> Outcome {
    let (mut engine, mut handles) = (E::new(), Vec::new());
    let work = task.workload(Spread::ThirtyMinutes, 0);
    schedule_keeping(&engine.producer(), &work, &mut handles);
    fastrand::Rng::with_seed(task.seed(3)).shuffle(&mut handles);
    let producer = engine.producer();
    let cancel = move || {
        pin(1);
        cancel_all(&producer, &handles)
    };
    let elapsed = thread::scope(|scope| scope.spawn(cancel).join());
    fire_all(&mut engine, work.span, &Checksum::default());
    let mut outcome = Outcome::new(work.expected(0, 1).digest());
    outcome.time(CROSS, elapsed.expect("a thread panicked"), task.timers);
    outcome
}
