//! What a shard keeps is bounded by what is pending, not by earlier bursts or by the number of
//! threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Advancer, Config, Scheduler, Tick, Timer, shard};

use crate::support::HOUR;
use crate::threads::{AT_ONCE, crowd};

/// Dead nodes that a shard may hold however few timers are pending.
const DEAD: usize = 4_096;

/// Nodes of a segment, for the payloads here.
const SEGMENT: usize = 65_536;

/// Calls of the advancer in which a sweep must be done while the clock stands still.
const CALLS: usize = 200;

fn stand_still<T>(advancer: &mut Advancer<T>, now: Tick) {
    (0..CALLS).for_each(|_| assert_eq!(advancer.advance(now).count(), 0));
}

/// Each of a hundred threads has checked whether a sweep is due, and has since cancelled one timer
/// less than makes it check again. Promise 5.
#[test]
fn dead_nodes_of_many_threads_stay_bounded() {
    const THREADS: usize = 100;
    let (scheduler, mut advancer) = shard(&Config::default());
    let all_have_looked = Barrier::new(THREADS);
    let cancel = |i: usize| {
        let far =
            |j| scheduler.schedule((1 << 40 | i << 20 | j << 12) as Tick, j).expect("the shard is open");
        let keys: Vec<_> = (0..64).map(far).collect();
        for (j, key) in keys.into_iter().enumerate() {
            assert_eq!(scheduler.cancel(key), Some(j));
            if j == 0 {
                all_have_looked.wait();
            }
        }
    };
    crowd(0..THREADS, &cancel, || {
        stand_still(&mut advancer, 0);
        let stats = scheduler.stats();
        assert!(stats.dead_nodes <= DEAD, "{stats:?}");
    });
}

/// A burst in which the few timers of each thread are in a segment of their own; the threads cancel
/// all of them. Then the clock moves until no more memory goes back. Returns the segments that are
/// left, while the threads are alive or after they have ended.
fn segments_after_a_burst(threads: usize, while_they_live: bool) -> usize {
    let (scheduler, mut advancer) = shard(&Config::default());
    let turns = Mutex::new(());
    let keys = Mutex::new(Vec::new());
    let burst = |i: usize| {
        let _turn = turns.lock().expect("the thread does not panic");
        let own = scheduler.schedule(1 << 40, i).expect("the shard is open");
        assert_eq!(scheduler.cancel(own), Some(i));
        let set = |_| scheduler.schedule(10, i).expect("the shard is open");
        keys.lock().expect("the thread does not panic").extend((0..SEGMENT).map(set));
    };
    let mut left = 0;
    let settle = |advancer: &mut Advancer<usize>| {
        advancer.advance(10).for_each(drop);
        // A thread releases its lane a moment after the scope ends.
        for tick in 11..20_000 {
            thread::sleep(Duration::from_micros(if tick % 100 == 0 { 1_000 } else { 0 }));
            assert_eq!(advancer.advance(tick).count(), 0);
        }
        scheduler.stats().node_capacity / SEGMENT
    };
    crowd(0..threads, &burst, || left = if while_they_live { settle(&mut advancer) } else { 0 });
    if while_they_live { left } else { settle(&mut advancer) }
}

/// Threads that have ended keep a bounded number of a burst's segments. Promise 5.
#[test]
fn ended_threads_keep_a_bounded_number_of_segments() {
    let left = segments_after_a_burst(24, false);
    assert!(left <= 4, "{left} segments");
}

/// The same for idle threads. Promise 5.
#[test]
fn idle_threads_keep_a_bounded_number_of_segments() {
    let left = segments_after_a_burst(24, true);
    assert!(left <= 4, "{left} segments");
}

/// A thread that uses sixty-four shards in turn finds its lane in each as fast as with one shard,
/// also when a thousand other threads use some of them. Promise 3.
#[test]
fn a_thread_finds_its_lane_among_many_shards_quickly() {
    let (shards, _advancers): (Vec<_>, Vec<_>) = (0..64).map(|_| shard(&Config::default())).unzip();
    let (crowded, others) = shards.split_at(3);
    let visit = |scheduler: &Scheduler<usize>| {
        let key = scheduler.schedule(1 << 40, 0).expect("the shard is open");
        assert_eq!(scheduler.cancel(key), Some(0));
    };
    let round = || {
        others.iter().for_each(visit);
        let begin = Instant::now();
        crowded.iter().for_each(visit);
        begin.elapsed()
    };
    let least = || std::iter::repeat_with(round).take(50).min().expect("the list is not empty");
    let before = least();
    crowd(0..AT_ONCE, &|_| crowded.iter().for_each(visit), || {
        let after = least();
        assert!(after <= 4 * before + Duration::from_micros(1), "{before:?} before, {after:?} after");
    });
}

/// Threads that cancel without a pause leave the timer's thread little of the processor. The nodes
/// that they leave dead are swept all the same. Promise 5.
///
/// What stays depends on who else uses the processor, so this runs by itself: 33,000 nodes usually, and
/// a million where cancellers do not yield.
#[test]
#[ignore = "needs the machine to itself: cargo test --test crowds outrun -- --ignored"]
fn cancels_of_many_threads_do_not_outrun_the_sweep() {
    const THREADS: usize = 16;
    const TIMERS: usize = 1_000;
    let timer = Timer::builder().shards(1).build().expect("settings within their limits");
    let most = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..150 {
                    let keys: Vec<_> =
                        (0..TIMERS).map(|_| timer.schedule_after(HOUR, || ()).expect("it is open")).collect();
                    most.fetch_max(timer.stats().node_capacity, Ordering::Relaxed);
                    keys.into_iter().for_each(|key| assert!(timer.cancel(key)));
                }
            });
        }
    });
    // 16,000 timers are pending at most, and as many nodes dead; 2.4 million timers were cancelled.
    let most = most.into_inner();
    assert!(most <= 8 * 32_768, "there was memory for {most} nodes");
}
