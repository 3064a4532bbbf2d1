//! The amount of work, how threads are started and joined, and a shard for payloads of a ledger.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fastrand::Rng;
use shardwheel::{Advancer, Config, Key, Scheduler, Tick, shard};

use crate::support::ledger::{End, Payload};

/// Threads that schedule at once, beside the one that advances.
pub(crate) const PRODUCERS: usize = 3;

/// The number of operations: `base` times the factor in the environment. Miri, a thousand times
/// slower, does few.
pub(crate) fn times(base: usize) -> usize {
    let base = if cfg!(miri) { base.div_ceil(250) } else { base };
    let factor = |text: String| text.parse::<usize>().expect("SHARDWHEEL_STRESS is a whole number");
    base * std::env::var("SHARDWHEEL_STRESS").map_or(1, factor)
}

/// How far the clock moves: mostly little, sometimes nearly 2^`bits` ticks.
pub(crate) fn jump(rng: &mut Rng, bits: u32) -> Tick {
    let most = 1 << rng.u32(..bits);
    rng.u64(..most)
}

/// Counts a working thread while it lives, so that a thread that panics does not leave others
/// waiting.
pub(crate) struct AtWork<'a>(pub(crate) &'a AtomicUsize);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Runs `work` in `threads` threads, each with its number, and `meanwhile` in this one, again and
/// again until they are done.
pub(crate) fn at_work(threads: usize, work: impl Fn(usize) + Sync, mut meanwhile: impl FnMut()) {
    let (at_work, work) = (&AtomicUsize::new(threads), &work);
    thread::scope(|scope| {
        for number in 0..threads {
            scope.spawn(move || {
                let _at_work = AtWork(at_work);
                work(number);
            });
        }
        while at_work.load(Ordering::Acquire) > 0 {
            meanwhile();
        }
    });
}

/// Starts both at the same time, as nearly as two threads can.
pub(crate) fn together<R>(left: impl FnOnce() + Send, right: impl FnOnce() -> R) -> R {
    let ready = AtomicUsize::new(0);
    let start = || {
        ready.fetch_add(1, Ordering::Relaxed);
        while ready.load(Ordering::Relaxed) < 2 {
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            start();
            left();
        });
        start();
        right()
    })
}

/// Takes the part of a test's data that belongs to one thread.
pub(crate) fn part_of<P, Q>(parts: &Mutex<P>, which: impl FnOnce(&mut P) -> Option<Q>) -> Q {
    which(&mut parts.lock().expect("no thread panics with the lock")).expect("only one thread takes it")
}

/// A timer as the threads pass it among themselves, its key and its payload's number: each holder
/// may cancel or reschedule it.
pub(super) type Timer = (Key, usize);

/// A shard for payloads of a ledger.
pub(super) fn open(wheel_size: usize) -> (Scheduler<Payload>, Advancer<Payload>) {
    shard(&Config::builder().wheel_size(wheel_size).build().expect("a wheel size that is a power of two"))
}

/// Advances to `now` and takes at most `budget` of the timers that are due.
pub(super) fn take(advancer: &mut Advancer<Payload>, now: Tick, budget: usize) {
    let now = advancer.scheduler().now().max(now);
    for fired in advancer.advance(now).take(budget) {
        assert!(fired.deadline <= now, "{} fired at {now}", fired.deadline);
        fired.payload.fire_at(now);
    }
}

pub(super) fn hand_back(advancer: Advancer<Payload>) {
    advancer.into_pending().for_each(|(_, payload)| payload.end(End::HandedBack));
}
