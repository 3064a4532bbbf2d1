//! Criterion: what programs do with a shard, beside a heap or a map behind a mutex. Run it before a
//! change and after it: criterion says what has changed, and the twin's figure whether that was the
//! machine. The tables of the README pages are measured by the program of this package.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{
    BatchSize, BenchmarkGroup, Criterion, SamplingMode, Throughput, criterion_group, criterion_main,
};
use shardwheel::{Advancer, Config, Scheduler, shard};

const SIZES: [u64; 2] = [10_000, 1_000_000];
/// Thirty minutes, in ticks of a millisecond.
const SPAN: u64 = 30 * 60 * 1000;
/// Ticks between two looks of a loop at its timers.
const STEP: usize = 10;

type Shard = (Scheduler<u64>, Advancer<u64>);

/// Random deadlines, the same ones each time.
fn deadlines(timers: u64) -> Vec<u64> {
    let mut rng = fastrand::Rng::with_seed(11);
    (0..timers).map(|_| rng.u64(1..=SPAN)).collect()
}

fn filled(work: &[u64]) -> Shard {
    let (scheduler, advancer) = shard(&Config::default());
    for &due in work {
        scheduler.schedule(due, due).expect("there is no bound");
    }
    (scheduler, advancer)
}

/// A group for `timers` timers. A pass is long, so criterion takes the fewest samples that it accepts.
fn group<'a>(c: &'a mut Criterion, what: &str, timers: u64) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(format!("{what}, {timers}"));
    group.sample_size(10).sampling_mode(SamplingMode::Flat).throughput(Throughput::Elements(timers));
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(3));
    group
}

fn schedule_and_fire(c: &mut Criterion) {
    for timers in SIZES {
        let work = deadlines(timers);
        let mut group = group(c, "schedule and fire", timers);
        group.bench_function("shard", |b| {
            b.iter(|| {
                let (_scheduler, mut advancer) = filled(&work);
                let fired: usize = (0..=SPAN).step_by(STEP).map(|now| advancer.advance(now).count()).sum();
                assert_eq!(fired, work.len());
            });
        });
        group.bench_function("heap", |b| {
            b.iter(|| {
                let heap = Mutex::new(BinaryHeap::new());
                let locked = || heap.lock().unwrap_or_else(PoisonError::into_inner);
                work.iter().for_each(|&due| locked().push(Reverse((due, due))));
                for now in (0..=SPAN).step_by(STEP) {
                    let mut heap = locked();
                    while heap.peek().is_some_and(|next| next.0.0 <= now) {
                        heap.pop();
                    }
                }
                assert!(locked().is_empty());
            });
        });
    }
}

fn schedule_and_cancel(c: &mut Criterion) {
    for timers in SIZES {
        let work = deadlines(timers);
        let mut group = group(c, "schedule and cancel", timers);
        group.bench_function("shard", |b| {
            let (scheduler, _advancer) = filled(&work);
            b.iter(|| {
                for &due in &work {
                    let key = scheduler.schedule(due, due).expect("there is no bound");
                    assert_eq!(scheduler.cancel(key), Some(due));
                }
            });
        });
        group.bench_function("map", |b| {
            let map = Mutex::new(work.iter().copied().zip(0..).collect::<BTreeSet<_>>());
            let locked = || map.lock().unwrap_or_else(PoisonError::into_inner);
            b.iter(|| {
                for (&due, number) in work.iter().zip(timers..) {
                    locked().insert((due, number));
                    assert!(locked().remove(&(due, number)));
                }
            });
        });
    }
}

fn idle_ticks(c: &mut Criterion) {
    for timers in SIZES {
        let work = deadlines(timers).into_iter().map(|due| due + SPAN).collect::<Vec<_>>();
        group(c, "ticks at which nothing is due", timers).bench_function("shard", |b| {
            let look = |(_scheduler, mut advancer): Shard| {
                (0..timers).all(|now| advancer.advance(now).next().is_none())
            };
            b.iter_batched(|| filled(&work), look, BatchSize::PerIteration);
        });
    }
}

criterion_group!(benches, schedule_and_fire, schedule_and_cancel, idle_ticks);
criterion_main!(benches);
