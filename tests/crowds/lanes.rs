//! What a shard keeps is bounded by what is pending, not by what was, nor by how many threads there
//! were.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Advancer, Config, Scheduler, Tick, shard};

use crate::support::until;

/// Dead nodes that a shard may hold however few timers are pending.
const DEAD: usize = 4_096;

/// Nodes of a segment, for the payloads here.
const SEGMENT: usize = 65_536;

/// Calls of the advancer, the clock standing still, in which a sweep is to be done.
const CALLS: usize = 200;

fn stand_still<T>(advancer: &mut Advancer<T>, now: Tick) {
    (0..CALLS).for_each(|_| assert_eq!(advancer.advance(now).count(), 0));
}

// ---- 14: dead nodes -----------------------------------------------------------------------------

/// Runs `work` on so many threads, all of which have begun before any ends, and stay until
/// `meanwhile` is done.
fn crowd(count: usize, work: impl Fn(usize) + Sync, meanwhile: impl FnOnce()) {
    let meeting = Barrier::new(count + 1);
    thread::scope(|scope| {
        for i in 0..count {
            let (meeting, work) = (&meeting, &work);
            let visit = move || {
                work(i);
                meeting.wait();
                meeting.wait();
            };
            thread::Builder::new().stack_size(1 << 17).spawn_scoped(scope, visit).expect("a thread starts");
        }
        meeting.wait();
        // What it asserts comes out when the threads have been let go.
        let done = catch_unwind(AssertUnwindSafe(meanwhile));
        meeting.wait();
        done.unwrap_or_else(|panic| resume_unwind(panic));
    });
}

/// Each of a hundred threads has looked whether a sweep is due, and since then cancelled just fewer
/// timers than make it look again. Promise 5.
#[test]
fn item_14_dead_nodes_of_many_threads() {
    const THREADS: usize = 100;
    let (scheduler, mut advancer) = shard(&Config::default());
    let all_have_looked = Barrier::new(THREADS);
    let cancel = |i: usize| {
        let far = |j| scheduler.schedule((1 << 40 | i << 20 | j << 12) as Tick, j).expect("it is open");
        let keys: Vec<_> = (0..64).map(far).collect();
        for (j, key) in keys.into_iter().enumerate() {
            assert_eq!(scheduler.cancel(key), Some(j));
            if j == 0 {
                all_have_looked.wait();
            }
        }
    };
    crowd(THREADS, cancel, || {
        stand_still(&mut advancer, 0);
        let stats = scheduler.stats();
        assert!(stats.dead_nodes <= DEAD, "{stats:?}");
    });
}

// ---- 16: lanes ----------------------------------------------------------------------------------

/// The least time that a turn takes, of many.
fn turn(scheduler: &Scheduler<usize>, advancer: &mut Advancer<usize>) -> Duration {
    const TURNS: u32 = 50;
    let batch = || {
        let now = scheduler.now();
        let begin = Instant::now();
        for tick in 1..=TURNS {
            assert_eq!(advancer.advance(now + Tick::from(tick)).count(), 0);
            black_box(advancer.next_expiration());
        }
        begin.elapsed() / TURNS
    };
    std::iter::repeat_with(batch).take(50).min().expect("there are some")
}

/// Threads that have ended cost a turn nothing: two thousand of them cost one two hundred
/// microseconds. Promise 5.
#[test]
fn item_16_threads_that_have_ended_cost_a_turn_nothing() {
    const THREADS: usize = 2_000;
    let (scheduler, mut advancer) = shard(&Config::default());
    scheduler.schedule(1 << 40, 0).expect("it is open");
    let before = turn(&scheduler, &mut advancer);
    let visit = |i| {
        let key = scheduler.schedule(1 << 30, i).expect("it is open");
        assert_eq!(scheduler.cancel(key), Some(i));
    };
    crowd(THREADS, visit, || ());
    // A thread gives its lane up a moment after a scope takes it to have ended.
    let limit = 8 * before + Duration::from_micros(5);
    until("a turn is short again", || turn(&scheduler, &mut advancer) <= limit);
}

// ---- found by reading ---------------------------------------------------------------------------

/// A burst in which each thread's few timers lie in a segment of their own, all of which are
/// cancelled by their threads; then the clock moves until nothing more goes back. Returns the
/// segments left, `meanwhile` or after the threads have ended.
fn segments_after_a_burst(threads: usize, while_they_live: bool) -> usize {
    let (scheduler, mut advancer) = shard(&Config::default());
    let turns = Mutex::new(());
    let keys = Mutex::new(Vec::new());
    let burst = |i: usize| {
        let _turn = turns.lock().expect("no panic");
        let own = scheduler.schedule(1 << 40, i).expect("it is open");
        assert_eq!(scheduler.cancel(own), Some(i));
        let set = |_| scheduler.schedule(10, i).expect("it is open");
        keys.lock().expect("no panic").extend((0..SEGMENT).map(set));
    };
    let mut left = 0;
    let settle = |advancer: &mut Advancer<usize>| {
        advancer.advance(10).for_each(drop);
        // A thread gives its lane up a moment after a scope takes it to have ended.
        for tick in 11..20_000 {
            thread::sleep(Duration::from_micros(if tick % 100 == 0 { 1_000 } else { 0 }));
            assert_eq!(advancer.advance(tick).count(), 0);
        }
        scheduler.stats().node_capacity / SEGMENT
    };
    crowd(threads, burst, || left = if while_they_live { settle(&mut advancer) } else { 0 });
    if while_they_live { left } else { settle(&mut advancer) }
}

/// What threads that have ended keep of the nodes of a burst is bounded by a constant. Promise 5.
#[test]
fn read_threads_that_have_ended_keep_no_segments() {
    let left = segments_after_a_burst(24, false);
    assert!(left <= 4, "{left} segments");
}

/// What idle threads keep is as well. Promise 5.
#[test]
fn read_idle_threads_keep_no_segments() {
    let left = segments_after_a_burst(24, true);
    assert!(left <= 4, "{left} segments");
}

/// A thread that uses sixty-four shards by turns finds its way to each as fast as if it used one.
/// Promise 3.
#[test]
fn read_a_thread_with_many_shards() {
    const THREADS: usize = 1_000;
    let (shards, _advancers): (Vec<_>, Vec<_>) = (0..64).map(|_| shard(&Config::default())).unzip();
    let (crowded, others) = shards.split_at(3);
    let visit = |scheduler: &Scheduler<usize>| {
        let key = scheduler.schedule(1 << 40, 0).expect("it is open");
        assert_eq!(scheduler.cancel(key), Some(0));
    };
    let round = || {
        others.iter().for_each(visit);
        let begin = Instant::now();
        crowded.iter().for_each(visit);
        begin.elapsed()
    };
    let least = || std::iter::repeat_with(round).take(50).min().expect("there are some");
    let before = least();
    crowd(
        THREADS,
        |_| crowded.iter().for_each(visit),
        || {
            let after = least();
            assert!(after <= 4 * before + Duration::from_micros(1), "{before:?} before, {after:?} after");
        },
    );
}
