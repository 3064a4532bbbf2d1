//! An interval, tick by tick and as a stream, polled by hand.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures::stream::{FusedStream, Stream};
use shardwheel::{Interval, ManualClock, Missed, ScheduleErrorKind, SleepError, Timer};

use crate::support::{Bell, HOUR, is_balanced, manual, ms, threads};

/// Polls for the next tick, once.
fn tick(interval: &mut Interval, waker: &Waker) -> Option<Result<Instant, SleepError>> {
    let tick = pin!(interval.tick());
    match tick.poll(&mut Context::from_waker(waker)) {
        Poll::Ready(tick) => Some(tick),
        Poll::Pending => None,
    }
}

/// Polls it as a stream, once.
fn next(interval: &mut Interval) -> Poll<Option<Result<Instant, SleepError>>> {
    Pin::new(interval).poll_next(&mut Context::from_waker(Waker::noop()))
}

/// All ticks that are ready now, and after the clock has moved by a tick, as durations from `start`
/// to their deadlines. An overdue tick comes within a tick.
fn ticks_by_now(
    interval: &mut Interval,
    clock: &ManualClock,
    start: Instant,
    streamed: bool,
) -> Vec<Duration> {
    let mut ticks = ready_ticks(interval, start, streamed);
    clock.advance(ms(1));
    ticks.extend(ready_ticks(interval, start, streamed));
    ticks
}

/// All ticks that are ready now, from `tick` or from the stream.
fn ready_ticks(interval: &mut Interval, start: Instant, streamed: bool) -> Vec<Duration> {
    let one = |interval: &mut Interval| {
        if !streamed {
            return tick(interval, Waker::noop());
        }
        match next(interval) {
            Poll::Ready(tick) => Some(tick.expect("it does not end")),
            Poll::Pending => None,
        }
    };
    std::iter::from_fn(|| one(interval)).map(|due| due.expect("the timer is open") - start).collect()
}

/// The first tick comes at once, and each further tick a period later; each returns its deadline.
/// Promise 1.
#[test]
fn an_interval_ticks_once_a_period() {
    let (timer, clock) = manual();
    let (bell, waker) = Bell::new();
    let (mut interval, start) = (timer.interval(ms(10)), timer.now());
    assert_eq!(interval.period(), ms(10));
    assert_eq!(tick(&mut interval, &waker), Some(Ok(start)));
    for count in 1..=5 {
        assert_eq!(tick(&mut interval, &waker), None);
        clock.advance(ms(9));
        assert_eq!(tick(&mut interval, &waker), None);
        clock.advance(ms(1));
        assert_eq!(bell.rings() as u32, count);
        assert_eq!(tick(&mut interval, &waker), Some(Ok(start + count * ms(10))));
    }
    drop(interval);
    assert_eq!(timer.stats().pending, 0);
    is_balanced(&timer);
}

/// The ticks that are ready after each of these moves of the clock.
fn after_moves(missed: Missed, streamed: bool, moves: &[u64]) -> Vec<Vec<Duration>> {
    let (timer, clock): (Timer, ManualClock) = manual();
    let (mut interval, start) = (timer.interval(ms(100)).missed(missed), timer.now());
    let step = |&by: &u64| {
        clock.advance(ms(by));
        ticks_by_now(&mut interval, &clock, start, streamed)
    };
    let seen = moves.iter().map(step).collect();
    drop(interval);
    is_balanced(&timer);
    seen
}

