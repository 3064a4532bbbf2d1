//! The waker of a sleep changes, or a sleep or a tick is refused: the deadline alone decides.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use futures::Stream;
use shardwheel::{Sleep, SleepError, Timer};

use crate::support::{Count, HOUR, To, after, by_hand, hooked, manual, ms, poll, threads};

/// A waker that runs `act` when it is cloned, and the count of its wakes.
fn at_clone(act: impl Fn() + Send + Sync + 'static) -> (Waker, Count) {
    let rings = Count::default();
    let count = rings.clone();
    let waker = hooked(move |to| match to {
        To::Clone => act(),
        To::Wake => count.one(),
        To::Drop => (),
    });
    (waker, rings)
}

/// A sleep that was polled once and is pending.
fn begun(timer: &Timer) -> Sleep {
    let mut sleep = timer.sleep(HOUR);
    assert!(poll(&mut sleep, Waker::noop()).is_pending());
    sleep
}

/// The waker's clone schedules another timer, which must not get the sleep's place. Promise 7.
#[test]
fn a_sleep_keeps_its_place_while_its_waker_changes() {
    let (timer, clock) = by_hand(Timer::builder().max_pending(1));
    let mut sleep = begun(&timer);
    let other = timer.clone();
    let (waker, rings) = at_clone(move || {
        assert!(other.schedule_after(HOUR, || ()).is_err(), "the other timer got the place")
    });
    let polled = catch_unwind(AssertUnwindSafe(|| poll(&mut sleep, &waker)));
    assert!(polled.is_ok_and(|polled| polled.is_pending()));
    clock.advance(HOUR);
    assert_eq!((rings.get(), poll(&mut sleep, &waker)), (1, Poll::Ready(Ok(()))));
}

/// The waker's clone moves the clock past the deadline. Promise 1.
#[test]
fn a_sleep_is_ready_if_its_deadline_passes_while_its_waker_changes() {
    let (timer, clock) = manual();
    let mut sleep = begun(&timer);
    let (waker, _) = at_clone(move || clock.advance(HOUR));
    if poll(&mut sleep, &waker).is_pending() {
        assert_eq!(poll(&mut sleep, &waker), Poll::Ready(Ok(())), "it waits for the clock's next move");
    }
}

/// The clone of a new waker panics: the sleep goes on with its former waker. Promises 1 and 7.
#[test]
fn a_sleep_keeps_its_waker_if_the_clone_of_a_new_one_panics() {
    for (timer, clock) in
        [manual()].map(|(timer, clock)| (timer, Some(clock))).into_iter().chain([(threads(1), None)])
    {
        let (waker, rings) = at_clone(|| ());
        let mut sleep = timer.sleep(HOUR);
        assert!(poll(&mut sleep, &waker).is_pending());
        let (panics, _) = at_clone(|| panic!("a clone panics"));
        assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut sleep, &panics))).is_err());
        assert!(!sleep.is_elapsed());
        assert_eq!(poll(&mut sleep, &waker), Poll::Pending, "an hour early");
        if let Some(clock) = clock {
            clock.advance(HOUR);
            assert_eq!((rings.get(), poll(&mut sleep, &waker)), (1, Poll::Ready(Ok(()))));
        }
    }
}

/// After a refusal the interval ticks on when there is room, also as a stream, which yields the refusal.
/// A shutdown ends both.
#[test]
fn an_interval_goes_on_after_a_refusal() {
    for is_stream in [false, true] {
        let (timer, clock) = by_hand(Timer::builder().max_pending(1));
        let occupant = after(&timer, 2 * HOUR, || ());
        let mut interval = timer.interval_at(timer.now() + ms(10), ms(10));
        let mut next = || {
            let mut context = Context::from_waker(Waker::noop());
            if is_stream {
                return Pin::new(&mut interval).poll_next(&mut context);
            }
            pin!(interval.tick()).poll(&mut context).map(Some)
        };
        for _ in 0..2 {
            assert!(matches!(next(), Poll::Ready(Some(Err(error))) if error.is_full()));
        }
        assert!(timer.cancel(occupant));
        assert!(next().is_pending());
        clock.advance(ms(20));
        let due = timer.now() - ms(10);
        assert!(matches!(next(), Poll::Ready(Some(Ok(tick))) if tick == due), "no tick is lost");
        assert_eq!(timer.shutdown().len(), 0);
        while matches!(next(), Poll::Ready(Some(Ok(_)))) {}
        let ended = |next| match next {
            Poll::Ready(None) => is_stream,
            Poll::Ready(Some(Err(error))) => !is_stream && SleepError::is_shut_down(&error),
            _ => false,
        };
        assert!(ended(next()), "that is an end");
    }
}

/// `is_elapsed` goes by the clock, also after the sleep was refused, or its timer shut down.
#[test]
fn is_elapsed_goes_by_the_clock_after_a_refusal() {
    let (timer, clock) = by_hand(Timer::builder().max_pending(1));
    let mut waiting = begun(&timer);
    let mut refused = timer.sleep(HOUR);
    assert!(matches!(poll(&mut refused, Waker::noop()), Poll::Ready(Err(error)) if error.is_full()));
    assert!(!refused.is_elapsed() && !waiting.is_elapsed());
    drop(timer.shutdown());
    assert!(!waiting.is_elapsed(), "shut down, before it is polled");
    assert!(matches!(poll(&mut waiting, Waker::noop()), Poll::Ready(Err(error)) if error.is_shut_down()));
    assert!(!waiting.is_elapsed(), "shut down");
    clock.advance(HOUR);
    assert!(refused.is_elapsed() && waiting.is_elapsed());
}
