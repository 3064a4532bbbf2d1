//! Executors: where callbacks run, and what becomes of a job.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use futures::executor::ThreadPool;
use rayon::ThreadPoolBuilder;
use shardwheel::{CallbackPanic, Executor, Job, ManualClock, ScheduleErrorKind, Timer, TimerKey};

use crate::support::{
    Bomb, Built, Count, Dropped, Log, after, by_hand, hear, is_balanced, manual, ms, survives, threads, until,
};

/// A timer whose callbacks run on `executor`.
fn on(executor: impl Executor) -> Timer {
    Timer::builder().shards(2).executor(executor).built()
}

/// The same with a manual clock.
fn by_hand_on(executor: impl Executor) -> (Timer, ManualClock) {
    by_hand(Timer::builder().executor(executor))
}

/// A timer with a manual clock whose executor keeps its jobs.
fn that_keeps_jobs() -> (Timer, ManualClock, Log<Job>) {
    let jobs = Log::new();
    let keep = jobs.clone();
    let (timer, clock) = by_hand_on(move |job: Job| keep.add(job));
    (timer, clock, jobs)
}

/// Checks that callbacks run on threads of that name. A recurring callback comes back each time,
/// never overlaps itself, and can be cancelled. Promises 1, 2 and 7.
fn runs_on(timer: &Timer, name: &str) {
    let (sender, receiver) = mpsc::channel();
    let begin = Instant::now();
    for delay in [1, 5, 20, 20, 20] {
        let sender = sender.clone();
        let tell = move || {
            let name = thread::current().name().unwrap_or_default().to_owned();
            sender.send((name, begin.elapsed() >= ms(delay))).expect("the test waits");
        };
        after(timer, ms(delay), tell);
    }
    for _ in 0..5 {
        let (on, in_time) = hear(&receiver);
        assert!(on.starts_with(name) && in_time, "on {on:?}");
    }
    let keys = recurs_on(timer, name);
    assert!(keys.into_iter().all(|key| timer.cancel(key)));
    until("no timer is pending", || timer.stats().pending == 0);
    is_balanced(timer);
}

/// Recurring timers whose callbacks take longer than the period: each comes back, and never
/// overlaps itself.
fn recurs_on(timer: &Timer, name: &str) -> Vec<TimerKey> {
    let (count, overlaps) = (Count::default(), Count::default());
    let set = |_| {
        let (mine, overlaps, running) = (count.clone(), overlaps.clone(), AtomicBool::new(false));
        let name = name.to_owned();
        let callback = move || {
            let is_alone = !running.swap(true, Ordering::SeqCst);
            if !is_alone || !thread::current().name().unwrap_or_default().starts_with(&name) {
                overlaps.one();
            }
            thread::sleep(ms(2));
            running.store(false, Ordering::SeqCst);
            mine.one();
        };
        timer.schedule_every(ms(1), callback).expect("the timer is open")
    };
    let keys: Vec<_> = (0..3).map(set).collect();
    until("the timers recur", || count.get() >= 30);
    assert_eq!((overlaps.get(), timer.stats().pending), (0, 3));
    keys
}

/// Callbacks run on a rayon pool, on a thread pool of `futures`, and on a tokio runtime, as tasks and
/// on its blocking threads. Promise 7.
#[test]
fn callbacks_run_on_pools_of_threads() {
    let rayon = ThreadPoolBuilder::new().num_threads(2).thread_name(|i| format!("rayon-{i}")).build();
    let rayon = rayon.expect("threads can be started");
    let pool = ThreadPool::builder().pool_size(2).name_prefix("futures-").create();
    let pool = pool.expect("threads can be started");
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_name("tokio").build();
    let tokio = tokio.expect("threads can be started");
    let (tasks, blocking) = (tokio.handle().clone(), tokio.handle().clone());
    let pools = [
        ("rayon-", on(move |job: Job| rayon.spawn(|| job.run()))),
        ("futures-", on(move |job: Job| pool.spawn_ok(async { job.run() }))),
        ("tokio", on(move |job: Job| drop(tasks.spawn(async { job.run() })))),
        ("tokio", on(move |job: Job| drop(blocking.spawn_blocking(|| job.run())))),
    ];
    pools.iter().for_each(|(name, timer)| runs_on(timer, name));
}

