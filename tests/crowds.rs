//! Crowds: thousands of threads that come and go, a thousand at once, sixty shards in a thread, a
//! few hundred timers in turn. No memory is kept, and later calls cost no more than before. (`soak`
//! has crowds, too: no timer is lost.)
//!
//! A test that measures a whole process (its memory, its threads, its mappings) runs in a process
//! that does nothing else: see [`alone`](support::alone).

#[path = "support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;

use std::hint::black_box;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Advancer, Config, ManualClock, Scheduler, Tick, Timer, shard};
use support::allocator::in_use;
use support::{
    Built, HOUR, alone, comes_within, ms, number_of_mappings, number_of_threads, poll, resident, secs,
};

#[global_allocator]
static ALLOCATOR: support::allocator::Counting = support::allocator::Counting;

/// Threads that are alive at once.
const AT_ONCE: usize = 1_000;

/// A small stack, in bytes, as a thousand threads are alive at once.
const STACK: usize = 512 << 10;

/// What each thread of a crowd does, by its number.
type Work<'a> = &'a (dyn Fn(usize) + Sync);

/// Runs `work` in these threads, all of which are alive at once, and stay alive until `meanwhile` is
/// done.
fn crowd(threads: Range<usize>, work: Work<'_>, meanwhile: impl FnOnce()) {
    let meeting = &Barrier::new(threads.len() + 1);
    thread::scope(|scope| {
        for number in threads {
            let thread = move || {
                // A panic must not keep the others waiting.
                let done = catch_unwind(AssertUnwindSafe(|| work(number)));
                meeting.wait();
                meeting.wait();
                done.unwrap_or_else(|panic| resume_unwind(panic));
            };
            let builder = thread::Builder::new().stack_size(STACK);
            builder.spawn_scoped(scope, thread).expect("the system has threads");
        }
        meeting.wait();
        // A failed assertion comes out when the threads have been released.
        let done = catch_unwind(AssertUnwindSafe(meanwhile));
        meeting.wait();
        done.unwrap_or_else(|panic| resume_unwind(panic));
    });
}

/// Threads come and go, a hundred at a time.
fn waves(work: Work<'_>) {
    (0..2_000).step_by(100).for_each(|first| crowd(first..first + 100, work, || ()));
}

/// Many threads at once.
fn many(work: Work<'_>) {
    crowd(0..2 * AT_ONCE, work, || ());
}

fn turn(advancer: &mut Advancer<usize>) {
    let now = advancer.scheduler().now() + 1;
    black_box(advancer.advance(now).count());
    black_box(advancer.next_expiration());
}

/// A turn takes about as long as before the crowd. Promise 5.
#[test]
fn a_turn_costs_no_more_after_many_threads_at_once() {
    const TURNS: usize = 2_000;
    /// How many times as long a turn may take.
    const DEARER: u32 = 20;
    let median = |advancer: &mut Advancer<usize>| {
        let time = |_| {
            let begin = Instant::now();
            turn(advancer);
            begin.elapsed()
        };
        let mut times: Vec<_> = (0..TURNS).map(time).collect();
        times.sort_unstable();
        times[TURNS / 2]
    };
    alone(|| {
        let (scheduler, mut advancer) = shard::<usize>(&Config::default());
        // A far timer stays pending, as in a usual program.
        scheduler.schedule(1 << 40, 0).expect("there is memory");
        let before = median(&mut advancer);
        many(&|number| {
            let key = scheduler.schedule(1 << 30, number).expect("there is memory");
            assert_eq!(scheduler.cancel(key), Some(number));
        });
        let after = median(&mut advancer);
        let most = DEARER * before.max(Duration::from_nanos(200));
        assert!(after < most, "{before:?} before, {after:?} after");
    });
}

/// Timers that each thread of a crowd sets; it cancels every second one.
const TIMERS: usize = 500;

