//! A future with a time limit, polled by hand.

use std::error::Error;
use std::future::{self};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Waker;

use futures::channel::oneshot;
use futures::future::FusedFuture;
use shardwheel::{TimeoutError, Timer};

use crate::support::{Bell, HOUR, by_hand, is_balanced, is_pending, manual, ms, ready};

/// The future is ready first: the timeout returns its output, and its limit leaves the timer when
/// the timeout is dropped. Promise 2.
#[test]
fn a_timeout_returns_the_output_of_a_future_ready_in_time() {
    let (timer, clock) = manual();
    let (bell, waker) = Bell::new();
    let (send, receive) = oneshot::channel();
    let mut timeout = timer.timeout(ms(10), receive);
    is_pending(&mut timeout, &waker);
    clock.advance(ms(9));
    send.send(5).expect("the other thread waits");
    assert_eq!((bell.rings(), ready(&mut timeout)), (1, Ok(Ok(5))));
    drop(timeout);
    assert_eq!((timer.stats().pending, timer.stats().cancelled), (0, 1));
    is_balanced(&timer);
}

/// The limit ends first, not early, and the caller can take the future out. Promises 1 and 2.
#[test]
fn a_timeout_ends_at_its_limit_and_keeps_the_future() {
    let (timer, clock) = manual();
    let (bell, waker) = Bell::new();
    let mut timeout = timer.timeout(ms(10), future::pending::<()>());
    is_pending(&mut timeout, &waker);
    clock.advance(ms(9));
    is_pending(&mut timeout, &waker);
    clock.advance(ms(1));
    assert_eq!(bell.rings(), 1);
    let error = ready(&mut timeout).expect_err("the time is over");
    assert!(error.is_elapsed() && error == TimeoutError::Elapsed);
    assert_eq!(error.to_string(), "the time is over");
    let _future: future::Pending<()> = timeout.into_inner();
    is_balanced(&timer);
}

/// If both are ready the future wins, as it is polled first. Promise 2.
#[test]
fn the_future_wins_if_both_are_ready() {
    let (timer, clock) = manual();
    let (send, receive) = oneshot::channel();
    let mut timeout = timer.timeout(ms(10), receive);
    is_pending(&mut timeout, Waker::noop());
    clock.advance(ms(10));
    send.send(5).expect("the other thread waits");
    assert_eq!(ready(&mut timeout), Ok(Ok(5)));

    let mut inner = timer.timeout(ms(10), timer.sleep(ms(10)));
    is_pending(&mut inner, Waker::noop());
    clock.advance(ms(10));
    assert_eq!(ready(&mut inner), Ok(Ok(())));
    let mut late = timer.timeout(ms(0), future::ready(1));
    clock.advance(HOUR);
    assert_eq!(ready(&mut late), Ok(1));
    is_balanced(&timer);
}

/// A dropped timeout drops the future and the limit. The future need not be `Unpin`, and the limit
/// may be an instant. Promises 2 and 5.
#[test]
fn a_dropped_timeout_drops_its_future_and_its_limit() {
    let (timer, clock) = manual();
    let held = Arc::new(());
    let share = Arc::clone(&held);
    let body = async move {
        let _share = share;
        future::pending::<()>().await;
    };
    {
        let mut timeout = pin!(timer.timeout_at(timer.now() + ms(10), body));
        is_pending(&mut timeout.as_mut(), Waker::noop());
        assert_eq!((timer.stats().pending, Arc::strong_count(&held)), (1, 2));
    }
    assert_eq!((timer.stats().pending, Arc::strong_count(&held)), (0, 1));
    let mut timeout = pin!(timer.timeout_at(timer.now() + ms(10), async { future::pending::<()>().await }));
    is_pending(&mut timeout.as_mut(), Waker::noop());
    clock.advance(ms(10));
    assert_eq!(ready(&mut timeout.as_mut()), Err(TimeoutError::Elapsed));
    is_balanced(&timer);
}

/// If the timer refuses the limit the timeout returns an error with its source; the future is
/// polled first. Promises 5 and 8.
#[test]
fn a_refused_limit_is_an_error_with_a_source() {
    let (timer, clock) = by_hand(Timer::builder().max_pending(1));
    let mut first = timer.sleep(HOUR);
    is_pending(&mut first, Waker::noop());
    assert_eq!(ready(&mut timer.timeout(ms(10), future::ready(1))), Ok(1));
    let error = ready(&mut timer.timeout(ms(10), future::pending::<()>())).expect_err("no room for two");
    assert!(matches!(error, TimeoutError::Sleep(sleep) if sleep.is_full()) && !error.is_elapsed());
    assert!(std::error::Error::source(&error).is_some());
    drop(timer.shutdown());
    let error =
        ready(&mut timer.timeout(ms(10), future::pending::<()>())).expect_err("the timer is shut down");
    assert!(matches!(error, TimeoutError::Sleep(sleep) if sleep.is_shut_down()));
    drop(clock);
}

/// A limit takes what becomes a future. A sleep and a timeout say when they have resolved.
#[test]
fn a_limit_takes_what_becomes_a_future_and_is_fused() {
    struct Five;
    impl future::IntoFuture for Five {
        type Output = u8;
        type IntoFuture = future::Ready<u8>;

        fn into_future(self) -> future::Ready<u8> {
            future::ready(5)
        }
    }
    let (timer, clock) = manual();
    assert_eq!(ready(&mut timer.timeout(ms(10), Five)), Ok(5));
    assert_eq!(timer.stats().scheduled, 0, "what is ready at once needs no timer");
    assert_eq!(ready(&mut timer.timeout_at(timer.now(), Five)), Ok(5));
    let (mut sleep, mut timeout) = (timer.sleep(ms(10)), timer.timeout(ms(10), future::pending::<()>()));
    is_pending(&mut sleep, Waker::noop());
    is_pending(&mut timeout, Waker::noop());
    assert!(!sleep.is_terminated() && !timeout.is_terminated());
    clock.advance(ms(10));
    assert!(ready(&mut sleep).is_ok() && ready(&mut timeout).is_err());
    assert!(sleep.is_terminated() && timeout.is_terminated());
    sleep.reset(timer.now() + ms(1));
    assert!(!sleep.is_terminated());
}

/// As an error of input and output, a limit that has passed is `TimedOut`; one that was refused is
/// not.
#[test]
fn a_timeout_error_becomes_one_of_input_and_output() {
    let passed = io::Error::from(TimeoutError::Elapsed);
    assert_eq!((passed.kind(), passed.to_string()), (io::ErrorKind::TimedOut, "the time is over".into()));
    let (timer, _clock) = manual();
    drop(timer.shutdown());
    let refused = ready(&mut timer.timeout(ms(10), future::pending::<()>())).expect_err("it is shut down");
    let refused = io::Error::from(refused);
    assert_eq!(refused.kind(), io::ErrorKind::Other);
    let (message, reason) = (refused.to_string(), refused.source().expect("the reason").to_string());
    for part in ["the timer of this time limit has ended", "keep a handle", "use the global timer"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(reason.contains("was shut down, or its last handle"), "{reason}");
}

/// The future can be accessed while the timeout waits.
#[test]
fn the_future_of_a_timeout_is_accessible() {
    let (timer, _clock) = manual();
    let mut timeout = timer.timeout(ms(10), future::ready(3));
    assert!(format!("{:?}", timeout.get_ref()).contains('3'));
    *timeout.get_mut() = future::ready(4);
    assert_eq!(ready(&mut timeout), Ok(4));
    assert!(format!("{timeout:?}").contains("Sleep"));
}
