//! Resident memory of a process that does one thing. The figures exist on Linux only.

use crate::checksum::Checksum;
use crate::engines::{Engine, Producer};
use crate::machine::{PEAK, RESIDENT, memory_kib};
use crate::suite::{Outcome, Task};
use crate::workload::THIRTY_MINUTES;

pub(crate) const BYTES: &str = "bytes a timer beyond the payload";
pub(crate) const LEFT: &str = "left of the peak after all have fired, a second later";

/// Ticks until memory is read again; the advancer is called at each.
const A_SECOND: u64 = 1_000;

const KIB: f64 = 1024.0;
const PAYLOAD_BYTES: f64 = 8.0;

/// All timers standing, then all fired, then a second of ticks.
pub(crate) fn memory<E: Engine>(task: &Task) -> Outcome {
    let (start, mut engine, mut fired) = (memory_kib(RESIDENT), E::new(), Checksum::default());
    let producer = engine.producer();
    // Deadlines are not stored: the process has the engine's memory only.
    let mut rng = fastrand::Rng::with_seed(1);
    (0..task.timers as u64).for_each(|payload| {
        producer.schedule(rng.u64(1..=THIRTY_MINUTES), payload);
    });
    let standing = memory_kib(RESIDENT);
    engine.advance(THIRTY_MINUTES, &mut fired);
    assert_eq!(fired.count(), task.timers as u64, "{} lost timers", E::NAME);
    let (peak, mut outcome) = (memory_kib(PEAK), Outcome::new(fired.digest()));
    let a_timer = |kib| kib * KIB / task.timers as f64 - PAYLOAD_BYTES;
    outcome.figure(BYTES, standing.zip(start).map(|(standing, start)| a_timer(standing - start)));
    outcome.figure("peak, MiB", peak.map(|peak| peak / KIB));
    (1..=A_SECOND).for_each(|tick| engine.advance(THIRTY_MINUTES + tick, &mut fired));
    outcome.figure(LEFT, memory_kib(RESIDENT).zip(peak).map(|(left, peak)| left / peak));
    outcome
}
