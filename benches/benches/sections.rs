//! Criterion benchmarks: the passes behind the main figures of `report`. The throughput counts
//! timers, or pairs of schedule and cancel.

use std::env;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use shardwheel_benches::{engines, label, pass};

const SIZES: [usize; 3] = [10_000, 1_000_000, 10_000_000];

/// Sections and figures of `report`.
const FIGURES: [(&str, &str); 8] = [
    ("random", "schedule, fresh nodes"),
    ("random", "schedule, nodes used before"),
    ("random", "fire, nodes used before"),
    ("constant", "fire"),
    ("cancel", "cancelled at once, 0 standing, advancer called now and then"),
    ("extend", "extend, in the order scheduled"),
    ("producers", "schedule, nodes used before: 2 threads, one each"),
    ("producers", "schedule, nodes used before: 2 threads on one"),
];

fn sections(c: &mut Criterion) {
    let sizes = if env::var("SHARDWHEEL_BENCH_LARGE").is_ok_and(|value| value == "1") { 3 } else { 2 };
    for ((section, figure), size) in
        FIGURES.into_iter().flat_map(|it| SIZES[..sizes].iter().map(move |s| (it, *s)))
    {
        let mut group = c.benchmark_group(format!("{section}/{figure}/{}", label(size)));
        // As few samples as criterion accepts: each is a pass over a whole workload.
        group.sample_size(10).sampling_mode(SamplingMode::Flat).throughput(Throughput::Elements(size as u64));
        group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
        for engine in engines(section) {
            group.bench_function(engine, |b| {
                b.iter_custom(|passes| (0..passes).map(|_| pass(section, figure, engine, size)).sum());
            });
        }
        group.finish();
    }
}

criterion_group!(benches, sections);
criterion_main!(benches);
