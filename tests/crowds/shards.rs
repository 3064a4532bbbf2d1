//! Hundreds of shards, used in turn.

use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Advancer, Config, Key, Scheduler, shard};

use crate::support::alone;

const SHARDS: usize = 400;
const FEW: usize = 16;

/// How many times as long a call may take with hundreds of shards, whose memory does not fit into a
/// cache.
const DEARER: u32 = 20;

/// Calls on each shard in a sample, and the number of samples.
const ROUNDS: usize = 20;
const SAMPLES: usize = 25;

type Shards = (Vec<Scheduler<usize>>, Vec<Advancer<usize>>);

fn shards(count: usize) -> Shards {
    let config = Config::builder().wheel_size(64).build().expect("a power of two");
    (0..count).map(|_| shard(&config)).unzip()
}

fn set_all(schedulers: &[Scheduler<usize>], payload: usize) -> Vec<Key> {
    let set = |(i, one): (usize, &Scheduler<usize>)| one.schedule(1 + (i as u64 % 50), payload);
    schedulers.iter().enumerate().map(|shard| set(shard).expect("there is memory")).collect()
}

/// Each timer of each shard has its outcome, whatever the order in which threads use the shards.
#[test]
fn no_timer_is_lost_when_threads_use_shards_in_turn() {
    const THREADS: usize = 4;
    let (schedulers, advancers) = shards(SHARDS);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let schedulers = &schedulers;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let payload = number * ROUNDS + round;
                    let keys = set_all(schedulers, payload);
                    // The thread cancels the timers of every second shard.
                    for (scheduler, key) in schedulers.iter().zip(keys).step_by(2) {
                        assert_eq!(scheduler.cancel(key), Some(payload));
                    }
                }
            });
        }
    });
    for (i, mut advancer) in advancers.into_iter().enumerate() {
        let mut fired: Vec<_> = advancer.advance(100).map(|fired| fired.payload).collect();
        fired.sort_unstable();
        let expected = if i % 2 == 0 { 0 } else { THREADS * ROUNDS };
        assert!(fired.into_iter().eq(0..expected), "shard {i}");
    }
}

/// The time to schedule and cancel on each of `count` shards in turn: the median of samples.
fn time_of_a_call(count: usize) -> Duration {
    let (schedulers, _advancers) = shards(count);
    let round = || {
        for scheduler in &schedulers {
            let key = scheduler.schedule(1 << 20, 1).expect("there is memory");
            assert_eq!(scheduler.cancel(key), Some(1));
        }
    };
    let sample = |_| {
        let begin = Instant::now();
        (0..ROUNDS * SHARDS / count).for_each(|_| round());
        begin.elapsed() / (ROUNDS * SHARDS) as u32
    };
    let mut samples: Vec<_> = (0..SAMPLES).map(sample).collect();
    samples.sort_unstable();
    samples[SAMPLES / 2]
}

#[test]
fn a_call_costs_about_the_same_with_many_shards() {
    alone(|| {
        let (few, many) = (time_of_a_call(FEW), time_of_a_call(SHARDS));
        let enough = DEARER * few.max(Duration::from_nanos(20));
        assert!(many < enough, "{few:?} with {FEW} shards, {many:?} with {SHARDS}");
    });
}
