//! Resident memory of a process that holds one engine and its timers.

use shardwheel_benches::{Checksum, Engine, Spread, Workload, drain, peak_kib, resident_kib, schedule_all};

use crate::peer::{Outcome, Task};

const KIB: f64 = 1024.0;
const PAYLOAD_BYTES: f64 = 8.0;

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
        (
            "all standing, bytes a timer beyond the payload",
            since(standing).map(|kib| kib * KIB / task.size as f64 - PAYLOAD_BYTES),
        ),
        ("peak while they fire, MiB", since(peak_kib()).map(|kib| kib / KIB)),
    ];
    let known = |(what, figure): (&str, Option<f64>)| Some((what.to_owned(), figure?));
    Outcome { checksum: fired.digest(), figures: figures.into_iter().filter_map(known).collect() }
}