/// Runs a crowd of the same size that uses no timer, so that the memory that the system and the
/// allocator keep for threads counts as before. Returns the resident memory.
fn settle(crowd: fn(Work<'_>)) -> usize {
    crowd(&|number| {
        // The C library keeps the stacks of ended threads, as deep as they were used.
        black_box([number as u8; 64 << 10]);
        drop(black_box(vec![number; 3 * TIMERS]));
    });
    // The system frees the stacks of ended threads a little later.
    let mut before = resident();
    loop {
        thread::sleep(ms(100));
        let now = resident();
        if now >= before {
            return now;
        }
        before = now;
    }
}

/// Waits until the memory is back: the system frees the stacks of ended threads a little later, and a
/// timer's threads free its memory meanwhile.
fn wait_until_back(start: usize, is_over: impl Fn() -> bool) {
    let is_back = comes_within(secs(60), || is_over() && resident() <= start + (8 << 20));
    assert!(is_back, "{start} bytes at the start, {} after", resident());
}

/// A shard frees its memory when the clock has moved for a while. Promise 5.
#[test]
fn a_shards_memory_goes_back_after_many_threads_at_once() {
    alone(|| {
        let (scheduler, mut advancer) = shard::<usize>(&Config::default());
        let start = settle(many);
        many(&|number| {
            let deadline = |i: usize| 1 + ((number * TIMERS + i) as Tick * 7_919) % 100_000;
            let set = |i| scheduler.schedule(deadline(i), 0).expect("there is memory");
            let keys: Vec<_> = (0..TIMERS).map(set).collect();
            let cancelled = keys.into_iter().step_by(2).filter_map(|key| scheduler.cancel(key));
            assert_eq!(cancelled.count(), TIMERS / 2);
        });
        let (fired, stats) = (advancer.advance(200_000).count() as u64, scheduler.stats());
        assert_eq!((stats.pending, stats.scheduled), (0, stats.cancelled + fired), "a timer is lost");
        (0..20_000).for_each(|_| turn(&mut advancer));
        // What the shard itself owes, at once.
        assert_eq!(scheduler.stats().node_capacity, 0, "{:?}", scheduler.stats());
        wait_until_back(start, || true);
    });
}

/// A timer's own threads free its memory. Promise 5.
#[test]
fn a_timers_memory_goes_back_after_threads_came_and_went() {
    alone(|| {
        let timer = Timer::builder().shards(2).built();
        let start = settle(waves);
        waves(&|number| {
            let delay = |i| ms(1 + ((number + 7 * i) % 100) as u64);
            let set = |i| timer.schedule_after(delay(i), || ()).expect("there is memory");
            let keys: Vec<_> = (0..TIMERS).map(set).collect();
            // False if the timer has fired meanwhile.
            keys.into_iter().step_by(2).for_each(|key| _ = timer.cancel(key));
        });
        wait_until_back(start, || timer.stats().pending == 0);
    });
}

/// An empty shard's tables take only the memory that is used, however many shards there are.
#[test]
fn many_empty_shards_take_little_memory() {
    alone(|| {
        let before = resident();
        let timer = Timer::builder().shards(128).wheel_size(8).built();
        let taken = resident().saturating_sub(before);
        assert!(taken < 32 << 20, "{taken} bytes");
        drop(timer);
    });
}

/// Each of a hundred threads has checked whether a sweep is due, and has since cancelled one timer
/// less than makes it check again. Promise 5.
#[test]
fn dead_nodes_of_many_threads_stay_bounded() {
    const THREADS: usize = 100;
    /// Dead nodes that a shard may hold however few timers are pending.
    const DEAD: usize = 4_096;
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
        // The sweep must be done within so many calls, while the clock stands still.
        (0..200).for_each(|_| assert_eq!(advancer.advance(0).count(), 0));
        let stats = scheduler.stats();
        assert!(stats.dead_nodes <= DEAD, "{stats:?}");
    });
}

