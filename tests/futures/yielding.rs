//! Tasks whose futures are always ready: they return to their executor now and then.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::executor::block_on;
use shardwheel::DelayQueue;

use crate::support::{Bell, in_time, manual, ms};

/// More answers than a task gets without waiting.
const MANY: usize = 1_000;

/// Polls a future that makes [`MANY`] rounds, and checks that it is woken whenever it has to wait,
/// and after few rounds.
fn yields(what: &str, future: impl Future<Output = ()>) {
    let (bell, waker) = Bell::new();
    let mut future = pin!(future);
    let mut waits = 0;
    while future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        waits += 1;
        assert_eq!(bell.rings(), waits, "{what}");
    }
    assert!((MANY / 128 - 1..=MANY / 100).contains(&waits), "{what}: {waits} waits");
}

/// Each future that can be ready again and again.
#[test]
fn a_task_that_never_has_to_wait_yields() {
    let (timer, clock) = manual();
    let timer = &timer;
    yields("sleeps", async {
        for _ in 0..MANY {
            timer.sleep(Duration::ZERO).await.expect("it is open");
        }
    });
    yields("one sleep", async {
        let mut sleep = timer.sleep(Duration::ZERO);
        for _ in 0..MANY {
            (&mut sleep).await.expect("it is open");
        }
    });
    yields("timeouts", async {
        for _ in 0..MANY {
            timer.timeout(Duration::ZERO, std::future::pending::<()>()).await.expect_err("it is over");
        }
    });
    yields("sleeps of the global timer", async {
        for _ in 0..MANY {
            shardwheel::sleep_until(Instant::now()).await;
        }
    });
    let mut interval = timer.interval(ms(1));
    let queue = DelayQueue::new(timer);
    let insert_all = || (0..MANY).for_each(|i| _ = queue.insert(i, ms(1)).expect("it is open"));
    (0..2).for_each(|_| insert_all());
    clock.advance(ms(2 * MANY as u64));
    yields("overdue ticks", async {
        for _ in 0..MANY {
            interval.tick().await.expect("it is open");
        }
    });
    yields("a queue", async {
        for _ in 0..MANY {
            assert!(queue.next().await.is_some());
        }
    });
    yields("a stream", async { assert_eq!((&queue).take(MANY).count().await, MANY) });
    drop(timer.shutdown());
    yields("refused sleeps", async {
        for _ in 0..MANY {
            timer.sleep(ms(1)).await.expect_err("it is shut down");
        }
    });
    yields("a queue's end", async {
        for _ in 0..MANY {
            assert!(queue.next().await.is_none());
        }
    });
    let mut never = timer.interval(Duration::ZERO);
    yields("an interval without a period", async {
        for _ in 0..MANY {
            never.tick().await.expect_err("it has no period");
        }
    });
}

/// A limit that has passed ends nothing that is ready, also where the task gives way.
#[test]
fn what_is_ready_never_times_out() {
    let (timer, clock) = manual();
    let queue = DelayQueue::new(&timer);
    (0..MANY).for_each(|i| _ = queue.insert(i, ms(1)).expect("it is open"));
    clock.advance(ms(1));
    let (timer, queue) = (&timer, &queue);
    yields("values", async {
        for _ in 0..MANY {
            assert!(timer.timeout(Duration::ZERO, queue.next()).await.expect("it is ready").is_some());
        }
    });
    yields("sleeps in time", async {
        for _ in 0..MANY {
            let sleep = shardwheel::timeout(Duration::ZERO, timer.sleep(Duration::ZERO)).await;
            sleep.expect("it is ready").expect("it is open");
        }
    });
}

/// A time limit around a loop that never has to wait ends it, on each kind of executor.
#[test]
fn a_limit_ends_a_loop_that_is_always_ready_in_real_time() {
    async fn limited() {
        let always = async {
            loop {
                shardwheel::sleep(Duration::ZERO).await;
            }
        };
        let limited: Result<(), _> = shardwheel::timeout(ms(20), always).await;
        assert!(limited.is_err());
    }
    in_time(|| {
        block_on(limited());
        futures_lite::future::block_on(limited());
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it starts");
        runtime.block_on(async { tokio::spawn(limited()).await.expect("no panic") });
    });
}

/// A poll that is pending for that reason alone registers nothing, and a sleep does not end by it.
#[test]
fn a_sleep_that_gives_way_is_elapsed() {
    let (timer, _clock) = manual();
    let (bell, waker) = Bell::new();
    let mut context = Context::from_waker(&waker);
    let mut sleep = timer.sleep(Duration::ZERO);
    let gives_way = (0..=MANY).any(|_| {
        sleep = timer.sleep(Duration::ZERO);
        pin!(&mut sleep).poll(&mut context).is_pending()
    });
    assert!(gives_way && sleep.is_elapsed() && timer.stats().pending == 0);
    assert_eq!(bell.rings(), 1);
    assert_eq!(pin!(&mut sleep).poll(&mut context), Poll::Ready(Ok(())));
}

/// Sleeps that had to wait do not count.
#[test]
fn a_sleep_that_has_waited_is_ready() {
    let (timer, clock) = manual();
    let (_bell, waker) = Bell::new();
    let mut context = Context::from_waker(&waker);
    for _ in 0..MANY {
        let mut sleep = pin!(timer.sleep(ms(1)));
        assert!(sleep.as_mut().poll(&mut context).is_pending());
        clock.advance(ms(1));
        assert!(sleep.as_mut().poll(&mut context).is_ready());
    }
}