/// The interval is not polled for a while: it makes up for missed ticks, skips them or delays. By
/// `tick` and as a stream. Promises 1 and 4.
#[test]
fn missed_ticks_are_made_up_skipped_or_delayed() {
    for streamed in [false, true] {
        let after = |missed| after_moves(missed, streamed, &[0, 100, 350, 50, 100, 50]);
        let in_ms = |ticks: &[&[u64]]| -> Vec<Vec<Duration>> {
            ticks.iter().map(|ticks| ticks.iter().copied().map(ms).collect()).collect()
        };
        assert_eq!(after(Missed::Burst), in_ms(&[&[0], &[100], &[200, 300, 400], &[500], &[600], &[]]));
        assert_eq!(after(Missed::Skip), in_ms(&[&[0], &[100], &[200], &[500], &[600], &[]]));
        assert_eq!(after(Missed::Delay), in_ms(&[&[0], &[100], &[200], &[], &[552], &[652]]));
    }
}

/// A future of `tick` that is dropped before its tick loses no tick. Promise 2.
#[test]
fn a_dropped_tick_future_loses_no_tick() {
    let (timer, clock) = manual();
    let (mut interval, start) = (timer.interval(ms(10)), timer.now());
    assert_eq!(tick(&mut interval, Waker::noop()), Some(Ok(start)));
    for _ in 0..5 {
        assert_eq!(tick(&mut interval, Waker::noop()), None);
    }
    assert_eq!(timer.stats().pending, 1);
    clock.advance(ms(25));
    assert_eq!(ticks_by_now(&mut interval, &clock, start, false), [ms(10), ms(20)]);
}

/// A period of zero is an error at each `tick`; as a stream it is the last item. Promise 4.
#[test]
fn a_zero_period_is_an_error() {
    let (timer, _clock) = manual();
    let mut interval = timer.interval(Duration::ZERO);
    for _ in 0..2 {
        let error = tick(&mut interval, Waker::noop()).expect("at once").expect_err("no time would pass");
        assert_eq!(error.kind(), ScheduleErrorKind::ZeroPeriod);
    }
    assert!(matches!(next(&mut interval), Poll::Ready(Some(Err(_)))));
    for _ in 0..3 {
        assert_eq!(next(&mut interval), Poll::Ready(None));
    }
}

/// The longest period never ends, and a period near the end of time does not wrap. Promise 4.
#[test]
fn endless_periods_do_not_wrap() {
    let (timer, clock) = manual();
    for period in [Duration::MAX, Duration::from_secs(u64::MAX / 2), 500 * 365 * 24 * HOUR] {
        let mut interval = timer.interval(period);
        assert_eq!(tick(&mut interval, Waker::noop()), Some(Ok(timer.now())));
        assert_eq!(tick(&mut interval, Waker::noop()), None);
        clock.advance(HOUR);
        assert_eq!(tick(&mut interval, Waker::noop()), None);
    }
    let (mut interval, start) = (timer.interval(300 * 365 * 24 * HOUR), timer.now());
    assert_eq!(tick(&mut interval, Waker::noop()), Some(Ok(start)));
    assert_eq!(tick(&mut interval, Waker::noop()), None);
    clock.advance(300 * 365 * 24 * HOUR);
    assert_eq!(tick(&mut interval, Waker::noop()), Some(Ok(start + 300 * 365 * 24 * HOUR)));
    assert_eq!(tick(&mut interval, Waker::noop()), None, "the next is further off than the clock goes");
}

/// A reset moves the next tick; those after it count from there. Promise 1.
#[test]
fn a_reset_moves_the_next_tick() {
    let (timer, clock) = manual();
    let (mut interval, start) = (timer.interval(ms(10)), timer.now());
    assert_eq!(tick(&mut interval, Waker::noop()), Some(Ok(start)));
    let go_to = |interval: &mut Interval, at: u64| {
        clock.advance((start + ms(at)).saturating_duration_since(timer.now() + ms(1)));
        assert!(timer.now() >= start + ms(at) || tick(interval, Waker::noop()).is_none(), "early: {at}");
        clock.advance((start + ms(at)).saturating_duration_since(timer.now()));
        assert_eq!(tick(interval, Waker::noop()), Some(Ok(start + ms(at))));
        assert_eq!(tick(interval, Waker::noop()), None);
    };
    go_to(&mut interval, 10);
    clock.advance(ms(5));
    interval.reset();
    go_to(&mut interval, 25);
    interval.reset_after(ms(3));
    go_to(&mut interval, 28);
    go_to(&mut interval, 38);
    interval.reset_at(start + ms(50));
    go_to(&mut interval, 50);
    clock.advance(ms(4));
    interval.reset_immediately();
    go_to(&mut interval, 54);
    go_to(&mut interval, 64);
    is_balanced(&timer);
}

