//! The global timer, and the functions on it. All in real time: the timer is the process's own.

use std::future;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use futures::future::FusedFuture;
use futures::stream::{FusedStream, StreamExt};
use shardwheel::{Elapsed, Missed, Timer, interval, interval_at, sleep, sleep_until, timeout, timeout_at};

use crate::support::{HOUR, after, hear, in_time, is_pending, ms, ready};

/// All threads get the same timer.
#[test]
fn there_is_one_global_timer() {
    let threads: Vec<_> =
        (0..8).map(|_| thread::spawn(|| std::ptr::from_ref(Timer::global()).addr())).collect();
    let ours = std::ptr::from_ref(Timer::try_global().expect("it can be made")).addr();
    assert!(threads.into_iter().all(|thread| thread.join().expect("no panic") == ours));
}

/// A shutdown of the global timer, or of a clone, returns nothing and changes nothing. Promise 8.
#[test]
fn the_global_timer_is_not_shut_down() {
    let (sender, receiver) = mpsc::channel();
    let waits = Timer::global().schedule_after(HOUR, || ()).expect("it is open");
    let mut pending = sleep(HOUR);
    is_pending(&mut pending, Waker::noop());
    assert_eq!(Timer::global().shutdown().count(), 0);
    assert_eq!(Timer::global().clone().shutdown().count(), 0);
    assert!(Timer::global().cancel(waits));
    is_pending(&mut pending, Waker::noop());
    Timer::global()
        .schedule_after(ms(1), move || sender.send(()).expect("the test waits"))
        .expect("it is open");
    hear(&receiver);
    // Another timer is.
    let other = Timer::new().expect("the defaults are valid");
    after(&other, HOUR, || ());
    assert_eq!(other.shutdown().count(), 1);
}

/// Sleeps are not early, and have the output `()`. Promise 1.
#[test]
fn global_sleeps_are_never_early() {
    in_time(|| {
        for length in [0, 1, 5, 20].map(ms) {
            let begin = Instant::now();
            let () = block_on(sleep(length));
            assert!(begin.elapsed() >= length);
            let deadline = Instant::now() + length;
            let () = block_on(sleep_until(deadline));
            assert!(Instant::now() >= deadline);
        }
    });
}

/// A sleep of zero, and one whose deadline has passed, is ready at its first poll. Promise 1.
#[test]
fn a_global_sleep_that_is_over_is_ready_at_once() {
    for _ in 0..1_000 {
        ready(&mut sleep(Duration::ZERO));
        ready(&mut sleep_until(Instant::now()));
    }
    let mut late = sleep(ms(2));
    thread::sleep(ms(2));
    assert!(late.is_elapsed());
    ready(&mut late);
    assert!(late.is_terminated() && late.is_elapsed());
}

/// A limit yields the future's output, or `Elapsed`, an error that is `TimedOut`. Promise 2.
#[test]
fn a_global_timeout_yields_the_output_or_elapsed() {
    in_time(|| {
        assert_eq!(block_on(timeout(HOUR, async { 5 })), Ok(5));
        assert_eq!(block_on(timeout(Duration::ZERO, future::ready(5))), Ok(5));
        let begin = Instant::now();
        let elapsed: Elapsed = block_on(timeout(ms(5), future::pending::<u8>())).expect_err("it never ends");
        assert!(begin.elapsed() >= ms(5));
        assert_eq!(std::io::Error::from(elapsed).kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(elapsed.to_string(), "the time is over");
        let mut past = timeout_at(Instant::now(), future::pending::<u8>());
        assert!(ready(&mut past).is_err() && past.is_terminated());
        // `?` works into an error of input and output.
        let read = || -> std::io::Result<u8> { Ok(block_on(timeout(ms(1), future::pending::<u8>()))?) };
        assert_eq!(read().expect_err("it never ends").kind(), std::io::ErrorKind::TimedOut);
    });
}

/// Ticks come one period apart, the first at once, or at the start. Promise 1.
#[test]
fn a_global_interval_ticks() {
    in_time(|| {
        let begin = Instant::now();
        let mut ticks = interval(ms(5));
        assert_eq!(ticks.period(), ms(5));
        let first: Instant = block_on(ticks.tick());
        assert!(first >= begin && Instant::now() >= first);
        assert_eq!(block_on(ticks.tick()), first + ms(5));
        assert_eq!(block_on(ticks.next()), Some(first + ms(10)));
        assert!(!ticks.is_terminated());
        ticks.set_missed_tick_behavior(Missed::Skip);
        assert_eq!(ticks.missed_tick_behavior(), Missed::Skip);
        ticks.reset_after(HOUR);
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(ticks.poll_tick(&mut context), Poll::Pending);
        ticks.reset_immediately();
        assert!(ticks.poll_tick(&mut context).is_ready());
        ticks.reset();
        assert!(Pin::new(&mut ticks).poll_next_unpin(&mut context).is_pending());
        let start = Instant::now();
        ticks.reset_at(start);
        assert_eq!(block_on(ticks.tick()), start);
        let mut hours = interval(HOUR);
        assert!(matches!(hours.poll_tick(&mut context), Poll::Ready(first) if first >= start));
        assert_eq!(hours.poll_tick(&mut context), Poll::Pending);
        let mut at_once = interval_at(start, HOUR);
        assert_eq!(at_once.poll_tick(&mut context), Poll::Ready(start));
        assert_eq!(at_once.poll_tick(&mut context), Poll::Pending);
    });
}

/// A period of zero has no ticks; the message says so.
#[test]
fn a_global_interval_of_zero_panics() {
    for make in [|| drop(interval(Duration::ZERO)), || drop(interval_at(Instant::now(), Duration::ZERO))] {
        let panic = std::panic::catch_unwind(make).expect_err("there is no such interval");
        let message = panic.downcast_ref::<&str>().expect("a text");
        assert!(message.contains("at least 1 ns"), "{message}");
    }
}
