//! Features that a program uses together. `tests/README.md` has the table of pairs.

use std::future::pending;
use std::ops::ControlFlow;
use std::sync::mpsc;
use std::time::Duration;

use shardwheel::{
    Deadline, DelayQueue, Elapsed, Executor, Job, ManualClock, Missed, ScheduleErrorKind, TimeoutError,
    Timer, interval, now, timeout, timeout_within,
};

use crate::support::{
    Built, Count, HOUR, Log, after, by_hand, in_time, is_balanced, manual, ms, ready, secs,
};

/// A clock that is an hour ahead of the system's.
fn ahead() -> ManualClock {
    let clock = ManualClock::new();
    clock.advance(HOUR);
    clock
}

/// A deadline by the system's clock is as far away within the scope of a clock that is ahead, and
/// one by a clock that is ahead is in the scope of another clock. A limit that is shorter stays.
#[test]
fn a_deadline_around_a_scope_is_as_far_away_by_its_clock() {
    fn limits(clock: &ManualClock) -> (Duration, [Duration; 2], Option<Duration>) {
        let spent = |limit| {
            let begin = clock.elapsed();
            let timed_out = clock.run_until_stalled(async { timeout(limit, pending::<()>()).await });
            assert_eq!(timed_out.map(|output| output.is_err()), Some(true));
            clock.elapsed() - begin
        };
        let left = Deadline::current().expect("it is inherited").remaining();
        let spent = [spent(secs(1)), spent(HOUR)];
        (left, spent, Deadline::current().map(Deadline::remaining))
    }
    let check = |(left, [short, long], after): (Duration, [Duration; 2], Option<Duration>)| {
        // Real time passes meanwhile, so the deadline is nearer than when it was made.
        assert!(left <= secs(600) && left > secs(300), "{left:?}");
        assert_eq!(short, secs(1));
        assert!(long <= secs(599) && long > secs(299), "{long:?}");
        assert_eq!(after, Some(Duration::ZERO));
    };
    let clock = ahead();
    let deadline = Deadline::after(secs(600));
    check(deadline.sync_scope(|| clock.scope(|| limits(&clock))).0);
    let inner = ahead();
    let task = inner.scope_future(async { limits(&inner) });
    check(deadline.sync_scope(|| futures_lite::future::block_on(task)));
    // A scope in a scope; the outer clock is further ahead.
    let outer = ahead();
    outer.advance(HOUR);
    let inner = ahead();
    let nested = || Deadline::after(secs(600)).sync_scope(|| inner.scope(|| limits(&inner)).0);
    check(outer.scope(nested).0);
}

/// The same with a deadline that is a time of the clock of the inner scope: it is exact there.
#[test]
fn a_deadline_by_the_clock_of_an_inner_scope_is_exact_there() {
    let (clock, timer_clock) = (ahead(), ahead());
    for by in [&clock, &timer_clock] {
        let timer = Timer::builder().clock(by.clone()).built();
        let deadline = Deadline { at: timer.now() + secs(5) };
        let spent = deadline.sync_scope_by(&timer, || {
            let within = || {
                let begin = by.elapsed();
                let limited = by.run_until_stalled(timer.timeout(HOUR, pending::<()>()));
                assert_eq!(limited, Some(Err(TimeoutError::Elapsed)));
                by.elapsed() - begin
            };
            clock.scope(within).0
        });
        assert_eq!(spent, secs(5));
    }
}

/// A timer that goes by the clock of the outer scope, or by the system's clock outside of all, still
/// ends its limits at the deadline itself where a scope of a clock that is ahead lies between.
#[test]
fn a_deadline_by_the_clock_outside_is_exact_for_timers_that_go_by_it() {
    let (outer, inner) = (ManualClock::new(), ahead());
    let timer = Timer::builder().clock(outer.clone()).built();
    let spent = outer.scope(|| {
        Deadline::after(secs(600)).sync_scope(|| {
            let limited = || outer.run_until_stalled(timer.timeout(2 * HOUR, pending::<()>()));
            assert_eq!(inner.scope(limited).0, Some(Err(TimeoutError::Elapsed)));
            outer.elapsed()
        })
    });
    assert_eq!(spent.0, secs(600));
    let timer = Timer::new().expect("settings within their limits");
    let limited = move || futures_lite::future::block_on(timer.timeout(HOUR, pending::<()>()));
    let ended = in_time(move || Deadline::after(ms(20)).sync_scope(|| inner.scope(limited).0));
    assert_eq!(ended, Err(TimeoutError::Elapsed));
}