/// What happens to missed ticks may be changed under way.
#[test]
fn missed_ticks_may_be_treated_otherwise_under_way() {
    let (timer, clock) = manual();
    let (mut interval, start) = (timer.interval(ms(10)), timer.now());
    assert_eq!(interval.missed_tick_behavior(), Missed::Burst);
    clock.advance(ms(35));
    assert_eq!(tick(&mut interval, Waker::noop()), Some(Ok(start)));
    assert_eq!(tick(&mut interval, Waker::noop()), Some(Ok(start + ms(10))));
    interval.set_missed_tick_behavior(Missed::Skip);
    assert_eq!(interval.missed_tick_behavior(), Missed::Skip);
    assert_eq!(tick(&mut interval, Waker::noop()), Some(Ok(start + ms(20))));
    assert_eq!(tick(&mut interval, Waker::noop()), None);
    clock.advance(ms(5));
    assert_eq!(tick(&mut interval, Waker::noop()), Some(Ok(start + ms(40))));
}

/// `poll_tick` is `tick`; the stream is terminated when it has ended.
#[test]
fn an_interval_is_polled_and_is_fused() {
    let (timer, clock) = manual();
    let (mut interval, start) = (timer.interval(ms(10)), timer.now());
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(interval.poll_tick(&mut context), Poll::Ready(Ok(start)));
    assert_eq!(interval.poll_tick(&mut context), Poll::Pending);
    clock.advance(ms(10));
    assert_eq!(interval.poll_tick(&mut context), Poll::Ready(Ok(start + ms(10))));
    assert!(!interval.is_terminated());
    drop(timer.shutdown());
    assert!(matches!(next(&mut interval), Poll::Ready(Some(Err(_)))) && interval.is_terminated());
}

/// Ticks count from the first tick that was asked for, also if that was before the timer's start: a
/// program may note the time before it first uses the global timer.
#[test]
fn an_interval_from_before_the_timers_start_keeps_its_phase() {
    let behaviors = [
        (Missed::Burst, [0, 3, 6, 9, 12]),
        (Missed::Skip, [0, 12, 15, 18, 21]),
        (Missed::Delay, [0, 13, 16, 19, 22]),
    ];
    for (missed, expected) in behaviors {
        for resets in [false, true] {
            let (timer, clock) = manual();
            let start = timer.now() - ms(10);
            let first = if resets { timer.now() + HOUR } else { start };
            let mut interval = timer.interval_at(first, ms(3)).missed(missed);
            if resets {
                interval.reset_at(start);
            }
            for expected in expected.map(ms) {
                let due = clock.run_until_stalled(interval.tick()).expect("it waits for the clock alone");
                assert_eq!(due.expect("the timer is open") - start, expected, "{missed:?}");
            }
        }
    }
}

/// `next` of an interval and of a delay queue is that of the stream, without the stream's trait.
#[test]
fn next_needs_no_trait() {
    mod without_the_trait {
        use shardwheel::*;

        pub(super) async fn next(timer: &Timer, period: std::time::Duration) -> bool {
            let (mut own, mut global) = (timer.interval(period), interval(period));
            let queue = &mut DelayQueue::new(timer);
            queue.insert((), period).expect("it is open");
            queue.next().await.is_some()
                && matches!(own.next().await, Some(Ok(_)))
                && global.next().await.is_some()
        }
    }
    assert!(futures::executor::block_on(without_the_trait::next(&threads(1), ms(1))));
}
