//! Resident memory of a process that does one thing. The figures exist on Linux only.

use crate::checksum::Checksum;
use crate::engines::{Cancel, Engine, Producer};
use crate::machine::{PEAK, RESIDENT, memory_kib};
use crate::measure::one_thread::PAIRS_PER_ADVANCE;
use crate::passes::pair_each;
use crate::suite::{Outcome, Task};
use crate::workload::THIRTY_MINUTES;

pub(crate) const BYTES: &str = "bytes a timer beyond the payload";
pub(crate) const LEFT: &str = "left of the peak after all have fired, a second later";

/// Ticks until memory is read again; the advancer is called at each.
const A_SECOND: u64 = 1_000;

pub(crate) const KIB: f64 = 1024.0;
pub(crate) const PAYLOAD_BYTES: f64 = 8.0;

/// All timers standing, then all fired, then a second of ticks.
pub(crate) fn burst<E: Engine>(task: &Task) -> Outcome {
    measure_burst::<E>(task).unwrap_or_default()
}

fn measure_burst<E: Engine>(task: &Task) -> Option<Outcome> {
    let start = memory_kib(RESIDENT)?;
    let (mut engine, mut fired) = (E::new(), Checksum::default());
    let producer = engine.producer();
    // Deadlines are not stored: the process has the engine's memory only.
    let mut rng = fastrand::Rng::with_seed(1);
    (0..task.timers as u64).for_each(|payload| {
        producer.schedule(rng.u64(1..=THIRTY_MINUTES), payload);
    });
    let standing = memory_kib(RESIDENT)?;
    engine.advance(THIRTY_MINUTES, &mut fired);
    assert_eq!(fired.count(), task.timers as u64, "{} lost timers", E::NAME);
    let peak = memory_kib(PEAK)? as f64;
    let mut outcome = Outcome::new(fired.digest());
    outcome.figure(BYTES, (standing as f64 - start as f64) * KIB / task.timers as f64 - PAYLOAD_BYTES);
    outcome.figure("peak, MiB", peak / KIB);
    (1..=A_SECOND).for_each(|tick| engine.advance(THIRTY_MINUTES + tick, &mut fired));
    outcome.figure(LEFT, memory_kib(RESIDENT)? as f64 / peak);
    Some(outcome)
}

/// Names the growth over rounds of schedule and cancel.
pub(crate) fn growth(advanced: bool) -> String {
    let advancer = if advanced { "called now and then" } else { "not called" };
    format!("growth over rounds of schedule + cancel, MiB, advancer {advancer}")
}

/// Growth over as many pairs of schedule and cancel as the task has timers.
pub(crate) fn growth_advanced<E: Engine<Producer: Cancel>>(task: &Task) -> Outcome {
    measure_growth::<E>(task, true).unwrap_or_default()
}

/// As [`growth_advanced`], without calls of the advancer.
pub(crate) fn growth_alone<E: Engine<Producer: Cancel>>(task: &Task) -> Outcome {
    measure_growth::<E>(task, false).unwrap_or_default()
}

fn measure_growth<E: Engine<Producer: Cancel>>(task: &Task, advanced: bool) -> Option<Outcome> {
    let delays = [THIRTY_MINUTES; PAIRS_PER_ADVANCE];
    let start = memory_kib(RESIDENT)?;
    let mut engine = E::new();
    let producer = engine.producer();
    for _ in 0..task.timers.div_ceil(PAIRS_PER_ADVANCE) {
        pair_each(&producer, 0, &delays);
        if advanced {
            engine.advance(0, &mut Checksum::default());
        }
    }
    let mut outcome = Outcome::new(0);
    outcome.figure(growth(advanced), (memory_kib(PEAK)? - start) as f64 / KIB);
    Some(outcome)
}
