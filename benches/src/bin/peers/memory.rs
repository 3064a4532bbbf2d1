//! Resident memory of a process that holds one engine and its timers.

use shardwheel_benches::{
    Cancel, Checksum, Engine, Producer, Spread, Workload, drain, peak_kib, resident_kib, schedule_all,
};

use crate::peer::{Outcome, Task};

const KIB: f64 = 1024.0;
const PAYLOAD_BYTES: f64 = 8.0;

pub(crate) const BYTES: &str = "all standing, bytes a timer beyond the payload";

/// For how many ticks the clock goes on after all have been cancelled: a second.
const TICKS_AFTER: u64 = 1_000;

/// Resident memory of the empty engine, for each of its timers, and at the most while they fire. There are no
/// figures where the system does not say.
pub(crate) fn standing<E: Engine>(task: Task) -> Outcome {
    let work = Workload::new(Spread::ThirtyMinutes, task.size, task.seed(0));
    let start = resident_kib();
    let (mut engine, mut fired) = (E::new(), Checksum::default());
    let empty = resident_kib();
    schedule_all(&engine.producer(), 0, &work);
    let standing = resident_kib();
    drain(&mut engine, work.span(), &mut fired);
    fired.verify(&work.expected(0, 1), E::NAME);
    let since = |now: Option<u64>| Some(now?.saturating_sub(start?) as f64);
    let figures = [
        ("empty, MiB", since(empty).map(|kib| kib / KIB)),
        (BYTES, since(standing).map(|kib| kib * KIB / task.size as f64 - PAYLOAD_BYTES)),
        ("peak while they fire, MiB", since(peak_kib()).map(|kib| kib / KIB)),
    ];
    outcome(&fired, &figures)
}

/// What is left of it when all have been cancelled, and when the clock has gone on for a second. The handles, which
/// are the caller's, are taken off.
pub(crate) fn cancelled<E: Engine<Producer: Cancel>>(task: Task) -> Outcome {
    let work = Workload::new(Spread::ThirtyMinutes, task.size, task.seed(0));
    let (mut engine, mut fired) = (E::new(), Checksum::default());
    let producer = engine.producer();
    let handles: Vec<_> =
        work.delays().iter().zip(0..).map(|(&at, payload)| producer.schedule(at, payload)).collect();
    let standing = resident_kib();
    let found = handles.iter().filter(|&&handle| producer.cancel(handle).is_some()).count();
    assert_eq!(found, task.size, "{} lost a timer", E::NAME);
    let at_once = resident_kib();
    // The first deadline may be one of these ticks, but nothing is pending.
    (1..=TICKS_AFTER).for_each(|tick| engine.advance(tick, &mut fired));
    let later = resident_kib();
    fired.verify(&Checksum::default(), E::NAME);
    let bytes = |now: Option<u64>, less: f64| Some(now? as f64 * KIB / task.size as f64 - less);
    let start = (size_of_val(&handles[..]) / task.size) as f64 + size_of::<u64>() as f64;
    let figures = [
        ("all standing, bytes a timer", bytes(standing, start)),
        ("all cancelled", bytes(at_once, start)),
        ("a second of ticks later", bytes(later, start)),
    ];
    outcome(&fired, &figures)
}

fn outcome(fired: &Checksum, figures: &[(&str, Option<f64>)]) -> Outcome {
    let known = |&(what, figure): &(&str, Option<f64>)| Some((what.to_owned(), figure?));
    Outcome { checksum: fired.digest(), figures: figures.iter().filter_map(known).collect() }
}
