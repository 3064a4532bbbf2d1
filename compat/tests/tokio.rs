//! [`tokio_timer`] on real runtimes of tokio's: of one thread, of several, and of one that works for
//! several.

mod common;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use common::{eventually, within};
use shardwheel::{Job, SleepError, Timer};
use shardwheel_compat::{tokio_timer, tokio_timer_with};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{JoinSet, block_in_place, spawn_blocking};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Runs a test on each kind of runtime.
fn on_each<F: Future<Output = ()>>(test: impl Fn(Timer) -> F) {
    for mut builder in kinds() {
        let runtime = builder.enable_all().build().unwrap();
        runtime.block_on(async { within(test(tokio_timer().unwrap())).await });
        wait_for_tasks(&runtime);
    }
}

/// Waits until all tasks have ended. A runtime of one thread runs them meanwhile.
fn wait_for_tasks(runtime: &Runtime) {
    eventually("the timer's task has ended", || {
        runtime.block_on(tokio::task::yield_now());
        runtime.metrics().num_alive_tasks() == 0
    });
}

fn kinds() -> impl Iterator<Item = Builder> {
    let threads = |workers| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(workers);
        builder
    };
    [Builder::new_current_thread(), threads(1), threads(2), threads(4)].into_iter()
}

/// Waits for a future on a thread that belongs to no runtime with timers.
fn wait_for<F: Future>(future: F) -> F::Output {
    Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Sleeps, and returns whether that was long enough.
async fn sleep(timer: &Timer, duration: Duration) -> Result<bool, SleepError> {
    let begin = Instant::now();
    timer.sleep(duration).await.map(|()| begin.elapsed() >= duration)
}

#[test]
fn sleeps_of_many_tasks_end_and_none_is_early() {
    on_each(|timer| async move {
        let mut tasks = JoinSet::new();
        for task in 0..200_u32 {
            let timer = timer.clone();
            tasks.spawn(async move {
                for sleeps in 0..10 {
                    assert!(sleep(&timer, MS * (1 + (task * 7 + sleeps) % 30)).await.unwrap());
                }
            });
        }
        tasks.join_all().await;
        assert_eq!(timer.stats().pending, 0);
    });
}

/// tokio fires its timers while a worker is parked, and wakes another worker once, after all of them.
/// What is due already when the task sets the entry fires in the task.
#[test]
fn timers_fire_where_tokio_fires_its_own() {
    thread_local!(static IS_PARKED: Cell<bool> = const { Cell::new(false) });
    for mut builder in kinds() {
        builder.on_thread_park(|| IS_PARKED.set(true)).on_thread_unpark(|| IS_PARKED.set(false));
        let runtime = builder.enable_time().build().unwrap();
        let mut fired_in_park = 0;
        runtime.block_on(within(async {
            let timer = tokio_timer().unwrap();
            for _ in 0..50 {
                let (sender, receiver) = tokio::sync::oneshot::channel();
                timer.schedule_after(2 * MS, move || sender.send(IS_PARKED.get()).unwrap()).unwrap();
                fired_in_park += usize::from(receiver.await.unwrap());
            }
        }));
        assert!(fired_in_park > 0);
    }
}

#[test]
fn callbacks_may_spawn_and_panic_and_an_executor_makes_them_tasks() {
    on_each(|timer| async move {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let spawning = sender.clone();
        let (later, again) = (timer.clone(), timer.clone());
        let callback = move || {
            tokio::spawn(async move { spawning.send(later.sleep(MS).await.is_ok()) });
        };
        timer.schedule_after(MS, callback).unwrap();
        timer.schedule_after(MS, || panic!("this one is expected")).unwrap();
        let last = move || drop(again.schedule_after(MS, move || sender.send(true).unwrap()));
        timer.schedule_after(MS, last).unwrap();
        assert_eq!((receiver.recv().await, receiver.recv().await), (Some(true), Some(true)));
        eventually("the panic is counted", || timer.stats().panics == 1);
    });

    common::run(async {
        let runtime = Handle::current();
        let spawn = move |job: Job| drop(runtime.spawn(async { job.run() }));
        let timer = tokio_timer_with(Timer::builder().tick(MS).executor(spawn)).unwrap();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let callback = || sender.send(block_in_place(|| true)).unwrap();
        timer.schedule_after(MS, callback).unwrap();
        assert!(receiver.await.unwrap());
    });
}

/// The drop of a timer ends its task, also if a deadline is far away, or none is pending.
#[test]
fn the_task_ends_with_the_last_handle() {
    for mut builder in kinds() {
        let runtime = builder.enable_time().build().unwrap();
        let tasks = || runtime.metrics().num_alive_tasks();
        for is_pending in [false, true] {
            let timer = runtime.block_on(async { tokio_timer().unwrap() });
            if is_pending {
                timer.schedule_after(HOUR, || unreachable!()).unwrap();
            }
            assert_eq!(tasks(), 1);
            let last = timer.clone();
            drop(timer);
            runtime.block_on(async { sleep(&last, MS).await.unwrap() });
            assert_eq!(tasks(), 1, "one handle is left");
            drop(last);
            wait_for_tasks(&runtime);
        }
    }
}

#[test]
fn a_shutdown_ends_the_sleeps_and_the_task() {
    on_each(|timer| async move {
        let mut tasks = JoinSet::new();
        for _ in 0..20 {
            let timer = timer.clone();
            tasks.spawn(async move { timer.sleep(HOUR).await });
        }
        let pending = timer.schedule_after(HOUR, || ()).unwrap();
        while timer.stats().pending < 21 {
            tokio::task::yield_now().await;
        }
        let left: Vec<_> = timer.shutdown().map(|task| task.key()).collect();
        assert_eq!(left, [pending], "the sleeps are no callbacks");
        for ended in tasks.join_all().await {
            assert!(ended.unwrap_err().is_shut_down());
        }
        assert!(timer.sleep(MS).await.unwrap_err().is_shut_down());
    });
}

/// A runtime ends, by each way that tokio has, while threads outside wait for sleeps.
#[test]
fn the_end_of_the_runtime_ends_the_sleeps_outside() {
    type End = fn(Runtime);
    let ends: [End; 3] = [drop, Runtime::shutdown_background, |runtime| {
        wait_for(async { spawn_blocking(|| drop(runtime)).await.unwrap() })
    }];
    for (end, mut builder) in ends.into_iter().flat_map(|end| kinds().map(move |kind| (end, kind))) {
        let runtime = builder.enable_time().build().unwrap();
        let timer = runtime.block_on(async {
            let timer = tokio_timer().unwrap();
            // Tasks of the runtime sleep, too: they are dropped with it.
            let sleeper = timer.clone();
            tokio::spawn(async move { sleeper.sleep(HOUR).await });
            timer.sleep(MS).await.unwrap();
            timer
        });
        thread::scope(|scope| {
            let sleeps = [MS * 50, HOUR].map(|delay| {
                let sleep = timer.sleep(delay);
                scope.spawn(move || wait_for(sleep))
            });
            end(runtime);
            let [_either, ended] = sleeps.map(|sleep| sleep.join().unwrap());
            assert!(ended.unwrap_err().is_shut_down());
        });
        assert!(wait_for(timer.sleep(MS)).unwrap_err().is_shut_down());
    }
}

/// A task of the runtime's own ends it, while the timer is turned.
#[test]
fn a_runtime_that_ends_within_itself() {
    for workers in [1, 2] {
        let runtime = Builder::new_multi_thread().worker_threads(workers).enable_time().build().unwrap();
        let timer = runtime.block_on(async { tokio_timer().unwrap() });
        let (sleeper, handle) = (timer.clone(), runtime.handle().clone());
        handle.spawn(async move {
            sleeper.sleep(5 * MS).await.unwrap();
            runtime.shutdown_background();
        });
        assert!(wait_for(timer.sleep(HOUR)).unwrap_err().is_shut_down());

        // A callback does it where tokio fires its timers.
        let runtime = Builder::new_multi_thread().worker_threads(workers).enable_time().build().unwrap();
        let timer = runtime.block_on(async { tokio_timer().unwrap() });
        timer.schedule_after(5 * MS, move || runtime.shutdown_background()).unwrap();
        assert!(wait_for(timer.sleep(HOUR)).unwrap_err().is_shut_down());
    }
}

/// Each deadline is earlier than the one before, so each wakes the runtime, which waits for an hour
/// otherwise.
#[test]
fn threads_outside_set_earlier_and_earlier_deadlines() {
    on_each(|timer| async move {
        let late = timer.schedule_after(HOUR, || unreachable!()).unwrap();
        let (sender, receiver) = mpsc::channel();
        let producers = (0..4).map(|_| {
            let (timer, sender) = (timer.clone(), sender.clone());
            thread::spawn(move || {
                for round in 0..25 {
                    for delay in (1..=8).rev() {
                        let (due, sender) = (Instant::now() + MS * delay, sender.clone());
                        let callback = move || sender.send(Instant::now() >= due).unwrap();
                        timer.schedule_after(MS * delay, callback).unwrap();
                    }
                    if round % 5 == 0 {
                        assert!(wait_for(sleep(&timer, 2 * MS)).unwrap());
                    }
                }
            })
        });
        let producers: Vec<_> = producers.collect();
        drop(sender);
        let joined = spawn_blocking(move || {
            producers.into_iter().for_each(|producer| producer.join().unwrap());
            receiver.into_iter().inspect(|&in_time| assert!(in_time, "early")).count()
        });
        assert_eq!(joined.await.unwrap(), 4 * 25 * 8);
        assert!(timer.cancel(late));
    });
}

/// The blocked worker's tasks, and the timer, go on another thread.
#[test]
fn sleeps_end_while_a_worker_blocks_in_place() {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    runtime.block_on(within(async {
        let timer = tokio_timer().unwrap();
        let (sender, receiver) = mpsc::channel();
        let sleeper = timer.clone();
        tokio::spawn(async move {
            sleeper.sleep(5 * MS).await.unwrap();
            sender.send(()).unwrap();
        });
        tokio::spawn(async move { block_in_place(|| receiver.recv()) }).await.unwrap().unwrap();
    }));
}

/// tokio's clock runs ahead while all wait, so its timers fire before the deadlines of the `Timer`.
#[test]
fn a_paused_runtime_makes_no_sleep_early() {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let timer = tokio_timer().unwrap();
        for _ in 0..3 {
            assert!(sleep(&timer, 10 * MS).await.unwrap());
        }
    });
}

#[test]
fn it_needs_a_runtime_with_timers() {
    assert!(catch_unwind(|| tokio_timer().is_ok()).is_err());
    let runtime = Builder::new_current_thread().build().unwrap();
    let without = || runtime.block_on(async { tokio_timer().is_ok() });
    assert!(catch_unwind(AssertUnwindSafe(without)).is_err());
    assert_eq!(runtime.metrics().num_alive_tasks(), 0);
}
