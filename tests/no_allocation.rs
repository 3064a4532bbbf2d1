//! What allocates nothing. The allocator counts for each thread separately, so that other threads,
//! such as the test harness, do not disturb the count.
//!
//! Callbacks and wakers read the count of a shard's thread on that thread.

#[path = "support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each target uses a part of it")]
mod support;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, RawWaker, RawWakerVTable, Waker};
use std::time::Duration;

use shardwheel::{ManualClock, Timer, TimerKey};
use support::allocator::{Counting, allocations};
use support::{HOUR, comes_within, ms};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often each operation is done.
const ROUNDS: usize = 1_000;

/// How often the calling thread allocates in `work`. A first run warms up.
fn in_work(mut work: impl FnMut()) -> u64 {
    work();
    let before = allocations();
    work();
    allocations() - before
}

/// A timer on a thread, and one on a clock that stands still.
fn timers() -> [Timer; 2] {
    let build =
        |builder: shardwheel::TimerBuilder| builder.shards(1).build().expect("settings within their limits");
    [build(Timer::builder()), build(Timer::builder().clock(ManualClock::new()))]
}

/// Sets a timer whose closure holds `WORDS` words, none of which is a pointer.
fn set_plain<const WORDS: usize>(timer: &Timer) -> TimerKey {
    let words = [1_usize; WORDS];
    let callback = move || assert_eq!(std::hint::black_box(words), [1; WORDS]);
    assert_eq!(size_of_val(&callback), size_of::<[usize; WORDS]>());
    timer.schedule_after(HOUR, callback).expect("the timer is open")
}

/// Sets a timer whose closure holds three words, with a pointer among them.
fn set_three(timer: &Timer, held: &Arc<usize>) -> TimerKey {
    let (held, others) = (Arc::clone(held), [1_usize; 2]);
    let callback = move || assert_eq!((*held, std::hint::black_box(others)), (1, [1; 2]));
    assert_eq!(size_of_val(&callback), size_of::<[usize; 3]>());
    timer.schedule_after(HOUR, callback).expect("the timer is open")
}

/// Sets many timers, moves each to later or to earlier, and cancels it.
fn set_move_and_cancel(timer: &Timer, keys: &mut Vec<TimerKey>, set: impl Fn(usize) -> TimerKey) {
    keys.extend((0..ROUNDS).map(set));
    for (i, key) in keys.iter_mut().enumerate() {
        let delay = HOUR + ms(i as u64) - ms(500) * (i % 7) as u32;
        *key = timer.reschedule_after(*key, delay).expect("the timer is pending");
    }
    assert!(keys.drain(..).all(|key| timer.cancel(key)));
}

/// The allocator counts allocations.
#[test]
fn the_allocator_counts() {
    assert_eq!(in_work(|| drop(std::hint::black_box(Box::new(1)))), 1);
    assert_eq!(in_work(|| drop(std::hint::black_box(Vec::<u8>::with_capacity(9)))), 1);
}

/// Scheduling, rescheduling and cancelling a closure of up to three words allocates nothing.
#[test]
fn a_closure_of_three_words_needs_no_allocation() {
    let held = Arc::new(1);
    for timer in timers() {
        let mut keys = Vec::with_capacity(ROUNDS);
        let set = |i| match i % 3 {
            0 => set_three(&timer, &held),
            1 => set_plain::<2>(&timer),
            _ => set_plain::<0>(&timer),
        };
        assert_eq!(in_work(|| set_move_and_cancel(&timer, &mut keys, set)), 0);
    }
}

/// The same where none of the three words is a pointer.
#[test]
fn a_closure_of_three_words_without_a_pointer_needs_no_allocation() {
    for timer in timers() {
        let mut keys = Vec::with_capacity(ROUNDS);
        assert_eq!(in_work(|| set_move_and_cancel(&timer, &mut keys, |_| set_plain::<3>(&timer))), 0);
    }
}

/// A closure of four words is boxed: one allocation.
#[test]
fn a_closure_of_four_words_needs_one_allocation() {
    for timer in timers() {
        assert!(timer.cancel(set_plain::<4>(&timer)));
        let before = allocations();
        for _ in 0..ROUNDS {
            assert!(timer.cancel(set_plain::<4>(&timer)));
        }
        assert_eq!(allocations() - before, ROUNDS as u64);
    }
}

/// A recurring timer is boxed when it is made, once.
#[test]
fn making_a_recurring_timer_needs_one_allocation() {
    for timer in timers() {
        let make = || {
            for _ in 0..ROUNDS {
                let key = timer.schedule_every(HOUR, || ()).expect("the timer is open");
                assert!(timer.cancel(key));
            }
        };
        assert_eq!(in_work(make), ROUNDS as u64);
    }
}

