//! Threads in waves and all at once, each with a timer that stays and one that it cancels: each payload has one end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Config, Scheduler, Tick, Timer, shard};

use crate::{AT_ONCE, THREADS, WAVE};

const HOUR: Duration = Duration::from_secs(3600);

/// How long a test waits for what is to happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// A small stack: a thousand threads are alive at once.
const STACK: usize = 128 << 10;

/// Runs `work` in `count` threads with the numbers from `first` on, all of which are alive at once.
pub(crate) fn wave(first: usize, count: usize, work: impl Fn(usize) + Sync) {
    let (together, work) = (&Barrier::new(count), &work);
    thread::scope(|scope| {
        for number in first..first + count {
            let thread = move || {
                work(number);
                together.wait();
            };
            let builder = thread::Builder::new().stack_size(STACK);
            builder.spawn_scoped(scope, thread).expect("the system has threads");
        }
    });
}

/// Runs `work` in all threads, a wave at a time.
pub(crate) fn waves(threads: usize, work: impl Fn(usize) + Sync) {
    (0..threads).step_by(WAVE).for_each(|first| wave(first, WAVE.min(threads - first), &work));
}

/// How often each payload has been dropped, and by which end it has gone.
#[derive(Default)]
struct Account {
    fired: AtomicUsize,
    cancelled: AtomicUsize,
    dropped: AtomicUsize,
}

struct Payload(Arc<Vec<Account>>, usize);

impl Payload {
    fn fire(self) {
        self.0[self.1].fired.fetch_add(1, Ordering::Relaxed);
    }

    fn cancel(self) {
        self.0[self.1].cancelled.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.0[self.1].dropped.fetch_add(1, Ordering::Relaxed);
    }
}

fn accounts(threads: usize) -> Arc<Vec<Account>> {
    Arc::new((0..2 * threads).map(|_| Account::default()).collect())
}

/// Each thread's first has fired, its second has been cancelled, and each has been dropped once.
fn check(accounts: &[Account]) {
    for (number, Account { fired, cancelled, dropped }) in accounts.iter().enumerate() {
        let ends = [fired, cancelled, dropped].map(|count| count.load(Ordering::Relaxed));
        let expected = if number % 2 == 0 { [1, 0, 1] } else { [0, 1, 1] };
        assert_eq!(ends, expected, "payload {number}: fired, cancelled, dropped");
    }
}

/// What is cancelled is due so long after that the clock, which moves meanwhile, does not come to it.
const NEVER_HERE: Tick = 1 << 40;

/// Schedules two timers, cancels one of them.
fn use_shard(scheduler: &Scheduler<Payload>, accounts: &Arc<Vec<Account>>, number: usize) {
    let deadline = 1 + (number as Tick * 7_919) % 100_000;
    let payload = |number| Payload(Arc::clone(accounts), number);
    assert!(scheduler.schedule(deadline, payload(2 * number)).is_ok());
    let key =
        scheduler.schedule(deadline + NEVER_HERE, payload(2 * number + 1)).map_err(|refused| refused.kind());
    scheduler.cancel(key.expect("there is memory")).expect("it is pending").cancel();
}

/// Lets threads loose on a shard whose clock moves meanwhile.
fn on_a_shard(threads: usize, let_loose: impl FnOnce(&(dyn Fn(usize) + Sync)) + Send) {
    let accounts = accounts(threads);
    let (scheduler, mut advancer) = shard(&Config::default());
    let done = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let_loose(&|number| use_shard(&scheduler, &accounts, number));
            done.store(1, Ordering::Release);
        });
        let mut now = 0;
        while done.load(Ordering::Acquire) == 0 {
            now += 10;
            advancer.advance(now).for_each(|fired| fired.payload.fire());
            thread::yield_now();
        }
    });
    let end = scheduler.now().max(200_000);
    advancer.advance(end).for_each(|fired| fired.payload.fire());
    assert!(scheduler.is_empty());
    check(&accounts);
}

#[test]
fn a_shard_loses_nothing_of_threads_that_come_and_go() {
    on_a_shard(THREADS, |work| waves(THREADS, work));
}

#[test]
fn a_shard_loses_nothing_of_a_thousand_threads_at_once() {
    on_a_shard(AT_ONCE, |work| wave(0, AT_ONCE, work));
}

/// Sets two timers, cancels one of them.
fn use_timer(timer: &Timer, accounts: &Arc<Vec<Account>>, number: usize) {
    let payload = |number| Payload(Arc::clone(accounts), number);
    let (first, second) = (payload(2 * number), payload(2 * number + 1));
    let delay = Duration::from_millis(1 + number as u64 % 50);
    assert!(timer.schedule_after(delay, move || first.fire()).is_ok());
    // The callback is dropped by the cancel, and the payload with it.
    accounts[2 * number + 1].cancelled.fetch_add(1, Ordering::Relaxed);
    let key = timer.schedule_after(HOUR, move || second.fire()).map_err(|refused| refused.kind());
    assert!(timer.cancel(key.expect("there is memory")));
}

fn on_a_timer(threads: usize, let_loose: impl FnOnce(&(dyn Fn(usize) + Sync))) {
    let accounts = accounts(threads);
    let timer = Timer::builder().shards(2).build().expect("settings within their limits");
    let_loose(&|number| use_timer(&timer, &accounts, number));
    let begin = Instant::now();
    while timer.stats().fired < threads as u64 {
        assert!(begin.elapsed() < PATIENCE, "{:?}", timer.stats());
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(timer.shutdown().count(), 0);
    check(&accounts);
}

#[test]
fn a_timer_loses_nothing_of_threads_that_come_and_go() {
    on_a_timer(THREADS, |work| waves(THREADS, work));
}

#[test]
fn a_timer_loses_nothing_of_a_thousand_threads_at_once() {
    on_a_timer(AT_ONCE, |work| wave(0, AT_ONCE, work));
}
