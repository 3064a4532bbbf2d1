//! Code that uses the global timer, in the scope of a manual clock.

use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures::executor::LocalPool;
use futures::task::LocalSpawnExt;
use shardwheel::{Clock, DelayQueue, ManualClock, Timer, Waiting, interval, now, sleep, timeout};

use crate::support::{Acts, Count, HOUR, To, hear, hooked, is_pending, ms, secs};

/// Polls once, and wakes nothing.
fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    crate::support::poll(future, Waker::noop())
}

/// Whether the global timer here is the process's: it goes by the system's time.
fn is_outside() -> bool {
    let before = Instant::now();
    let now = Timer::global().now();
    (before..=Instant::now()).contains(&now)
}

#[test]
fn all_free_functions_go_by_the_clock() {
    let clock = ManualClock::new();
    let program = async {
        sleep(HOUR).await;
        shardwheel::sleep_until(now() + HOUR).await;
        assert!(timeout(HOUR, pending::<()>()).await.is_err());
        assert!(shardwheel::timeout_at(now() + HOUR, pending::<()>()).await.is_err());
        let mut interval = interval(HOUR);
        for _ in 0..3 {
            interval.tick().await;
        }
        shardwheel::interval_at(now() + HOUR, HOUR).tick().await;
    };
    let (ended, waiting) = clock.scope(|| clock.run_until_stalled(program));
    assert_eq!((ended, clock.elapsed()), (Some(()), 7 * HOUR));
    assert_eq!(waiting, Waiting::default());
    assert_eq!(waiting.to_string(), "0 sleeps are pending");
}

/// The clock is an hour ahead of the system's: a deadline that is computed from the system's time
/// has passed, so the interval would have 61 ticks at once, and the sleep would be over.
#[test]
fn deadlines_from_now_go_by_the_clock_of_the_scope() {
    let clock = ManualClock::new();
    clock.advance(HOUR);
    let _waiting = clock.scope(|| {
        assert_eq!(now(), clock.now());
        let mut ticks = shardwheel::interval_at(now(), HOUR / 60);
        let mut next = || std::pin::pin!(ticks.tick()).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(std::iter::from_fn(|| next().is_ready().then_some(())).count(), 1);

        let mut idle = sleep(HOUR);
        let resets: [fn(&mut shardwheel::global::Sleep); 2] =
            [|idle| idle.reset(now() + ms(300)), |idle| idle.reset_after(ms(300))];
        for reset in resets {
            reset(&mut idle);
            assert!(poll(&mut idle).is_pending() && idle.remaining() == ms(300));
            clock.advance(ms(299));
            assert!(poll(&mut idle).is_pending() && idle.remaining() == ms(1));
            clock.advance(ms(1));
            assert!(poll(&mut idle).is_ready() && idle.remaining() == ms(0));
        }
        idle.reset_after(Duration::MAX);
        assert_eq!(idle.remaining(), Duration::MAX);
    });
    let (before, seen) = (Instant::now(), now());
    assert!((before..=Instant::now()).contains(&seen), "the system's time again");
}

#[test]
fn what_still_waits_is_reported() {
    let clock = ManualClock::new();
    let mut kept = Vec::new();
    let count = Count::default();
    let (_, waiting) = clock.scope(|| {
        clock.advance(ms(500));
        for hours in [3, 1, 2] {
            kept.push(sleep(hours * HOUR));
        }
        assert!(kept.iter_mut().all(|sleep| poll(sleep).is_pending()));
        let counted = count.clone();
        Timer::global().schedule_every(2 * HOUR, move || counted.one()).unwrap();
    });
    assert_eq!((waiting.pending, waiting.sleeps, waiting.first), (4, 3, Some(HOUR + ms(500))));
    assert_eq!(waiting.to_string(), "4 timers are pending, the first at 3600.5s");
    // The callback has been dropped.
    clock.advance(9 * HOUR);
    assert_eq!(count.get(), 0);
    // What never comes has no time.
    let (_never, waiting) = clock.scope(|| {
        let mut never = sleep(Duration::MAX);
        assert!(poll(&mut never).is_pending());
        never
    });
    assert_eq!((waiting.pending, waiting.sleeps, waiting.first), (1, 1, None));
}

/// Neither lost nor early.
#[test]
fn a_sleep_that_outlives_its_scope_goes_on_in_real_time() {
    let (clock, (sender, woken)) = (ManualClock::new(), mpsc::channel());
    let waker = Acts::waker(move || sender.send(()).expect("the test waits"));
    let ((mut waits, mut idle, mut hour), waiting) = clock.scope(|| {
        let mut waits = sleep(ms(30));
        is_pending(&mut waits, &waker);
        (waits, sleep(ms(30)), sleep(HOUR))
    });
    let deadline = clock.now() + ms(30);
    assert_eq!((waiting.sleeps, waits.deadline()), (1, Some(deadline)));
    hear(&woken); // by the end of the scope
    // The poll that finds the end of the scope wakes its task.
    futures::executor::block_on(&mut waits);
    futures::executor::block_on(&mut idle);
    assert!(Instant::now() >= deadline);
    let near = poll(&mut hour).is_pending() && poll(&mut hour).is_pending();
    assert!(near && !hour.is_elapsed(), "it goes on to the same deadline");
    assert!(hour.deadline().is_some_and(|at| (clock.now() + HOUR..clock.now() + HOUR + ms(2)).contains(&at)));
}

#[test]
fn the_global_timer_of_a_scope_is_not_shut_down_by_its_user() {
    let clock = ManualClock::new();
    let (slept, _) = clock.scope(|| {
        assert!(Timer::global().shutdown().is_empty());
        clock.run_until_stalled(sleep(HOUR))
    });
    assert_eq!(slept, Some(()));
}