/// In a burst, the few timers of each thread are in a segment of their own, and the thread cancels
/// them. Then the clock moves until no more memory goes back: the threads, which are idle, keep a
/// bounded number of segments. Promise 5.
#[test]
fn idle_threads_keep_a_bounded_number_of_segments() {
    /// Nodes of a segment, for the payloads here.
    const SEGMENT: usize = 65_536;
    let (scheduler, mut advancer) = shard(&Config::default());
    let turns = Mutex::new(());
    let burst = |i: usize| {
        let _turn = turns.lock().expect("the thread does not panic");
        let own = scheduler.schedule(1 << 40, i).expect("the shard is open");
        assert_eq!(scheduler.cancel(own), Some(i));
        (0..SEGMENT).for_each(|_| assert!(scheduler.schedule(10, i).is_ok()));
    };
    crowd(0..24, &burst, || {
        advancer.advance(10).for_each(drop);
        (11..20_000).for_each(|tick| assert_eq!(advancer.advance(tick).count(), 0));
        let left = scheduler.stats().node_capacity / SEGMENT;
        assert!(left <= 4, "{left} segments");
    });
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
    let timer = Timer::builder().shards(1).built();
    let most = AtomicUsize::new(0);
    crowd(
        0..16,
        &|_| {
            for _ in 0..150 {
                let set = |_| timer.schedule_after(HOUR, || ()).expect("it is open");
                let keys: Vec<_> = (0..1_000).map(set).collect();
                most.fetch_max(timer.stats().node_capacity, Ordering::Relaxed);
                keys.into_iter().for_each(|key| assert!(timer.cancel(key)));
            }
        },
        || (),
    );
    // 16,000 timers are pending at most, and as many nodes dead; 2.4 million timers were cancelled.
    let most = most.into_inner();
    assert!(most <= 8 * 32_768, "there was memory for {most} nodes");
}

/// Uses a timer in every way, briefly: some timers fire, and some are pending when it is dropped.
fn use_it(timer: &Timer) {
    timer.schedule_after(Duration::ZERO, || ()).expect("the timer is open");
    timer.schedule_after(HOUR, || ()).expect("the timer is open");
    let key = timer.schedule_after(24 * HOUR, || ()).expect("the timer is open");
    assert!(timer.cancel(key));
    timer.schedule_every(HOUR, || ()).expect("the timer is open");
    assert!(poll(&mut timer.sleep(HOUR), Waker::noop()).is_pending());
}

/// Timers are made, used and dropped, a thousand times: one on threads, one on a clock that all of
/// them use, and one that another thread uses, which ends before the timer or after it. No thread, no
/// mapping and no byte is left.
#[test]
fn timers_and_the_threads_that_used_them_leave_nothing() {
    /// Rounds before the first measurement; by then everything exists that is kept for good.
    const WARM_UP: usize = 100;
    /// Mappings that the system's allocator may create or split by itself.
    const OWN_MAPPINGS: usize = 8;
    let counts = || (number_of_threads(), number_of_mappings(), in_use());
    alone(move || {
        let clock = ManualClock::new();
        let one = |round: usize| {
            use_it(&Timer::builder().shards(1).built());
            use_it(&Timer::builder().shards(1).clock(clock.clone()).built());
            clock.advance(ms(2));
            let timer = Timer::builder().shards(2).built();
            use_it(&timer);
            let kept = round.is_multiple_of(2).then(|| timer.clone());
            thread::spawn(move || use_it(&timer)).join().expect("the thread does not panic");
            drop(kept);
        };
        (0..WARM_UP).for_each(one);
        let (threads, mappings, held) = counts();
        (0..400).for_each(one);
        let after = counts();
        assert_eq!(after.0, threads, "threads");
        assert!(after.1 <= mappings + OWN_MAPPINGS, "mappings: {mappings}, then {}", after.1);
        assert!(after.2 <= held, "bytes: {held}, then {}", after.2);
    });
}
