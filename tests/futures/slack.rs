//! Futures that may be ready at any time within a window.

use std::future::pending;
use std::panic::catch_unwind;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use shardwheel::{Interval, ManualClock, Missed, ScheduleErrorKind, TimeoutError, Timer};

use crate::support::{Bell, HOUR, after, by_hand, is_balanced, manual, ms, poll, secs};

/// Moves the clock tick by tick until the waker is woken; returns the time since `start` then.
fn woken_at(clock: &ManualClock, bell: &Bell, start: Duration) -> Duration {
    while !bell.has_rung() {
        clock.advance(ms(1));
        assert!(clock.elapsed() < start + HOUR, "it is not woken");
    }
    clock.elapsed() - start
}

/// A sleep's task is woken within the window, at the tick that a callback with that window has, and
/// not before. Promise 1.
#[test]
fn a_sleep_wakes_within_its_window() {
    let (timer, clock) = manual();
    for (from, to) in [(1, 1), (3, 5), (5, 7), (17, 31), (33, 63), (50, 60), (100, 1_000), (1_020, 1_030)] {
        let (begin, now) = (clock.elapsed(), timer.now());
        let window = now + ms(from)..=now + ms(to);
        let key = timer.schedule_within(window.clone(), || ()).expect("the timer is open");
        let due = timer.deadline(key).expect("it is near") - now;
        let ((bell, waker), mut sleep) = (Bell::new(), timer.sleep_within(window));
        assert_eq!(sleep.deadline(), Some(now + ms(from)));
        assert!(poll(&mut sleep, &waker).is_pending());
        assert_eq!(woken_at(&clock, &bell, begin), due);
        assert!((ms(from)..=ms(to)).contains(&due));
        assert!(sleep.is_elapsed());
        assert_eq!(poll(&mut sleep, &waker), Poll::Ready(Ok(())));
    }
    is_balanced(&timer);
}

/// A window that has begun, or has passed, is ready at the first poll; one in which no tick begins
/// at the next tick. Promises 1 and 4.
#[test]
fn windows_without_a_tick_and_windows_that_have_begun() {
    let (timer, clock) = manual();
    clock.advance(ms(5));
    let now = timer.now();
    for window in [now - ms(3)..=now + HOUR, now..=now + ms(1), now - ms(5)..=now - ms(1)] {
        assert_eq!(poll(&mut timer.sleep_within(window), Waker::noop()), Poll::Ready(Ok(())));
    }
    let micros = |micros| now + Duration::from_micros(micros);
    let (bell, waker) = Bell::new();
    let mut sleep = timer.sleep_within(micros(2_200)..=micros(2_800));
    assert!(poll(&mut sleep, &waker).is_pending());
    assert_eq!(woken_at(&clock, &bell, ms(5)), ms(3));
    // The end is what the window says, also if it starts before the timer.
    let now = timer.now();
    let long_ago = now.checked_sub(HOUR).unwrap_or(now - ms(5));
    let key = timer.schedule_within(long_ago..=now + ms(3), || ()).expect("the timer is open");
    assert!(timer.deadline(key).is_some_and(|due| due <= now + ms(3)));
    // To the end of time.
    let far = now.checked_add(Duration::from_secs(1 << 40)).unwrap_or(now + HOUR);
    assert!(poll(&mut timer.sleep_within(now + ms(1)..=far), Waker::noop()).is_pending());
}

/// A window that ends before it starts is an error, until the sleep is reset. The free functions
/// panic with the same text.
#[test]
fn an_empty_window_is_an_error() {
    let (timer, clock) = manual();
    let start = timer.now() + ms(10);
    let empty = start..=start - ms(3);
    let mut sleep = timer.sleep_within(empty.clone());
    let error = |result| match result {
        Poll::Ready(Err(error)) => error,
        _ => panic!("there is no error"),
    };
    let kind = ScheduleErrorKind::WindowEndsBeforeStart { by: ms(3) };
    assert_eq!(error(poll(&mut sleep, Waker::noop())).kind(), kind);
    assert_eq!(error(poll(&mut sleep, Waker::noop())).kind(), kind);
    assert!(!sleep.is_elapsed());
    sleep.reset(start);
    assert!(poll(&mut sleep, Waker::noop()).is_pending());
    clock.advance(ms(10));
    assert_eq!(poll(&mut sleep, Waker::noop()), Poll::Ready(Ok(())));

    let mut limited = Box::pin(timer.timeout_within(empty.clone(), pending::<()>()));
    match poll(&mut limited, Waker::noop()) {
        Poll::Ready(Err(TimeoutError::Sleep(error))) => assert_eq!(error.kind(), kind),
        other => panic!("{other:?}"),
    }
    let again = empty.clone();
    for panic in [
        catch_unwind(|| drop(shardwheel::sleep_within(empty))).expect_err("the window is empty"),
        catch_unwind(|| drop(shardwheel::timeout_within(again, async {}))).expect_err("the window is empty"),
    ] {
        let text = panic.downcast_ref::<String>().expect("a text");
        assert_eq!(text, &kind.to_string());
    }
}

