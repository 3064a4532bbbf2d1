//! Criterion benchmarks of two producer threads, on a shard each and on one together, beside one producer.
//!
//! Each thread has the size's number of timers. The throughput counts the timers of one thread, so that
//! figures of the same height mean that two threads do twice the work in the same time.

mod common;

use std::cell::LazyCell;
use std::time::Duration;

use common::{Group, for_each_size, repeat};
use criterion::{Criterion, criterion_group, criterion_main};
use shardwheel_benches::{Cancel, Engine, Heap, Layout, Spread, Wheel, Workload, pairs, schedule_all};

const SEED: u64 = 1;

type LazyWork = LazyCell<Workload, Box<dyn FnOnce() -> Workload>>;

fn two_producers(c: &mut Criterion) {
    for_each_size(c, "two_producers", |group, size| {
        let work: LazyWork =
            LazyCell::new(Box::new(move || Workload::new(Spread::ThirtyMinutes, size, SEED)));
        for layout in Layout::ALL {
            bench_layout::<Wheel>(group, layout, &work);
            bench_layout::<Heap>(group, layout, &work);
        }
    });
}

fn bench_layout<E: Engine<Producer: Cancel + Send> + Send>(
    group: &mut Group<'_>,
    layout: Layout,
    work: &LazyWork,
) {
    let name = format!("{}/{}", E::NAME, layout.name());
    let mut used = None;
    group.bench_function(format!("{name}/schedule"), |b| {
        let cycle = used.get_or_insert_with(|| Cycle::<E>::used(layout, work));
        b.iter_custom(|iterations| repeat(iterations, || cycle.run(work)));
    });
    group.bench_function(format!("{name}/schedule_cancel"), |b| {
        b.iter_custom(|iterations| {
            let engines = layout.engines::<E>();
            let work: &Workload = work;
            repeat(iterations, || layout.race(&engines, |producer| move || pairs(&producer, 0, work)))
        });
    });
}

/// Engines that fire a workload again and again, so that their nodes have all been used before.
struct Cycle<E> {
    layout: Layout,
    engines: Vec<E>,
    base: u64,
}

impl<E: Engine<Producer: Send> + Send> Cycle<E> {
    fn used(layout: Layout, work: &Workload) -> Self {
        let mut cycle = Self { layout, engines: layout.engines(), base: 0 };
        cycle.run(work);
        cycle
    }

    /// Schedules and fires all of `work`; the time of scheduling.
    fn run(&mut self, work: &Workload) -> Duration {
        let base = self.base;
        let elapsed = self.layout.race(&self.engines, |producer| move || schedule_all(&producer, base, work));
        self.layout.drain(&mut self.engines, base, work);
        self.base += work.span();
        elapsed
    }
}

criterion_group!(benches, two_producers);
criterion_main!(benches);