#[test]
fn values_of_a_delay_queue_come_by_the_clock() {
    let clock = ManualClock::new();
    let (queue, waiting) = clock.scope(|| {
        let queue = DelayQueue::new(Timer::global());
        queue.insert("late", 2 * HOUR).unwrap();
        queue.insert("early", HOUR).unwrap();
        let first = clock.run_until_stalled(queue.next()).flatten();
        assert_eq!(first.map(|expired| expired.value), Some("early"));
        queue
    });
    assert_eq!((waiting.pending, waiting.sleeps, waiting.first), (1, 0, Some(2 * HOUR)));
    assert!(queue.insert("too late", HOUR).is_err());
}

#[test]
fn the_inner_of_two_scopes_counts() {
    let (outer, inner) = (ManualClock::new(), ManualClock::new());
    let _waiting = outer.scope(|| {
        assert_eq!(outer.run_until_stalled(sleep(HOUR)), Some(()));
        let (slept, _) = inner.scope(|| inner.run_until_stalled(sleep(ms(5))));
        assert_eq!((slept, inner.elapsed(), outer.elapsed()), (Some(()), ms(5), HOUR));
        // A scope of the same clock is another scope, too.
        let (_, waiting) = outer.scope(|| Timer::global().schedule_after(HOUR, || ()).unwrap());
        assert_eq!(waiting.pending, 1);
        assert_eq!(outer.run_until_stalled(sleep(HOUR)), Some(()));
        assert_eq!((outer.elapsed(), inner.elapsed()), (2 * HOUR, ms(5)));
    });
    assert!(is_outside());
}

/// Also while a future of the scope lives.
#[test]
fn a_panic_ends_the_scope() {
    let (clock, mut kept, mut outlives) = (ManualClock::new(), None, None);
    let panics = || {
        let _waiting = clock.scope(|| {
            assert!(poll(kept.insert(sleep(HOUR))).is_pending());
            let future = outlives.insert(Box::pin(clock.scope_future(async { sleep(HOUR).await })));
            assert!(poll(future).is_pending());
            Timer::global().schedule_after(HOUR, || unreachable!("the scope has ended")).unwrap();
            panic!("on purpose");
        });
    };
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert!(is_outside());
    assert_eq!(clock.next_deadline(), None, "the clock drives the scope's timer no more");
    // It goes on by the system's clock.
    let mut kept = kept.expect("it has been made");
    assert!(poll(&mut kept).is_pending() && poll(&mut kept).is_pending());
    clock.advance(2 * HOUR);
    assert!(poll(&mut kept).is_pending());
}

/// A task that other threads poll takes its scope along, and what it leaves counts in that scope.
#[test]
fn a_task_joins_the_scope_that_it_was_made_in() {
    let clock = ManualClock::new();
    let (mut task, waiting) = clock.scope(|| {
        let mut task = Box::pin(clock.scope_future(async {
            sleep(HOUR).await;
            sleep(HOUR).await;
        }));
        task = thread::spawn(move || {
            assert!(poll(&mut task).is_pending());
            assert!(is_outside());
            task
        })
        .join()
        .unwrap();
        clock.advance(HOUR);
        assert!(poll(&mut task).is_pending());
        task
    });
    assert_eq!((waiting.sleeps, waiting.first), (1, Some(2 * HOUR)));
    // The scope has ended: it goes on in real time.
    assert!(poll(&mut task).is_pending() && poll(&mut task).is_pending());
}

#[test]
fn a_task_outside_of_all_scopes_has_its_own() {
    let clock = ManualClock::new();
    let (sender, slept) = mpsc::channel();
    let thread = thread::spawn({
        let task = clock.scope_future(async move {
            sleep(HOUR).await;
            assert!(timeout(HOUR, pending::<()>()).await.is_err());
            sender.send(Timer::global().now()).unwrap();
        });
        move || {
            futures::executor::block_on(task);
            assert!(is_outside());
        }
    });
    let end = loop {
        clock.advance(secs(60));
        if let Ok(end) = slept.try_recv() {
            break end;
        }
    };
    thread.join().unwrap();
    assert!(end - (clock.now() - clock.elapsed()) >= 2 * HOUR);
}

/// An executor of the test's own, whose tasks run on this thread.
#[test]
fn an_executors_tasks_are_within_the_scope() {
    let clock = ManualClock::new();
    let (mut pool, count) = (LocalPool::new(), Count::default());
    let (_, waiting) = clock.scope(|| {
        for hours in 1..=10 {
            let count = count.clone();
            let task = async move {
                sleep(hours * HOUR).await;
                count.one();
            };
            pool.spawner().spawn_local(task).unwrap();
        }
        pool.run_until_stalled();
        clock.advance(7 * HOUR);
        pool.run_until_stalled();
    });
    assert_eq!((count.get(), waiting.sleeps, waiting.first), (7, 3, Some(8 * HOUR)));
}

/// Tasks whose wakers panic: the rest of the scope ends all the same.
#[test]
fn a_waker_that_panics_does_not_keep_the_scope_from_ending() {
    let (clock, wakes) = (ManualClock::new(), Count::default());
    let woken = wakes.clone();
    let waker = hooked(move |to| {
        if to == To::Wake {
            woken.one();
            panic!("on purpose");
        }
    });
    let (_kept, waiting) = clock.scope(|| {
        let mut sleeps: Vec<_> = (1..=3).map(|hours| sleep(hours * HOUR)).collect();
        sleeps.iter_mut().for_each(|sleep| is_pending(sleep, &waker));
        sleeps
    });
    assert_eq!((waiting.sleeps, wakes.get()), (3, 3));
    assert!(is_outside());
}