/// An executor that runs a job inside `execute` behaves like no executor. It may be a closure, which is
/// given each job; the time that a job takes is measured. Promise 7.
#[test]
fn an_executor_may_run_a_job_at_once() {
    let (given, log) = (Count::default(), Log::new());
    let counted = given.clone();
    let execute = move |job: Job| {
        counted.one();
        job.run();
    };
    let (timer, clock) = by_hand(Timer::builder().executor_fn(execute));
    let (entries, time) = (log.clone(), clock.clone());
    let key = timer.schedule_every(ms(10), move || entries.add(time.elapsed())).expect("the timer is open");
    clock.advance(ms(35));
    assert_eq!((log.take(), given.get()), ([10, 20, 30].map(ms).to_vec(), 3));
    assert!(timer.cancel(key));
    let time = clock.clone();
    after(&timer, ms(1), move || time.advance(ms(7)));
    clock.advance(ms(1));
    assert_eq!(timer.stats().longest_callback, ms(7));
    is_balanced(&timer);
}

/// A job that is dropped unrun is a callback that has fired: what it holds is dropped, a recurring
/// timer ends, nothing stays pending, and there is room again. Promises 5 and 8.
#[test]
fn a_dropped_job_counts_as_fired() {
    let builder = Timer::builder().executor(|job: Job| drop(job)).max_pending(2);
    let (timer, clock) = by_hand(builder);
    let dropped = Count::default();
    for round in 1..=100 {
        let [once, recurring] = [(); 2].map(|()| Dropped(dropped.clone()));
        let key = timer.schedule_every(ms(1), move || unreachable!("{}", recurring.0.get()));
        timer.schedule_after(ms(1), move || unreachable!("{}", once.0.get())).expect("room for two");
        assert_eq!(
            timer.schedule_after(ms(1), || ()).expect_err("there is no room").kind(),
            ScheduleErrorKind::Full { limit: 2 }
        );
        clock.advance(ms(2));
        assert_eq!((dropped.get(), timer.stats().pending), (2 * round, 0));
        assert!(!timer.cancel(key.expect("room for two")));
    }
    assert_eq!((timer.stats().fired, timer.stats().panics), (200, 0));
    is_balanced(&timer);
}

/// A panic of the executor is caught, counted and reported; its job was dropped, and the shard
/// works on. Promise 7.
#[test]
fn a_panic_of_the_executor_is_reported() {
    let reports = Log::new();
    let (entries, dropped) = (reports.clone(), Count::default());
    let hook =
        move |panic: &CallbackPanic<'_>| entries.add((panic.key(), panic.message().map(str::to_owned)));
    let panics = |_: Job| panic!("the executor panics");
    let (timer, clock) = by_hand(Timer::builder().executor(panics).on_panic(hook));
    let [once, recurring] = [(); 2].map(|()| Dropped(dropped.clone()));
    let first = after(&timer, ms(1), move || drop(once));
    let callback = move || unreachable!("{}", recurring.0.get());
    let second = timer.schedule_every(ms(2), callback).expect("the timer is open");
    clock.advance(ms(10));
    let message = || Some("the executor panics".to_owned());
    assert_eq!(reports.take(), [(Some(first), message()), (Some(second), message())]);
    assert_eq!((dropped.get(), timer.stats().panics, timer.stats().pending), (2, 2, 0));
    is_balanced(&timer);
}

/// The drop of what an unrun job holds panics: the panic is caught and counted, on whatever thread
/// the job is dropped. Promise 7.
#[test]
fn a_panic_of_a_dropped_job_is_counted() {
    let set = |timer: &Timer| {
        let [once, recurring] = [Bomb, Bomb];
        after(timer, ms(1), move || drop(once));
        let callback = move || _ = &recurring;
        timer.schedule_every(ms(1), callback).expect("the timer is open");
    };
    let (timer, clock) = by_hand_on(drop::<Job>);
    set(&timer);
    clock.advance(ms(5));
    assert_eq!((timer.stats().panics, timer.stats().pending), (2, 0));
    is_balanced(&timer);

    let (timer, clock, jobs) = that_keeps_jobs();
    set(&timer);
    clock.advance(ms(5));
    drop(jobs.take());
    clock.advance(ms(5));
    assert_eq!((timer.stats().panics, timer.stats().pending), (2, 0));
    is_balanced(&timer);
}

