//! Criterion benchmarks of what programs do with a shard, and with a heap behind a mutex. The
//! throughput counts timers, ticks at which nothing is due, or pairs of schedule and cancel.

use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};

fn programs(c: &mut Criterion) {
    let mut group = c.benchmark_group("programs");
    // As few samples as criterion accepts: each is a pass over a whole workload, or several.
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(3));
    for program in shardwheel_benches::programs() {
        group.throughput(Throughput::Elements(program.timers as u64));
        group.bench_function(&program.id, |b| b.iter_custom(|passes| program.time(passes)));
    }
    group.finish();
}

criterion_group!(benches, programs);
criterion_main!(benches);
