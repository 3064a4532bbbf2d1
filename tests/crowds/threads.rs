//! Threads in waves and all at once. Each of them sets one timer that fires and one that it cancels: each
//! payload has one outcome.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use shardwheel::{Config, Fired, Scheduler, Tick, Timer, shard};

use crate::support::ledger::{End, Ledger, Payload};
use crate::support::{self, HOUR, comes_within, ms};

/// Threads in all, and of a wave.
pub(crate) const THREADS: usize = 4_000;
const WAVE: usize = 100;

/// Threads that are alive at once.
pub(crate) const AT_ONCE: usize = 1_000;

/// How long a test waits for an event that must come.
const PATIENCE: Duration = Duration::from_secs(120);

/// A small stack, in bytes, as a thousand threads are alive at once.
const STACK: usize = 512 << 10;

/// What each thread of a crowd does, by its number.
pub(crate) type Work<'a> = &'a (dyn Fn(usize) + Sync);

/// Runs `work` in these threads, all of which are alive at once, and stay alive until `meanwhile` is
/// done.
pub(crate) fn crowd(threads: Range<usize>, work: Work<'_>, meanwhile: impl FnOnce()) {
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

/// Threads come and go, a wave at a time.
pub(crate) fn waves(work: Work<'_>) {
    (0..THREADS).step_by(WAVE).for_each(|first| crowd(first..first + WAVE, work, || ()));
}

/// One wave.
pub(crate) fn wave(work: Work<'_>) {
    crowd(0..WAVE, work, || ());
}

fn a_thousand(work: Work<'_>) {
    crowd(0..AT_ONCE, work, || ());
}

/// Many threads at once.
pub(crate) fn many(work: Work<'_>) {
    crowd(0..2 * AT_ONCE, work, || ());
}

/// Each thread's first timer has fired, and its second has been cancelled: [`use_shard`] and
/// [`use_timer`] note the cancels by the payloads' numbers.
fn check(ledger: &Ledger, threads: usize) {
    ledger.check_all_ended();
    assert_eq!(ledger.made(), 2 * threads);
    assert_eq!((ledger.count(End::Fired), ledger.count(End::Cancelled)), (threads, threads));
}

/// The cancelled timers are due so late that the moving clock does not reach them.
const NEVER_HERE: Tick = 1 << 40;

/// Schedules two timers, and cancels the second.
fn use_shard(scheduler: &Scheduler<Payload>, ledger: &Ledger, number: usize) {
    let deadline = 1 + (number as Tick * 7_919) % 100_000;
    assert!(scheduler.schedule(deadline, ledger.payload()).is_ok());
    let second = ledger.payload();
    let id = second.id();
    let key = scheduler.schedule(deadline + NEVER_HERE, second).map_err(|refused| refused.kind());
    let cancelled = scheduler.cancel(key.expect("there is memory")).expect("the timer is pending");
    assert_eq!(cancelled.id(), id, "the cancel found another timer");
    cancelled.end(End::Cancelled);
}

/// Runs a crowd on a shard whose clock moves meanwhile.
fn on_a_shard(threads: usize, let_loose: fn(Work<'_>)) {
    let ledger = Ledger::default();
    let (scheduler, mut advancer) = shard(&Config::default());
    let fire = |fired: Fired<Payload>| fired.payload.end(End::Fired);
    thread::scope(|scope| {
        let crowd = scope.spawn(|| let_loose(&|number| use_shard(&scheduler, &ledger, number)));
        let mut now = 0;
        while !crowd.is_finished() {
            now += 10;
            advancer.advance(now).for_each(fire);
            thread::yield_now();
        }
    });
    let end = scheduler.now().max(200_000);
    advancer.advance(end).for_each(fire);
    assert!(scheduler.is_empty());
    check(&ledger, threads);
}

#[test]
fn a_shard_loses_no_timer_of_threads_that_come_and_go() {
    on_a_shard(THREADS, waves);
}

#[test]
fn a_shard_loses_no_timer_of_a_thousand_threads() {
    on_a_shard(AT_ONCE, a_thousand);
}

/// Schedules two timers, and cancels the second.
fn use_timer(timer: &Timer, ledger: &Ledger, number: usize) {
    let (first, second) = (ledger.payload(), ledger.payload());
    let delay = ms(1 + number as u64 % 50);
    assert!(timer.schedule_after(delay, move || first.end(End::Fired)).is_ok());
    // The cancel drops the callback, and the payload with it.
    ledger.note(second.id(), End::Cancelled);
    let key = timer.schedule_after(HOUR, move || second.end(End::Fired)).map_err(|refused| refused.kind());
    assert!(timer.cancel(key.expect("there is memory")));
}

fn on_a_timer(threads: usize, let_loose: fn(Work<'_>)) {
    let ledger = Ledger::default();
    let timer = support::threads(2);
    let_loose(&|number| use_timer(&timer, &ledger, number));
    let all_have_fired = comes_within(PATIENCE, || timer.stats().fired >= threads as u64);
    assert!(all_have_fired, "{:?}", timer.stats());
    assert_eq!(timer.shutdown().count(), 0);
    check(&ledger, threads);
}

#[test]
fn a_timer_loses_no_callback_of_threads_that_come_and_go() {
    on_a_timer(THREADS, waves);
}

#[test]
fn a_timer_loses_no_callback_of_a_thousand_threads() {
    on_a_timer(AT_ONCE, a_thousand);
}