/// The limits that a group makes in the scope of a deadline end there, and remain members.
#[test]
fn a_limit_of_a_group_ends_at_the_deadline_and_with_the_group() {
    let clock = ManualClock::new();
    let ((), waiting) = clock.scope(|| {
        let group = Timer::global().group();
        let deadline = Deadline::after(secs(5));
        let limited = || deadline.sync_scope(|| group.timeout(HOUR, pending::<()>()));
        assert_eq!(clock.run_until_stalled(limited()), Some(Err(TimeoutError::Elapsed)));
        assert_eq!((clock.elapsed(), group.len()), (secs(5), 0));
        let later = Deadline::after(secs(5));
        let mut limited = later.sync_scope(|| Box::pin(group.timeout(HOUR, pending::<()>())));
        assert_eq!(
            (futures_lite::future::block_on(futures_lite::future::poll_once(&mut limited)), group.len()),
            (None, 1)
        );
        assert_eq!(group.cancel_all(), 1);
        let Err(TimeoutError::Sleep(error)) = ready(&mut limited) else { panic!("it is no timeout") };
        assert_eq!(error.kind(), ScheduleErrorKind::Cancelled);
    });
    assert_eq!(waiting.pending, 0, "{waiting}");
}

/// A window that ends after the deadline is cut; intervals and sleeps go on.
#[test]
fn windows_and_intervals_in_the_scope_of_a_deadline() {
    let clock = ManualClock::new();
    let (ticks, _) = clock.scope(|| {
        clock.run_until_stalled(Deadline::after(secs(10)).scope(async {
            let mut ticks = interval(secs(4));
            let mut count = 0;
            let counted = async {
                loop {
                    ticks.tick().await;
                    count += 1;
                }
            };
            let limit = timeout_within(secs(8)..=secs(60), counted);
            let ended: Result<(), Elapsed> = limit.await;
            assert!(ended.is_err() && clock.elapsed() >= secs(8) && clock.elapsed() <= secs(10));
            // No time is left for a limit, and a tick is none.
            clock.advance(secs(10));
            let passed = timeout(secs(60), pending::<()>()).await;
            assert!(passed.is_err() && clock.elapsed() < secs(30));
            ticks.set_missed_tick_behavior(Missed::Skip);
            ticks.tick().await;
            ticks.tick().await;
            count
        }))
    });
    assert_eq!(ticks, Some(3), "at 0, 4 and 8 s");
}

/// A queue and a group that outlive the scope in which they were made: the values come back, the
/// group refuses.
#[test]
fn a_queue_and_a_group_outlive_their_scope() {
    let clock = ManualClock::new();
    let ((queue, weak, group), waiting) = clock.scope(|| {
        let group = Timer::global().group();
        let queue = DelayQueue::new(&group);
        for value in 0..3 {
            queue.insert(value, secs(value)).expect("it is open");
        }
        after(&group, HOUR, || ());
        clock.advance(secs(1));
        (queue, group.weak(), group)
    });
    assert_eq!((waiting.pending, waiting.sleeps, waiting.first), (2, 0, Some(secs(2))));
    assert_eq!(queue.len(), 3);
    let next = || queue.blocking_recv().map(|expired| expired.value);
    assert_eq!([next(), next(), next()], [Some(0), Some(1), None]);
    assert_eq!(queue.unexpired().map(|(_, value)| value).collect::<Vec<_>>(), [2]);
    assert_eq!(queue.insert(3, secs(1)).expect_err("it has ended").kind(), ScheduleErrorKind::ShutDown);
    queue.close();
    assert_eq!((queue.len(), next()), (0, None));
    assert!(group.is_empty());
    let again = weak.upgrade().expect("the group is there");
    assert_eq!(
        again.schedule_after(HOUR, || ()).expect_err("it has ended").kind(),
        ScheduleErrorKind::ShutDown
    );
    drop((again, group));
    assert!(weak.upgrade().is_none());
}