/// A reset moves the window, and keeps its length.
#[test]
fn a_reset_keeps_the_slack() {
    let (timer, clock) = manual();
    let now = timer.now();
    let (bell, waker) = Bell::new();
    let mut sleep = timer.sleep_within(now + ms(100)..=now + ms(120));
    assert!(poll(&mut sleep, &waker).is_pending());
    for deadline in [300, 50, 17] {
        sleep.reset(now + ms(deadline));
        assert!(poll(&mut sleep, &waker).is_pending());
    }
    assert_eq!(woken_at(&clock, &bell, Duration::ZERO), ms(32));
    let _ = poll(&mut sleep, &waker);
    let (bell, waker) = Bell::new();
    sleep.reset(now + ms(50));
    assert!(poll(&mut sleep, &waker).is_pending());
    assert_eq!(woken_at(&clock, &bell, Duration::ZERO), ms(64));
}

/// The ticks of an interval until `end`: when each was due, and when its task was woken.
fn ticks(interval: &mut Interval, clock: &ManualClock, end: Duration) -> Vec<(Instant, Duration)> {
    let mut ticks = Vec::new();
    while clock.elapsed() < end {
        let (bell, waker) = Bell::new();
        let mut tick = Box::pin(interval.tick());
        if let Poll::Ready(due) = poll(&mut tick, &waker) {
            ticks.push((due.expect("the timer is open"), clock.elapsed()));
            continue;
        }
        while !bell.has_rung() {
            clock.advance(ms(1));
        }
    }
    ticks
}

/// An interval with slack does not drift: each tick is due a period after the one before, and comes
/// within the slack. Its own slack is stronger than that of the timer. Promise 1.
#[test]
fn an_interval_with_slack_does_not_drift() {
    for (slack, own) in [(0, Some(4)), (4, None), (9, Some(4)), (9, Some(0)), (0, Some(25))] {
        for missed in [Missed::Burst, Missed::Skip] {
            let (timer, clock) = by_hand(Timer::builder().slack(ms(slack)));
            let (start, slack) = (timer.now(), ms(own.unwrap_or(slack)));
            let mut interval = timer.interval(ms(10)).missed(missed);
            if let Some(own) = own {
                interval = interval.slack(ms(own));
            }
            let ticks = ticks(&mut interval, &clock, secs(1));
            let all = ticks.len() == 101 || ticks.len() == 100 || slack > ms(10);
            assert!(all, "{} ticks with {slack:?}", ticks.len());
            for (due, came) in ticks {
                assert_eq!((due - start).as_millis() % 10, 0);
                let late = came.checked_sub(due - start).expect("none is early");
                assert!(late <= slack, "{late:?} late with {slack:?}");
            }
        }
    }
}

/// With the timer's slack all futures are due where its callbacks are: at one tick.
#[test]
fn the_timers_slack_holds_for_all_futures() {
    let (timer, clock) = by_hand(Timer::builder().slack(ms(20)));
    for delay in [5, 13, 33, 100, 777] {
        let (begin, now) = (clock.elapsed(), timer.now());
        let key = after(&timer, ms(delay), || ());
        let due = timer.deadline(key).expect("it is near") - now;
        assert!(due >= ms(delay) && due <= ms(delay + 20));
        let bells = [(); 4].map(|()| Bell::new());
        let mut sleep = timer.sleep(ms(delay));
        let mut until = timer.sleep_until(now + ms(delay));
        let mut limit = Box::pin(timer.timeout(ms(delay), pending::<()>()));
        let mut exact = timer.sleep_within(now + ms(delay)..=now + ms(delay));
        assert!(poll(&mut sleep, &bells[0].1).is_pending() && poll(&mut until, &bells[1].1).is_pending());
        assert!(poll(&mut limit, &bells[2].1).is_pending() && poll(&mut exact, &bells[3].1).is_pending());
        assert_eq!(woken_at(&clock, &bells[3].0, begin), ms(delay));
        assert_eq!([0, 1, 2].map(|i| woken_at(&clock, &bells[i].0, begin)), [due; 3]);
        assert_eq!(poll(&mut sleep, Waker::noop()), Poll::Ready(Ok(())));
    }
}

/// The free functions wait within their windows.
#[test]
fn the_global_timers_windows_in_real_time() {
    let begin = Instant::now();
    let early = begin + ms(20);
    futures::executor::block_on(async {
        shardwheel::sleep_within(early..=early + ms(20)).await;
        assert!(Instant::now() >= early);
        let limit = Instant::now() + ms(5);
        let late = shardwheel::timeout_within(limit..=limit + ms(10), pending::<()>()).await;
        assert!(late.is_err() && Instant::now() >= limit);
        assert_eq!(shardwheel::timeout_within(limit + HOUR..=limit + HOUR, async { 5 }).await, Ok(5));
        let mut interval = shardwheel::interval(ms(5)).slack(ms(3));
        let first = interval.tick().await;
        assert_eq!(interval.tick().await, first + ms(5));
    });
}
