//! What is left of a crowd when its threads have ended: nothing that a turn of the advancer costs, no memory.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Advancer, Config, Scheduler, Tick, Timer, shard};

use crate::support::{alone, resident};
use crate::threads::{wave, waves};
use crate::{THREADS, WAVE};

/// Threads at once that leave something behind, if threads do.
const MANY: usize = 2_000;

/// How many times as long a turn may take after a crowd as before it.
const DEARER: u32 = 20;

/// What resident memory may be above its start.
const LEFT: usize = 8 << 20;

/// What a thread of the crowd does on a shard: so many timers set, every second one cancelled.
const TIMERS: usize = 500;

/// Turns in a sample; and how many moves of the clock the advancer has to give memory back.
const TURNS: u64 = 2_000;
const MOVES: u64 = 20_000;

const PATIENCE: Duration = Duration::from_secs(60);

fn turn(advancer: &mut Advancer<u64>) {
    let now = advancer.scheduler().now() + 1;
    black_box(advancer.advance(now).count());
    black_box(advancer.next_expiration());
}

/// The median of what a turn takes.
fn turns(advancer: &mut Advancer<u64>) -> Duration {
    let time = |_| {
        let begin = Instant::now();
        turn(advancer);
        begin.elapsed()
    };
    let mut times: Vec<_> = (0..TURNS).map(time).collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn use_shard(scheduler: &Scheduler<u64>, number: usize) {
    let deadline = |i: usize| 1 + ((number * TIMERS + i) as Tick * 7_919) % 100_000;
    let set = |i| scheduler.schedule(deadline(i), 0).expect("there is memory");
    let keys: Vec<_> = (0..TIMERS).map(set).collect();
    assert_eq!(keys.into_iter().step_by(2).filter_map(|key| scheduler.cancel(key)).count(), TIMERS / 2);
}

/// A turn costs about what it did before there was a crowd.
fn a_turn_costs_no_more_after(crowd: impl FnOnce(&(dyn Fn(usize) + Sync))) {
    let (scheduler, mut advancer) = shard::<u64>(&Config::default());
    // A timer far away that stays, as usual.
    scheduler.schedule(1 << 40, 0).expect("there is memory");
    let before = turns(&mut advancer);
    crowd(&|number| {
        let key = scheduler.schedule(1 << 30, number as u64).expect("there is memory");
        assert_eq!(scheduler.cancel(key), Some(number as u64));
    });
    let after = turns(&mut advancer);
    assert!(after < DEARER * before.max(Duration::from_nanos(200)), "{before:?} before, {after:?} after");
}

#[test]
fn a_turn_after_threads_that_came_and_went() {
    alone(|| {
        a_turn_costs_no_more_after(|work| waves(THREADS, work));
    });
}

#[test]
fn a_turn_after_many_threads_at_once() {
    alone(|| {
        a_turn_costs_no_more_after(|work| wave(0, MANY, work));
    });
}

/// Stack that a call needs in a build for tests. The system's library keeps the stacks of threads that have ended, as deep
/// as they were used.
const STACK: usize = 64 << 10;

/// Has a crowd of the same size come and go that uses no shard, so that what the system and the allocator keep for
/// threads counts as before.
fn settle(crowd: impl Fn(&(dyn Fn(usize) + Sync))) -> usize {
    crowd(&|number| {
        black_box([number as u8; STACK]);
        drop(black_box(vec![number; 3 * TIMERS]));
    });
    // The system takes the stacks of threads that have ended a little later.
    let mut before = resident();
    loop {
        thread::sleep(Duration::from_millis(100));
        let now = resident();
        if now >= before {
            return now;
        }
        before = now;
    }
}

fn is_back(start: usize) -> bool {
    resident() <= start + LEFT
}

/// A shard by itself: memory is back when the clock has moved for a while.
fn memory_of_a_shard(crowd: impl Fn(&(dyn Fn(usize) + Sync))) {
    let (scheduler, mut advancer) = shard::<u64>(&Config::default());
    let start = settle(&crowd);
    crowd(&|number| use_shard(&scheduler, number));
    let end = scheduler.now() + 200_000;
    advancer.advance(end).for_each(drop);
    assert!(scheduler.is_empty());
    for _ in 0..MOVES {
        turn(&mut advancer);
    }
    assert!(is_back(start), "{start} at the start, {} after; {:?}", resident(), scheduler.stats());
}

#[test]
fn memory_of_a_shard_after_threads_that_came_and_went() {
    alone(|| {
        memory_of_a_shard(|work| waves(THREADS, work));
    });
}

#[test]
fn memory_of_a_shard_after_one_wave() {
    alone(|| memory_of_a_shard(|work| wave(0, WAVE, work)));
}

#[test]
fn memory_of_a_shard_after_many_threads_at_once() {
    alone(|| {
        memory_of_a_shard(|work| wave(0, MANY, work));
    });
}

fn use_timer(timer: &Timer, number: usize) {
    let delay = |i| Duration::from_millis(1 + ((number + 7 * i) % 100) as u64);
    let set = |i| timer.schedule_after(delay(i), || ()).expect("there is memory");
    let keys: Vec<_> = (0..TIMERS).map(set).collect();
    for key in keys.into_iter().step_by(2) {
        // Or it has fired by now.
        let _ = timer.cancel(key);
    }
}

/// A timer, whose threads give memory back by themselves.
fn memory_of_a_timer(crowd: impl Fn(&(dyn Fn(usize) + Sync))) {
    let timer = Timer::builder().shards(2).build().expect("settings within their limits");
    let start = settle(&crowd);
    crowd(&|number| use_timer(&timer, number));
    let begin = Instant::now();
    while timer.stats().pending > 0 || !is_back(start) {
        let stats = timer.stats();
        assert!(begin.elapsed() < PATIENCE, "{start} at the start, {} after; {stats:?}", resident());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn memory_of_a_timer_after_threads_that_came_and_went() {
    alone(|| {
        memory_of_a_timer(|work| waves(THREADS, work));
    });
}

#[test]
fn memory_of_a_timer_after_many_threads_at_once() {
    alone(|| {
        memory_of_a_timer(|work| wave(0, MANY, work));
    });
}