/// The close of a queue whose timer is shut down, and the shutdown of the timer of a closed queue.
#[test]
fn a_queue_is_closed_and_its_timer_shut_down() {
    for is_first in [true, false] {
        let (timer, clock) = manual();
        let queue = DelayQueue::new(&timer);
        let values = [ms(1), HOUR].map(|delay| queue.insert(delay, delay).expect("it is open"));
        clock.advance(ms(1));
        if is_first {
            queue.close();
        }
        assert!(timer.shutdown().is_empty(), "a queue's values come by the queue");
        queue.close();
        let refused = queue.insert(ms(2), ms(2)).expect_err("it is closed");
        assert_eq!((refused.kind(), refused.into_payload()), (ScheduleErrorKind::QueueClosed, ms(2)));
        assert!(!queue.reset(&values[1], ms(3)));
        assert_eq!(queue.blocking_recv().map(|expired| expired.value), Some(ms(1)));
        assert_eq!((queue.blocking_recv(), queue.len()), (None, 1));
        assert_eq!(queue.unexpired().map(|(_, value)| value).collect::<Vec<_>>(), [HOUR]);
        assert!(queue.is_empty());
    }
}

/// The end of a group takes no value of a queue that was made with it, nor does its shutdown.
#[test]
fn a_queue_that_was_made_with_a_group_goes_on_without_it() {
    let (timer, clock) = manual();
    let group = timer.group();
    let queue = DelayQueue::new(&group);
    let key = queue.insert("value", HOUR).expect("it is open");
    assert!(group.is_empty() && group.shutdown().is_empty());
    assert_eq!(group.cancel_all(), 0);
    assert!(queue.reset(&key, secs(1)));
    drop(group);
    queue.insert("later", secs(2)).expect("it is open");
    clock.advance(secs(2));
    assert_eq!(queue.try_recv().map(|expired| expired.value), Some("value"));
    assert_eq!(queue.try_recv().map(|expired| expired.value), Some("later"));
}

/// On a timer with a slack, values are due together within it, and then come in the order of their
/// inserts. None is early, and values that are further apart come in the order of their deadlines.
#[test]
fn a_queue_is_ordered_to_the_slack() {
    let slack = secs(3);
    let (timer, clock) = by_hand(Timer::builder().shards(1).slack(slack));
    let queue = DelayQueue::new(&timer);
    let mut random = fastrand::Rng::with_seed(48);
    let mut last = timer.now();
    for _ in 0..2_000 {
        queue.insert((), ms(random.u64(0..20_000))).expect("it is open");
        clock.advance(ms(random.u64(0..40)));
        while let Some(expired) = queue.try_recv() {
            let early = last.saturating_duration_since(expired.deadline);
            assert!(early <= slack, "a value whose deadline is {early:?} later came before");
            let late = timer.now().checked_duration_since(expired.deadline).expect("it is not early");
            assert!(late <= slack + ms(41), "{late:?} late");
            last = expired.deadline;
        }
    }
}

/// A window may be a group's, and a batch may cancel members beside others; each member leaves.
#[test]
fn windows_and_batches_of_a_group() {
    let (timer, clock) = manual();
    let group = timer.group();
    let count = Count::default();
    let within = |timer: &Timer| {
        let count = count.clone();
        let window = secs(10)..=secs(20);
        timer.schedule_within(window, move || count.one()).expect("the timer is open")
    };
    let keys = [within(&group), within(&group), within(&timer), within(&group)];
    assert_eq!((group.len(), timer.cancel_batch(keys[1..3].iter().copied()), group.len()), (3, 2, 2));
    clock.advance(secs(20));
    assert_eq!((count.get(), group.len()), (2, 0));
    assert_eq!(group.cancel_batch(keys), 0);
    is_balanced(&timer);
}