/// A sleep is made, polled with one waker and another, reset and dropped.
#[test]
fn a_sleep_needs_no_allocation() {
    for timer in timers() {
        let wakers = [Waker::from(Arc::new(Idle)), Waker::from(Arc::new(Idle))];
        let all = || {
            for i in 0..ROUNDS {
                let mut sleep = timer.sleep(HOUR);
                for waker in wakers.iter().chain(&wakers[1..]) {
                    assert!(Pin::new(&mut sleep).poll(&mut Context::from_waker(waker)).is_pending());
                    let delay = if i % 2 == 0 { 2 * HOUR } else { HOUR / 2 };
                    sleep.reset(timer.now() + delay);
                }
            }
        };
        assert_eq!(in_work(all), 0);
    }
}

/// A waker that does nothing.
struct Idle;

impl std::task::Wake for Idle {
    fn wake(self: Arc<Self>) {}
}

/// From one occurrence of a recurring timer to the next the shard's thread allocates nothing.
#[test]
fn occurrences_need_no_allocation() {
    let timer = &timers()[0];
    let (sender, receiver) = mpsc::sync_channel(0);
    let (mut runs, mut before) = (0_u64, 0);
    let callback = move || {
        runs += 1;
        match runs {
            // The first occurrences warm up.
            10 => before = allocations(),
            60 => sender.send(allocations() - before).expect("the test waits"),
            _ => (),
        }
    };
    let key = timer.schedule_every(ms(1), callback).expect("the timer is open");
    assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok(0));
    assert!(timer.cancel(key));
}

/// The smallest and the largest count of the shard's thread while it ran what is measured, and how
/// often it was read.
static FIRST: AtomicU64 = AtomicU64::new(u64::MAX);
static LAST: AtomicU64 = AtomicU64::new(0);
static SEEN: AtomicU64 = AtomicU64::new(0);

fn note() {
    let now = allocations();
    FIRST.fetch_min(now, Ordering::SeqCst);
    LAST.fetch_max(now, Ordering::SeqCst);
    SEEN.fetch_add(1, Ordering::SeqCst);
}

/// Calls `set` to set `ROUNDS` timers that note the count of the shard's thread. Returns by how
/// much the count grew while they fired.
fn while_they_fire(set: impl Fn()) -> u64 {
    // Twice: the first time warms up.
    for _ in 0..2 {
        FIRST.store(u64::MAX, Ordering::SeqCst);
        LAST.store(0, Ordering::SeqCst);
        SEEN.store(0, Ordering::SeqCst);
        set();
        until_all_have_noted();
    }
    LAST.load(Ordering::SeqCst) - FIRST.load(Ordering::SeqCst)
}

fn until_all_have_noted() {
    let all_have_noted = || SEEN.load(Ordering::SeqCst) >= ROUNDS as u64;
    assert!(comes_within(Duration::from_secs(60), all_have_noted), "not all timers have fired");
}

/// A waker that notes the count, and needs no memory itself.
fn noting() -> Waker {
    const TABLE: RawWakerVTable = RawWakerVTable::new(|_| RAW, |_| note(), |_| note(), |_| ());
    const RAW: RawWaker = RawWaker::new(std::ptr::null(), &TABLE);
    // SAFETY: the functions ignore the pointer, and any thread may call them.
    unsafe { Waker::from_raw(RAW) }
}

/// Callbacks and wakers that fire on the shard's thread allocate nothing each; once or twice a tick
/// the thread allocates for all nodes that it frees together. (One test, as there is one set of
/// counters.)
#[test]
fn firing_needs_a_few_allocations_a_tick() {
    let timer = &timers()[0];
    let callbacks = |ticks| {
        move || {
            for i in 0..ROUNDS as u64 {
                timer.schedule_after(ms(30 + i % ticks), note).expect("the timer is open");
            }
        }
    };
    let few = |ticks| PER_TICK * (ticks + 1);
    let counted = [1, 10].map(|ticks| (while_they_fire(callbacks(ticks)), few(ticks)));
    assert!(counted.iter().all(|(count, few)| count <= few), "{counted:?}");
    let waker = noting();
    let sleeps = || {
        let mut sleeps: Vec<_> = (0..ROUNDS as u64).map(|i| timer.sleep(ms(50 + i % 10))).collect();
        for sleep in &mut sleeps {
            assert!(Pin::new(sleep).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        // The sleeps are dropped after they have fired.
        until_all_have_noted();
    };
    let counted = while_they_fire(sleeps);
    assert!(counted <= few(10), "{counted}");
}

/// Allocations of a shard's thread per tick, for all timers of the tick: a growing list of nodes,
/// and a deferred free.
const PER_TICK: u64 = 20;
