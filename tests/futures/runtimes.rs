//! Futures on tokio with one thread and with several, on smol's executor, and on a bare `block_on`:
//! in real time, and never early.

use std::future::{self, Future};
use std::time::{Duration, Instant};

use futures::stream::{FuturesUnordered, StreamExt};
use shardwheel::{TimeoutError, Timer};

use crate::support::{HOUR, PATIENCE, is_balanced, ms, threads};

/// Uses all futures, on the current executor.
async fn all_of_it(timer: Timer) {
    sleeps(&timer).await;
    timeouts(&timer).await;
    ticks(&timer).await;
    many(&timer, 1_000).await;
    is_balanced(&timer);
}

async fn sleeps(timer: &Timer) {
    for delay in [0, 1, 5, 30].map(ms) {
        let begin = Instant::now();
        timer.sleep(delay).await.expect("the timer is open");
        assert!(begin.elapsed() >= delay && begin.elapsed() < PATIENCE);
        let deadline = Instant::now() + delay;
        timer.sleep_until(deadline).await.expect("the timer is open");
        assert!(Instant::now() >= deadline);
    }
}

async fn timeouts(timer: &Timer) {
    let begin = Instant::now();
    let over = timer.timeout(ms(10), future::pending::<()>()).await;
    assert_eq!(over, Err(TimeoutError::Elapsed));
    assert!(begin.elapsed() >= ms(10));
    assert_eq!(timer.timeout(HOUR, timer.sleep(ms(5))).await, Ok(Ok(())));
    let inner = timer.timeout(HOUR, timer.timeout(ms(5), timer.sleep(HOUR))).await;
    assert_eq!(inner, Ok(Err(TimeoutError::Elapsed)));
}

async fn ticks(timer: &Timer) {
    let begin = Instant::now();
    let mut interval = timer.interval(ms(5));
    for count in 0..5 {
        let due = interval.tick().await.expect("the timer is open");
        assert!(begin.elapsed() >= count * ms(5) && due <= Instant::now());
    }
    let stream = timer.interval(ms(2)).take(5).collect::<Vec<_>>().await;
    assert!(stream.len() == 5 && stream.into_iter().all(|tick| tick.is_ok()));
}

/// Many sleeps in one task, each with its own waker.
async fn many(timer: &Timer, number: u64) {
    let begin = Instant::now();
    let sleeps: FuturesUnordered<_> = (0..number).map(|i| timed(timer, begin, ms(i % 50))).collect();
    let late = sleeps.collect::<Vec<_>>().await;
    assert!(late.len() as u64 == number && late.into_iter().all(|late| late < PATIENCE));
}

/// Sleeps, checks that the sleep was not too short, and returns how much too long it was.
async fn timed(timer: &Timer, begin: Instant, delay: Duration) -> Duration {
    timer.sleep(delay).await.expect("the timer is open");
    begin.elapsed().checked_sub(delay).expect("it is not early")
}

fn current_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().expect("settings of a runtime")
}

fn multi_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("settings of a runtime")
}

/// All futures on tokio with one thread, in a task of tokio's that moves between threads, in a task of
/// smol's executor, and on a bare `block_on`. Promises 1 and 2.
#[test]
fn futures_work_on_each_executor() {
    current_thread().block_on(all_of_it(threads(2)));
    multi_thread().block_on(async { tokio::spawn(all_of_it(threads(2))).await.expect("it does not panic") });
    let executor = async_executor::Executor::new();
    let task = executor.spawn(all_of_it(threads(2)));
    futures_lite::future::block_on(executor.run(task));
    futures::executor::block_on(all_of_it(threads(2)));
}

/// Ten thousand sleeps at once, each in a task of its own that moves between threads. Promises 1
/// and 2.
#[test]
fn ten_thousand_tasks_sleep_at_once() {
    let timer = threads(2);
    multi_thread().block_on(async {
        let begin = Instant::now();
        let task = |i: u64| {
            let timer = timer.clone();
            tokio::spawn(async move { timed(&timer, begin, ms(20 + i % 100)).await })
        };
        let tasks: Vec<_> = (0..10_000).map(task).collect();
        for task in tasks {
            assert!(task.await.expect("the thread does not panic") < PATIENCE);
        }
    });
    assert!(timer.stats().scheduled <= 30_000, "a sleep whose waker stays the same is scheduled once");
    is_balanced(&timer);
}

/// The futures cross threads, and need not be pinned.
#[test]
fn futures_are_send_sync_and_unpin() {
    fn crosses<F: Send + Sync + Unpin>(_: &F) {}
    fn is_future<F: Future>(_: &F) {}
    let timer = threads(1);
    let (sleep, interval) = (timer.sleep(HOUR), timer.interval(HOUR));
    let timeout = timer.timeout(HOUR, future::pending::<()>());
    crosses(&sleep);
    crosses(&interval);
    crosses(&timeout);
    is_future(&sleep);
    is_future(&timeout);
    assert_eq!(timer.stats().scheduled, 0, "what is not polled is not known to the timer");
}

/// Handles and futures may be used in `catch_unwind` without a wrapper.
#[test]
fn handles_are_unwind_safe() {
    fn safe<H: std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    safe::<Timer>();
    safe::<shardwheel::WeakTimer>();
    safe::<shardwheel::CancelGuard>();
    safe::<shardwheel::TimerKey>();
    safe::<shardwheel::ManualClock>();
    safe::<shardwheel::DelayQueue<u8>>();
    safe::<shardwheel::Driver>();
    safe::<shardwheel::Scheduler<u8>>();
    safe::<shardwheel::Advancer<u8>>();
    safe::<shardwheel::Sleep>();
    safe::<shardwheel::Interval>();
    safe::<shardwheel::global::Sleep>();
    safe::<shardwheel::global::Interval>();
}
