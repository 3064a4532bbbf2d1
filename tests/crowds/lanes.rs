//! What a shard keeps is bounded by what is pending, not by what was, nor by how many threads there
//! were.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Advancer, Config, Job, Scheduler, Tick, Timer, shard};

use crate::support::{HOUR, Tampered, is_on_shard_of, ms, until, watched};

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

/// A shard with far timers that were cancelled while many others were pending, and those have fired.
fn far_ones_cancelled_others_fired() -> (Scheduler<u64>, Advancer<u64>) {
    let (scheduler, mut advancer) = shard(&Config::default());
    let far = |i: u64| scheduler.schedule(1_000_000 + 7_919 * i, i).expect("it is open");
    let keys: Vec<_> = (0..60_000).map(far).collect();
    (0..100_000).for_each(|i| assert!(scheduler.schedule(10, i).is_ok()));
    assert!(keys.into_iter().all(|key| scheduler.cancel(key).is_some()));
    assert_eq!(advancer.advance(10).count(), 100_000);
    (scheduler, advancer)
}

/// Calls the advancer only when it has asked for it, the clock standing still; returns how often that was.
fn answer_rings<T>(advancer: &mut Advancer<T>, rings: &Arc<Rings>) -> usize {
    let (waker, mut heard) = (Arc::clone(rings).into(), rings.0.load(Ordering::SeqCst));
    let begin = heard;
    loop {
        advancer.register_waker(&waker);
        black_box(advancer.next_expiration());
        let rung = rings.0.load(Ordering::SeqCst);
        if std::mem::replace(&mut heard, rung) == rung {
            return heard - begin;
        }
        assert_eq!(advancer.advance(10).count(), 0);
    }
}

/// Far timers are cancelled while many are pending, and those fire. Promise 5.
#[test]
fn item_14_dead_nodes_are_swept_when_others_have_fired() {
    let (scheduler, mut advancer) = far_ones_cancelled_others_fired();
    stand_still(&mut advancer, 10);
    let stats = scheduler.stats();
    assert!(stats.dead_nodes <= DEAD, "{stats:?}");
}

/// The same where the advancer is called only when it has asked for it. Promise 5.
#[test]
fn item_14_a_sweep_is_owed_when_others_have_fired() {
    let (scheduler, mut advancer) = far_ones_cancelled_others_fired();
    let heard = answer_rings(&mut advancer, &Arc::default());
    let stats = scheduler.stats();
    assert!(stats.dead_nodes <= DEAD, "after {heard} rings: {stats:?}");
}

/// Once, many dead nodes were tolerated, as many timers were pending. Those have fired and the dead are gone. A thousand
/// more than are tolerated now are cancelled while the advancer sleeps: it is woken. Promise 5.
#[test]
fn item_14_the_advancer_is_woken_though_many_were_tolerated_once() {
    let (scheduler, mut advancer) = shard(&Config::default());
    let rings = Arc::<Rings>::default();
    let far = |i: u64| scheduler.schedule(1_000_000 + 7_919 * i, i).expect("it is open");
    (0..200_000).for_each(|i| assert!(scheduler.schedule(10, i).is_ok()));
    let due_too: Vec<_> = (0..20_000).map(|i| scheduler.schedule(10, i).expect("it is open")).collect();
    assert!(due_too.into_iter().all(|key| scheduler.cancel(key).is_some()));
    assert_eq!(advancer.advance(10).count(), 200_000);
    answer_rings(&mut advancer, &rings);
    assert!(scheduler.stats().dead_nodes <= DEAD);

    let keys: Vec<_> = (0..DEAD as u64 + 1_000).map(far).collect();
    answer_rings(&mut advancer, &rings);
    let before = rings.0.load(Ordering::SeqCst);
    assert!(keys.into_iter().all(|key| scheduler.cancel(key).is_some()));
    assert!(rings.0.load(Ordering::SeqCst) > before);
    assert_eq!(advancer.advance(10).count(), 0);
    answer_rings(&mut advancer, &rings);
    let stats = scheduler.stats();
    assert!(stats.dead_nodes <= DEAD, "{stats:?}");
}

/// Counts how often it is woken.
#[derive(Default)]
struct Rings(AtomicUsize);

impl std::task::Wake for Rings {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

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

/// Recurring timers that are stopped while a slow executor holds them keep no thread awake. Promise
/// 9.
#[test]
fn read_recurring_timers_stopped_while_an_executor_holds_them() {
    watched(|| {
        let (readings, jobs) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::<Job>::new())));
        let (read, keep) = (Arc::clone(&readings), Arc::clone(&jobs));
        let before = move || {
            if is_on_shard_of("held-") {
                read.fetch_add(1, Ordering::SeqCst);
            }
        };
        let builder = Timer::builder().shards(1).thread_name("held").clock(Tampered { before, manual: None });
        let builder = builder.executor(move |job: Job| keep.lock().expect("no panic").push(job));
        let timer = builder.build().expect("settings within their limits");
        let every = |_| timer.schedule_every(ms(1), || ()).expect("the timer is open");
        let keys: Vec<_> = (0..4_000).map(every).collect();
        until("all are held", || jobs.lock().expect("no panic").len() == keys.len());
        assert!(keys.into_iter().all(|key| timer.cancel(key)));
        thread::sleep(ms(200));
        let before = readings.load(Ordering::SeqCst);
        thread::sleep(ms(1_000));
        let read = readings.load(Ordering::SeqCst) - before;
        assert!(read <= 500, "{read} readings of the clock within an idle second");
        // What cannot be swept is no reason for the others' cancellers to ask for a sweep, again
        // and again.
        let before = readings.load(Ordering::SeqCst);
        for _ in 0..100 {
            churn(&timer, 64);
            thread::sleep(ms(1));
        }
        let read = readings.load(Ordering::SeqCst) - before;
        assert!(read <= 100, "{read} readings of the clock while others cancel");
        jobs.lock().expect("no panic").clear();
    });
}

fn churn(timer: &Timer, count: usize) {
    for _ in 0..count {
        let key = timer.schedule_after(HOUR, || ()).expect("the timer is open");
        assert!(timer.cancel(key));
    }
}