/// A recurring timer is cancelled while its job waits at an executor, before a shutdown or after
/// it: its callback does not begin, and is dropped. Another one, which is not cancelled, is pending
/// meanwhile; its callback runs once, and what it missed is made up for. Promise 2.
#[test]
fn a_job_that_was_cancelled_while_it_waited_does_not_run() {
    for ends in [false, true] {
        let (timer, clock, jobs) = that_keeps_jobs();
        let (runs, dropped) = (Count::default(), Count::default());
        let set = || {
            let (mine, held) = (runs.clone(), Dropped(dropped.clone()));
            let callback = move || {
                let _held = &held;
                mine.one();
            };
            timer.schedule_every(ms(5), callback).expect("the timer is open")
        };
        let keys = [set(), set()];
        clock.advance(ms(12));
        assert_eq!(timer.stats().pending, 2, "an occurrence waits for the one before");
        assert!(timer.cancel(keys[0]) && !timer.cancel(keys[0]));
        if ends {
            assert!(timer.shutdown().is_empty());
        }
        let waiting = jobs.take();
        assert_eq!((waiting.len(), runs.get(), dropped.get()), (2, 0, 0));
        waiting.into_iter().for_each(Job::run);
        assert_eq!((runs.get(), dropped.get()), (1, if ends { 2 } else { 1 }));
        clock.advance(ms(5));
        assert_eq!((timer.stats().cancelled, jobs.len()), (1, usize::from(!ends)));
        jobs.take().into_iter().for_each(Job::run);
        assert_eq!(runs.get(), if ends { 1 } else { 2 });
        is_balanced(&timer);
    }
}

/// A job waits no more than a callback does: two of them shut down each other's timer, and one moves
/// a clock that waits for the job. Promise 7.
#[test]
fn a_job_waits_neither_for_a_callback_nor_for_a_clock() {
    survives(|| {
        let on_a_thread = || {
            let (jobs, queue) = mpsc::channel::<Job>();
            thread::spawn(move || queue.into_iter().for_each(Job::run));
            move |job: Job| drop(jobs.send(job))
        };
        // A callback waits for the job, which shuts the callback's timer down.
        let (timer, pool) = (threads(1), on(on_a_thread()));
        let ((begun, begins), (shut, is_shut)) = (mpsc::channel(), mpsc::channel());
        let other = timer.clone();
        after(&timer, ms(1), move || {
            begun.send(()).expect("the job waits");
            hear(&is_shut);
        });
        hear(&begins);
        after(&pool, ms(1), move || {
            drop(other.shutdown());
            shut.send(()).expect("the callback waits");
        });
        until("the callback has run", || timer.stats().fired == 1 && timer.stats().pending == 0);
        drop(timer.shutdown());

        // A callback that the clock runs waits for the job, which moves the clock.
        let (timer, clock) = manual();
        let (moved, has_moved) = mpsc::channel();
        let (moves, count) = (clock.clone(), Count::default());
        after(&timer, ms(8), count.adds());
        after(&timer, ms(1), move || {
            after(&pool, ms(1), move || {
                moves.advance(ms(7));
                moved.send(()).expect("the callback waits");
            });
            hear(&has_moved);
        });
        clock.advance(ms(1));
        assert_eq!((clock.elapsed(), count.get()), (ms(8), 1));
    });
}

/// A recurring timer that an executor has run since the last move of the clock is due again.
#[test]
fn a_job_that_has_come_back_is_due_by_the_clock() {
    let (jobs, queue) = mpsc::channel::<Job>();
    let (timer, clock) = by_hand_on(move |job: Job| drop(jobs.send(job)));
    let begin = timer.now();
    timer.schedule_every(ms(10), || ()).expect("the timer is open");
    clock.advance(ms(10));
    assert_eq!(clock.next_deadline(), None, "the executor has it");
    hear(&queue).run();
    assert!(clock.next_deadline().is_some_and(|next| next <= timer.now()));
    clock.advance(ms(0));
    assert_eq!(clock.next_deadline(), Some(begin + ms(20)));
    clock.advance(ms(10));
    hear(&queue).run();
    // A future that waits goes on.
    assert_eq!(clock.run_until_stalled(timer.sleep(ms(5))), Some(Ok(())));
    assert_eq!(clock.next_deadline(), Some(begin + ms(30)));
    drop(timer.shutdown());
    assert_eq!(clock.next_deadline(), None);
}
