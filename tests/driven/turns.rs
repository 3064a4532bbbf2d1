//! What a turn runs, and when the next one is due.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use shardwheel::{Clock, Job, ManualClock, Missed, Timer};

use crate::by_hand;

#[test]
fn nothing_is_due_where_nothing_is_pending() {
    let (_, timer, mut driver) = by_hand();
    assert_eq!((driver.next_deadline(), driver.turn(), driver.next_deadline()), (None, 0, None));
    let never = timer.schedule_after(Duration::MAX, || unreachable!("it never comes")).unwrap();
    assert_eq!(driver.next_deadline(), None);
    assert!(timer.cancel(never));
}

/// A loop that calls only `turn` is behind while timers wait for the next turn, and not after it,
/// however long nothing comes. Nor is a timer behind after its shutdown.
#[test]
fn the_backlog_ends_with_the_turn() {
    let (clock, timer, mut driver) = by_hand();
    let backlog = || timer.stats().total.backlog;
    for _ in 0..1_500 {
        timer.schedule_after(Duration::from_millis(5), || ()).unwrap();
    }
    let cancelled = timer.schedule_after(Duration::from_millis(2_000), || ()).unwrap();
    clock.advance(Duration::from_millis(25));
    assert_eq!((driver.turn(), backlog()), (1_024, Duration::from_millis(20)));
    assert_eq!((driver.turn(), backlog()), (476, Duration::ZERO));
    assert!(driver.next_deadline().is_some() && timer.cancel(cancelled));
    for _ in 0..3 {
        clock.advance(Duration::from_secs(3));
        assert_eq!((driver.turn(), backlog()), (0, Duration::ZERO));
    }
    timer.schedule_after(Duration::from_millis(5), || ()).unwrap();
    assert!(driver.next_deadline().is_some());
    drop(driver);
    clock.advance(Duration::from_secs(3));
    assert_eq!(backlog(), Duration::ZERO);
}

/// While an executor has the only recurring timer, a loop without a waker looks again.
#[test]
fn a_loop_waits_for_what_an_executor_has() {
    let (jobs, queue) = mpsc::channel::<Job>();
    let clock = ManualClock::new();
    let builder = Timer::builder().clock(clock.clone()).executor(move |job: Job| drop(jobs.send(job)));
    let (timer, mut driver) = builder.build_driven().unwrap();
    let begin = clock.now();
    let at = |millis| Some(begin + Duration::from_millis(millis));
    let key = timer.schedule_every(Duration::from_millis(50), || ()).unwrap();
    clock.advance(Duration::from_millis(50));
    assert_eq!((driver.turn(), driver.next_deadline()), (1, at(60)));
    clock.advance(Duration::from_millis(10));
    assert_eq!((driver.turn(), driver.next_deadline()), (0, at(70)));
    queue.try_recv().unwrap().run();
    assert_eq!(driver.next_deadline(), at(100));
    assert!(timer.cancel(key));
    assert_eq!((driver.turn(), driver.next_deadline()), (0, None));
}

/// A loop that waits until `next_deadline` and then turns fires each timer at its tick, however far
/// away it is.
#[test]
fn a_loop_is_never_early_and_never_late() {
    for millis in [1, 2, 255, 2_047, 2_048, 70_000, 5_000_000, 1 << 40] {
        let (clock, timer, mut driver) = by_hand();
        driver.turn();
        let deadline = clock.now() + Duration::from_millis(millis);
        timer.schedule_at(deadline, || ()).unwrap();
        let mut turns = 0;
        loop {
            let next = driver.next_deadline().expect("it is pending");
            assert!(next <= deadline, "{millis} ms: late");
            clock.advance(next.saturating_duration_since(clock.now()));
            turns += 1;
            if driver.turn() == 1 {
                break;
            }
            assert!(turns < 1_000, "{millis} ms: the loop does not get on");
        }
        assert_eq!(clock.now(), deadline, "{millis} ms");
    }
}

#[test]
fn callbacks_run_on_the_thread_that_turns() {
    let (clock, timer, mut driver) = by_hand();
    let (sender, receiver) = mpsc::channel();
    for _ in 0..2 {
        let sender = sender.clone();
        timer
            .schedule_after(Duration::from_millis(1), move || sender.send(thread::current().id()).unwrap())
            .unwrap();
        clock.advance(Duration::from_millis(1));
        // A driver may move to another thread between two turns.
        let turns = move || {
            driver.turn();
            (driver, thread::current().id())
        };
        let (moved, turned_on) = thread::spawn(turns).join().unwrap();
        driver = moved;
        assert_eq!(receiver.try_recv(), Ok(turned_on));
    }
}

#[test]
fn several_shards_are_turned_together() {
    let clock = shardwheel::ManualClock::new();
    let (timer, mut driver) = Timer::builder().clock(clock.clone()).shards(4).build_driven().unwrap();
    assert_eq!(timer.shards(), 4);
    let begin = clock.now();
    thread::scope(|scope| {
        for millis in 1..=8 {
            let timer = &timer;
            scope.spawn(move || timer.schedule_after(Duration::from_millis(millis), || ()).unwrap());
        }
    });
    assert_eq!(driver.next_deadline(), Some(begin + Duration::from_millis(1)));
    clock.advance(Duration::from_millis(4));
    assert_eq!((driver.turn(), driver.next_deadline()), (4, Some(begin + Duration::from_millis(5))));
    clock.advance(Duration::from_millis(4));
    assert_eq!((driver.turn(), driver.next_deadline()), (4, None));
}

#[test]
fn a_recurring_timer_continues() {
    let (clock, timer, mut driver) = by_hand();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let every = shardwheel::Every::new(Duration::from_millis(10)).missed(Missed::Burst);
    let add = move || {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    timer.schedule_with(every, add).unwrap();
    for _ in 0..5 {
        let next = driver.next_deadline().unwrap();
        clock.advance(next.saturating_duration_since(clock.now()));
        assert_eq!(driver.turn(), 1);
    }
    assert_eq!((count.load(Ordering::Relaxed), clock.elapsed()), (5, Duration::from_millis(50)));
    // What was missed comes in one or several turns.
    clock.advance(Duration::from_millis(50));
    while driver.next_deadline().unwrap() <= clock.now() {
        driver.turn();
    }
    assert_eq!(count.load(Ordering::Relaxed), 10);
}

/// The memory of many timers that were cancelled is given back by turns that `next_deadline` asks
/// for.
#[test]
fn what_is_cancelled_is_swept() {
    let (clock, timer, mut driver) = by_hand();
    let keys: Vec<_> =
        (0..50_000).map(|_| timer.schedule_after(Duration::from_secs(3600), || ()).unwrap()).collect();
    driver.turn();
    keys.into_iter().for_each(|key| assert!(timer.cancel(key)));
    let mut turns = 0;
    while let Some(next) = driver.next_deadline() {
        clock.advance(next.saturating_duration_since(clock.now()));
        driver.turn();
        turns += 1;
        assert!(turns < 100_000 && clock.elapsed() < Duration::from_secs(3600), "{turns}");
    }
    assert_eq!(timer.stats().pending, 0);
}
