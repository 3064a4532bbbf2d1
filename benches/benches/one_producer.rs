//! Criterion benchmarks on one thread.
//!
//! An iteration is a pass over a whole workload, so read the throughput: it counts timers, or pairs of
//! schedule and cancel. What a pass needs before and after is done outside the timed part, and on the clock
//! that criterion plans by.

mod common;

use std::cell::LazyCell;
use std::time::Duration;

use common::{Group, for_each_size, repeat};
use criterion::{Criterion, criterion_group, criterion_main};
use shardwheel_benches::{
    BareHeap, Cancel, Checksum, Engine, Heap, Spread, Wheel, Workload, drain, extend_all, later,
    pairs_advanced, schedule_all, schedule_keeping,
};

const SEED: u64 = 1;

/// How many timers stand in the way of the second run of schedule and cancel.
const STANDING: usize = 1_000_000;

/// A workload that is made when the first benchmark which a filter lets through needs it.
type LazyWork<'a> = LazyCell<Workload, Box<dyn FnOnce() -> Workload + 'a>>;

fn lazy(spread: Spread, size: usize) -> LazyWork<'static> {
    LazyCell::new(Box::new(move || Workload::new(spread, size, SEED)))
}

/// An engine that fires a workload again and again, so that its nodes have all been used before.
struct Cycle<E: Engine> {
    engine: E,
    base: u64,
}

impl<E: Engine> Cycle<E> {
    fn used(work: &Workload) -> Self {
        let mut cycle = Self { engine: E::new(), base: 0 };
        cycle.run(work);
        cycle
    }

    /// Schedules and fires all of `work`; the times of both.
    fn run(&mut self, work: &Workload) -> [Duration; 2] {
        let mut fired = Checksum::default();
        let schedule = schedule_all(&self.engine.producer(), self.base, work);
        let fire = drain(&mut self.engine, self.base + work.span(), &mut fired);
        fired.verify(&work.expected(self.base, 1), E::NAME);
        self.base += work.span();
        [schedule, fire]
    }
}

fn schedule(c: &mut Criterion) {
    for_each_size(c, "schedule", |group, size| {
        let work = lazy(Spread::ThirtyMinutes, size);
        schedule_with::<Wheel>(group, &work);
        schedule_with::<Heap>(group, &work);
        schedule_with::<BareHeap>(group, &work);
    });
}

fn schedule_with<E: Engine>(group: &mut Group<'_>, work: &LazyWork<'_>) {
    group.bench_function(format!("{}/fresh nodes", E::NAME), |b| {
        b.iter_custom(|iterations| {
            repeat(iterations, || {
                let engine = E::new();
                schedule_all(&engine.producer(), 0, work)
            })
        });
    });
    let mut used = None;
    group.bench_function(format!("{}/nodes used before", E::NAME), |b| {
        let cycle = used.get_or_insert_with(|| Cycle::<E>::used(work));
        b.iter_custom(|iterations| repeat(iterations, || cycle.run(work)[0]));
    });
}

fn fire_random(c: &mut Criterion) {
    for_each_size(c, "fire_random", |group, size| fire(group, Spread::ThirtyMinutes, size));
}

fn fire_within_one_second(c: &mut Criterion) {
    for_each_size(c, "fire_within_one_second", |group, size| fire(group, Spread::PlacedInOneSecond, size));
}

fn fire(group: &mut Group<'_>, spread: Spread, size: usize) {
    let work = lazy(spread, size);
    fire_with::<Wheel>(group, &work);
    fire_with::<Heap>(group, &work);
    fire_with::<BareHeap>(group, &work);
}

fn fire_with<E: Engine>(group: &mut Group<'_>, work: &LazyWork<'_>) {
    let mut used = None;
    group.bench_function(E::NAME, |b| {
        let cycle = used.get_or_insert_with(|| Cycle::<E>::used(work));
        b.iter_custom(|iterations| repeat(iterations, || cycle.run(work)[1]));
    });
}

fn schedule_cancel(c: &mut Criterion) {
    for_each_size(c, "schedule_cancel", |group, size| {
        let work = lazy(Spread::ThirtyMinutes, size);
        for (what, standing) in [("none standing", 0), ("1M standing", STANDING)] {
            let standing = lazy(Spread::ThirtyMinutes, standing);
            schedule_cancel_with::<Wheel>(group, what, &standing, &work);
            schedule_cancel_with::<Heap>(group, what, &standing, &work);
        }
    });
}

/// A new engine for each sample, so that the heap does not carry the stale entries of all samples.
fn schedule_cancel_with<E: Engine<Producer: Cancel>>(
    group: &mut Group<'_>,
    what: &str,
    standing: &LazyWork<'_>,
    work: &LazyWork<'_>,
) {
    group.bench_function(format!("{}/{what}", E::NAME), |b| {
        b.iter_custom(|iterations| {
            let mut engine = E::new();
            schedule_all(&engine.producer(), 0, standing);
            repeat(iterations, || pairs_advanced(&mut engine, 0, work))
        });
    });
}

fn extend(c: &mut Criterion) {
    for_each_size(c, "extend", |group, size| {
        let work = lazy(Spread::ThirtyMinutes, size);
        let extended: LazyWork<'_> = LazyCell::new(Box::new(|| later(&work, SEED + 1)));
        extend_with::<Wheel>(group, &work, &extended);
        extend_with::<Heap>(group, &work, &extended);
    });
}

fn extend_with<E: Engine<Producer: Cancel>>(
    group: &mut Group<'_>,
    work: &LazyWork<'_>,
    extended: &LazyWork<'_>,
) {
    group.bench_function(E::NAME, |b| {
        let mut handles = Vec::new();
        b.iter_custom(|iterations| {
            repeat(iterations, || {
                let engine = E::new();
                let producer = engine.producer();
                schedule_keeping(&producer, 0, work, &mut handles);
                extend_all(&producer, 0, &mut handles, extended.delays())
            })
        });
    });
}

criterion_group!(benches, schedule, schedule_cancel, extend, fire_random, fire_within_one_second);
criterion_main!(benches);