/// A handle that keeps nothing: what it finds after the group, or the timer, was shut down.
#[test]
fn a_weak_handle_of_a_group_across_a_shutdown() {
    let (timer, clock) = manual();
    let (one, other) = (timer.group(), timer.group());
    let (weak_one, weak_other, weak_timer) = (one.weak(), other.weak(), one.downgrade());
    after(&one, HOUR, || ());
    after(&other, HOUR, || ());
    assert_eq!(one.shutdown().len(), 1);
    let refused = |timer: &Timer| timer.schedule_after(HOUR, || ()).expect_err("it has ended").kind();
    let upgraded = weak_one.upgrade().expect("a handle is left");
    assert_eq!(refused(&upgraded), ScheduleErrorKind::Cancelled);
    assert_eq!(refused(&weak_timer.upgrade().expect("the timer is there")), ScheduleErrorKind::Cancelled);
    assert_eq!(timer.shutdown().len(), 1);
    assert!(other.is_empty());
    assert_eq!(refused(&weak_other.upgrade().expect("a handle is left")), ScheduleErrorKind::ShutDown);
    drop((upgraded, one, other));
    assert!(weak_one.upgrade().is_none() && weak_other.upgrade().is_none());
    clock.advance(2 * HOUR);
    assert_eq!(timer.stats().fired, 0);
}

/// What an executor has of a group when that ends: what fires once runs, what recurs does not.
#[test]
fn a_group_that_ends_while_an_executor_has_its_jobs() {
    struct Later(mpsc::Sender<Job>);
    impl Executor for Later {
        fn execute(&self, job: Job) {
            self.0.send(job).expect("the test has the receiver");
        }
    }
    let (sender, jobs) = mpsc::channel();
    let (timer, clock) = by_hand(Timer::builder().shards(1).executor(Later(sender)));
    let (group, runs) = (timer.group(), Count::default());
    let counted = || runs.adds();
    after(&group, secs(1), counted());
    group.schedule_every(secs(1), counted()).expect("the timer is open");
    let repeat = counted();
    let repeat = move |_| (repeat(), ControlFlow::Continue(())).1;
    group.schedule_repeating(secs(1), repeat).expect("the timer is open");
    after(&group, HOUR, counted());
    clock.advance(secs(1));
    assert_eq!(group.cancel_all(), 3, "two that recur, and one that is an hour away");
    jobs.try_iter().for_each(Job::run);
    assert_eq!(runs.get(), 1);
    clock.advance(secs(10));
    jobs.try_iter().for_each(Job::run);
    assert_eq!((runs.get(), group.len(), timer.stats().pending), (1, 0, 0));
    is_balanced(&timer);
}

/// Callbacks of the scope's timer schedule, make groups and queues, and find the clock's time.
#[test]
fn callbacks_in_a_scope_use_all_of_it() {
    let clock = ManualClock::new();
    let log = Log::new();
    let ((), waiting) = clock.scope(|| {
        let (noted, at) = (log.clone(), clock.clone());
        after(Timer::global(), secs(1), move || {
            assert_eq!(now(), shardwheel::Clock::now(&at));
            let group = Timer::global().group();
            let inner = noted.clone();
            after(&group, secs(1), move || inner.add("member"));
            let queue = DelayQueue::new(Timer::global());
            queue.insert("value", secs(1)).expect("it is open");
            let inner = noted.clone();
            after(Timer::global(), secs(3), move || {
                inner.add(queue.try_recv().expect("it has expired").value);
                drop(group);
            });
        });
        clock.advance(secs(10));
    });
    assert_eq!(log.take(), ["member", "value"]);
    assert_eq!(waiting.pending, 0, "{waiting}");
}

/// What is given out in real time: a queue that is closed while the timer is shut down elsewhere.
#[test]
fn a_close_races_with_a_shutdown_in_real_time() {
    in_time(|| {
        for _ in 0..200 {
            let timer = Timer::builder().shards(1).built();
            let queue = DelayQueue::new(&timer);
            let inserted = 50;
            for value in 0..inserted {
                queue.insert(value, Duration::from_micros(value * 20)).expect("it is open");
            }
            let received = std::thread::scope(|threads| {
                let consumer = threads.spawn(|| std::iter::from_fn(|| queue.blocking_recv()).count());
                threads.spawn(|| queue.close());
                threads.spawn(|| assert!(timer.shutdown().is_empty()));
                consumer.join().expect("it ends")
            });
            assert_eq!(received + queue.unexpired().count(), inserted as usize);
            assert!(queue.is_empty());
        }
    });
}
