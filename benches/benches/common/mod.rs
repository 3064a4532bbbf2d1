//! What both sets of criterion benchmarks share: which sizes to run, and for how long.

use std::env;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput};
use shardwheel_benches::{label, pin};

/// The variable that adds the largest size when it is 1.
const LARGE: &str = "SHARDWHEEL_BENCH_LARGE";

const SIZES: [usize; 3] = [10_000, 1_000_000, 10_000_000];

/// Samples for each figure: as few as criterion accepts, since each is a pass over a whole workload.
const SAMPLES: usize = 10;

const WARM_UP: Duration = Duration::from_millis(300);
const MEASUREMENT: Duration = Duration::from_secs(2);

/// A group of benchmarks at one size.
pub(crate) type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// Runs `bench` in a group called `name`, once for each size.
pub(crate) fn for_each_size(c: &mut Criterion, name: &str, bench: fn(&mut Group<'_>, usize)) {
    pin(0);
    let large = env::var(LARGE).is_ok_and(|value| value == "1");
    let sizes = if large { &SIZES[..] } else { &SIZES[..2] };
    for &size in sizes {
        let mut group = c.benchmark_group(format!("{name}/{}", label(size)));
        group.sample_size(SAMPLES).sampling_mode(SamplingMode::Flat);
        group.warm_up_time(WARM_UP).measurement_time(MEASUREMENT);
        group.throughput(Throughput::Elements(size as u64));
        bench(&mut group, size);
        group.finish();
    }
}

/// The sum of `iterations` passes.
pub(crate) fn repeat(iterations: u64, mut pass: impl FnMut() -> Duration) -> Duration {
    (0..iterations).map(|_| pass()).sum()
}
