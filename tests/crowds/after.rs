//! What a crowd leaves when its threads have ended: a turn of the advancer costs no more, and no
//! memory is kept.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Advancer, Config, Scheduler, Tick, Timer, shard};

use crate::support::resident;
use crate::threads::{Work, many, wave, waves};

/// How many times as long a turn may take after a crowd as before it.
const DEARER: u32 = 20;

/// How far resident memory may be above its start, in bytes.
const LEFT: usize = 8 << 20;

/// Timers that each thread of a crowd sets on a shard; it cancels every second one.
const TIMERS: usize = 500;

/// Turns in a sample, and moves of the clock in which the advancer frees memory.
const TURNS: u64 = 2_000;
const MOVES: u64 = 20_000;

const PATIENCE: Duration = Duration::from_secs(60);

fn turn(advancer: &mut Advancer<u64>) {
    let now = advancer.scheduler().now() + 1;
    black_box(advancer.advance(now).count());
    black_box(advancer.next_expiration());
}

/// The median time of a turn.
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

/// A turn takes about as long as before the crowd.
fn a_turn_costs_no_more_after(crowd: fn(Work<'_>)) {
    let (scheduler, mut advancer) = shard::<u64>(&Config::default());
    // A far timer stays pending, as in a usual program.
    scheduler.schedule(1 << 40, 0).expect("there is memory");
    let before = turns(&mut advancer);
    crowd(&|number| {
        let key = scheduler.schedule(1 << 30, number as u64).expect("there is memory");
        assert_eq!(scheduler.cancel(key), Some(number as u64));
    });
    let after = turns(&mut advancer);
    assert!(after < DEARER * before.max(Duration::from_nanos(200)), "{before:?} before, {after:?} after");
}

/// Bytes of stack that a call needs in a test build. The C library keeps the stacks of ended
/// threads, as deep as they were used.
const STACK: usize = 64 << 10;

/// Runs a crowd of the same size that uses no shard, so that the memory that the system and the
/// allocator keep for threads counts as before. Returns the resident memory.
fn settle(crowd: fn(Work<'_>)) -> usize {
    crowd(&|number| {
        black_box([number as u8; STACK]);
        drop(black_box(vec![number; 3 * TIMERS]));
    });
    // The system frees the stacks of ended threads a little later.
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

/// Waits until the memory is back: the system frees the stacks of ended threads a little later, and a
/// timer's threads free its memory meanwhile.
fn wait_until_back<S: std::fmt::Debug>(start: usize, is_over: impl Fn() -> bool, stats: impl Fn() -> S) {
    let begin = Instant::now();
    while !(is_over() && is_back(start)) {
        let after = resident();
        assert!(begin.elapsed() < PATIENCE, "{start} at the start, {after} after; {:?}", stats());
        thread::sleep(Duration::from_millis(10));
    }
}

/// A shard frees its memory when the clock has moved for a while.
fn memory_of_a_shard(crowd: fn(Work<'_>)) {
    let (scheduler, mut advancer) = shard::<u64>(&Config::default());
    let start = settle(crowd);
    crowd(&|number| use_shard(&scheduler, number));
    let end = scheduler.now() + 200_000;
    let (fired, stats) = (advancer.advance(end).count() as u64, scheduler.stats());
    assert_eq!((stats.pending, stats.scheduled), (0, stats.cancelled + fired), "a timer is lost");
    for _ in 0..MOVES {
        turn(&mut advancer);
    }
    // What the shard itself owes, at once.
    assert_eq!(scheduler.stats().node_capacity, 0, "{:?}", scheduler.stats());
    wait_until_back(start, || true, || scheduler.stats());
}

fn use_timer(timer: &Timer, number: usize) {
    let delay = |i| Duration::from_millis(1 + ((number + 7 * i) % 100) as u64);
    let set = |i| timer.schedule_after(delay(i), || ()).expect("there is memory");
    let keys: Vec<_> = (0..TIMERS).map(set).collect();
    for key in keys.into_iter().step_by(2) {
        // False if the timer has fired meanwhile.
        let _ = timer.cancel(key);
    }
}

/// A timer's own threads free its memory.
fn memory_of_a_timer(crowd: fn(Work<'_>)) {
    let timer = Timer::builder().shards(2).build().expect("settings within their limits");
    let start = settle(crowd);
    crowd(&|number| use_timer(&timer, number));
    wait_until_back(start, || timer.stats().pending == 0, || timer.stats());
}

/// An empty shard's tables take only the memory that is used, however many shards there are.
fn empty_shards() {
    let before = resident();
    let timer = Timer::builder().shards(128).wheel_size(8).build().expect("settings within their limits");
    let taken = resident().saturating_sub(before);
    assert!(taken < 32 << 20, "{taken} bytes");
    drop(timer);
}

alone! {
    a_turn_costs_no_more_after_threads_came_and_went: a_turn_costs_no_more_after(waves);
    a_turn_costs_no_more_after_many_threads_at_once: a_turn_costs_no_more_after(many);
    a_shards_memory_goes_back_after_threads_came_and_went: memory_of_a_shard(waves);
    a_shards_memory_goes_back_after_one_wave: memory_of_a_shard(wave);
    a_shards_memory_goes_back_after_many_threads_at_once: memory_of_a_shard(many);
    a_timers_memory_goes_back_after_threads_came_and_went: memory_of_a_timer(waves);
    a_timers_memory_goes_back_after_many_threads_at_once: memory_of_a_timer(many);
    many_empty_shards_take_little_memory: empty_shards();
}
