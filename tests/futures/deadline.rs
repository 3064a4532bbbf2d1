//! Deadlines that time limits inherit, and their headers.

use std::future::{Future, pending, poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{
    Clock, Deadline, DeadlineError, ManualClock, TimeoutError, Timer, timeout, timeout_at, timeout_within,
};

use crate::support::{manual, ms, secs};

/// Runs a future that ends, in the scope of a new clock, and says how long it took by that clock.
fn took<F: Future>(future: impl FnOnce() -> F) -> (F::Output, Duration) {
    let clock = ManualClock::new();
    let (output, waiting) = clock.scope(|| clock.run_until_stalled(future()));
    assert_eq!(waiting.pending, 0, "{waiting}");
    (output.expect("the future ends"), clock.elapsed())
}

#[test]
fn no_time_limit_outlives_the_deadline() {
    let limits = |secs| {
        took(move || {
            Deadline::after(ms(500)).scope(async move {
                let first = timeout(Duration::from_secs(secs), pending::<()>()).await;
                let second = timeout_at(Instant::now() + Duration::from_secs(3_600), pending::<()>()).await;
                (first.is_err(), second.is_err())
            })
        })
    };
    assert_eq!(limits(30), ((true, true), ms(500)));
    assert_eq!(limits(u64::MAX), ((true, true), ms(500)));
}

#[test]
fn a_shorter_time_limit_stays_as_it_is() {
    let deadline = || Deadline::after(secs(10)).scope(timeout(ms(200), pending::<()>()));
    assert_eq!(took(deadline).1, ms(200));
    let answer = || Deadline::after(secs(10)).scope(async { timeout(ms(200), ready(7)).await });
    assert_eq!(took(answer), (Ok(7), Duration::ZERO));
}

/// Nor does the slack of a window, or of the timer. A deadline within the window cuts that.
#[test]
fn slack_does_not_outlive_the_deadline() {
    for (window, deadline, ends) in [(50..=3_000, 100, 64..=100), (1_000..=4_000, 100, 100..=100)] {
        let (early, late) = (ms(*window.start()), ms(*window.end()));
        let limited = move || {
            let window = Timer::global().now() + early..=Timer::global().now() + late;
            Deadline::after(ms(deadline)).scope(async { timeout_within(window, pending::<()>()).await })
        };
        let (ended, took) = took(limited);
        assert!(ended.is_err() && (ms(*ends.start())..=ms(*ends.end())).contains(&took), "{took:?}");
    }
    let clock = ManualClock::new();
    let timer = Timer::builder().clock(clock.clone()).slack(secs(3_600)).build().expect("it is valid");
    let deadline = Deadline { at: timer.now() + secs(10) };
    let limited = deadline.sync_scope(|| timer.timeout(secs(30), pending::<()>()));
    assert!(clock.run_until_stalled(limited).expect("it ends").is_err());
    assert_eq!(clock.elapsed(), secs(10));
}

/// A time limit goes by the deadline of the place where it is made.
#[test]
fn a_limit_that_was_made_outside_is_not_changed() {
    let outside = || {
        let limit = timeout(secs(5), pending::<()>());
        Deadline::after(secs(1)).scope(limit)
    };
    assert_eq!(took(outside).1, secs(5));
    let inside = || Deadline::after(secs(1)).sync_scope(|| timeout(secs(5), pending::<()>()));
    assert_eq!(took(inside).1, secs(1));
}

/// Only time limits are limited.
#[test]
fn a_sleep_is_not_changed() {
    assert_eq!(
        took(|| Deadline::after(secs(1)).scope(async { shardwheel::sleep(secs(5)).await })).1,
        secs(5)
    );
}

#[test]
fn a_deadline_that_has_passed_ends_what_is_not_ready() {
    took(|| async {
        let deadline = Deadline::after(ms(10));
        shardwheel::sleep(ms(20)).await;
        let within = async { (timeout(secs(1), pending::<()>()).await, timeout(secs(1), ready(3)).await) };
        let (late, ready) = deadline.scope(within).await;
        assert!(late.is_err());
        assert_eq!((ready, deadline.remaining()), (Ok(3), Duration::ZERO));
    });
}

#[test]
fn of_nested_scopes_the_earlier_deadline_counts() {
    let begin = Instant::now();
    let [early, late] = [1, 2].map(|secs| Deadline { at: begin + Duration::from_secs(secs) });
    for (outer, inner) in [(early, late), (late, early)] {
        outer.sync_scope(|| {
            assert_eq!(Deadline::current(), Some(outer));
            inner.sync_scope(|| assert_eq!(Deadline::current(), Some(early)));
            assert_eq!(Deadline::current(), Some(outer));
        });
        assert_eq!(outer.min(inner), early);
    }
    assert_eq!(Deadline::current(), None);
}

#[test]
fn a_panic_within_leaves_nothing_behind() {
    let outer = Deadline::after(secs(9));
    outer.sync_scope(|| {
        let inner = Deadline::after(secs(1));
        let panics = AssertUnwindSafe(|| inner.sync_scope(|| panic!("on purpose")));
        assert!(catch_unwind(panics).is_err());
        assert_eq!(Deadline::current(), Some(outer));
        let mut future = pin!(inner.scope(poll_fn(|_| -> Poll<()> { panic!("on purpose") })));
        let polls = AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        assert!(catch_unwind(polls).is_err());
        assert_eq!(Deadline::current(), Some(outer));
    });
    assert_eq!(Deadline::current(), None);
}

/// The scope goes with the future, not with the thread.
#[test]
fn a_future_takes_its_deadline_to_another_thread() {
    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }
    let deadline = Deadline::after(secs(60));
    let mut polls = 0;
    let mut future = Box::pin(deadline.scope(poll_fn(move |_| {
        polls += 1;
        assert_eq!(Deadline::current(), Some(deadline));
        if polls == 3 { Poll::Ready(()) } else { Poll::Pending }
    })));
    assert!(poll(future.as_mut()).is_pending());
    assert_eq!(Deadline::current(), None);
    let mut future = thread::spawn(move || {
        assert!(poll(future.as_mut()).is_pending());
        assert_eq!(Deadline::current(), None);
        future
    })
    .join()
    .expect("the thread ends well");
    assert!(poll(future.as_mut()).is_ready());
}

/// The methods of a timer follow the deadline too: by the clock of the timer.
#[test]
fn a_timer_of_ones_own_keeps_the_deadline() {
    let (timer, clock) = manual();
    clock.advance(secs(3_600));
    let deadline = Deadline { at: timer.now() + ms(70) };
    let limited = deadline.scope(async {
        let first = timer.timeout(secs(5), pending::<()>()).await;
        (first, timer.timeout_at(clock.now() + secs(5), pending::<()>()).await)
    });
    let elapsed = Err(TimeoutError::Elapsed);
    assert_eq!(clock.run_until_stalled(limited), Some((elapsed, elapsed)));
    assert_eq!(clock.elapsed(), secs(3_600) + ms(70));
}

/// In a scope that is `by` a timer, limits of that timer's clock go by it, and the rest by the clock of
/// the global timer. In each other, the earlier deadline counts.
#[test]
fn a_deadline_by_a_timer_is_as_far_away_by_each_clock() {
    let (timer, clock) = manual();
    clock.advance(secs(3_600));
    let by = |seconds: u64| Deadline { at: timer.now() + secs(seconds) };
    let took = |deadlines: &[u64], outer: Option<Deadline>| {
        let begin = clock.elapsed();
        let limit = || {
            let left = Deadline::current().expect("there is one").remaining();
            (left, timer.timeout(secs(600), pending::<()>()))
        };
        let inner = || match *deadlines {
            [one] => by(one).sync_scope_by(&timer, limit),
            [first, second] => by(first).sync_scope_by(&timer, || by(second).sync_scope_by(&timer, limit)),
            _ => unreachable!(),
        };
        let (left, limit) = outer.map_or_else(inner, |outer| outer.sync_scope(inner));
        assert_eq!(clock.run_until_stalled(limit), Some(Err(TimeoutError::Elapsed)));
        (left, clock.elapsed() - begin)
    };
    let (left, five) = took(&[5], None);
    assert!(left <= secs(5) && left > secs(2) && five == secs(5), "{left:?} {five:?}");
    for nested in [[5, 9], [9, 5]] {
        let (left, five) = took(&nested, None);
        assert!(left <= secs(5) && five == secs(5), "{nested:?}: {left:?} {five:?}");
    }
    let (left, three) = took(&[9], Some(Deadline::after(secs(3))));
    assert!(left <= secs(3) && three <= secs(3) && three > secs(1), "{left:?} {three:?}");
}

#[test]
fn a_deadline_ends_a_limit_in_real_time() {
    let begin = Instant::now();
    let limited = Deadline::after(ms(20)).scope(async { timeout(secs(600), pending::<()>()).await });
    assert!(futures::executor::block_on(limited).is_err());
    assert!((ms(20)..secs(300)).contains(&begin.elapsed()));
}

/// What is left, rounded down to the finest unit that has at most eight digits.
#[test]
fn headers_never_grant_more_than_is_left() {
    let clock = ManualClock::new();
    let _waiting = clock.scope(|| {
        for (left, header) in [
            (Duration::ZERO, "1n"), // gRPC's values are positive
            (Duration::from_nanos(1), "1n"),
            (Duration::from_nanos(99_999_999), "99999999n"),
            (Duration::from_nanos(100_000_999), "100000u"),
            (secs(10), "10000000u"),
            (Duration::from_nanos(99_999_999_999), "99999999u"),
            (secs(100), "100000m"),
            (secs(99_999) + ms(999), "99999999m"),
            (secs(100_000), "100000S"),
            (secs(100_000_059), "1666667M"),
            (Duration::MAX, "52704000M"),
        ] {
            let deadline = Deadline::after(left);
            assert_eq!(deadline.header(), header, "{left:?}");
            let back = Deadline::parse(&deadline.header()).expect("a header is readable");
            let least = Deadline::after(Duration::from_nanos(1));
            assert!(back <= deadline.max(least), "{left:?}");
            assert!(deadline.remaining().saturating_sub(back.remaining()) < secs(60), "{left:?}");
        }
    });
}

#[test]
fn a_header_is_read_in_each_unit() {
    let clock = ManualClock::new();
    let _waiting = clock.scope(|| {
        for (header, left) in [
            ("1n", Duration::from_nanos(1)),
            ("20u", Duration::from_micros(20)),
            ("300m", ms(300)),
            ("4S", secs(4)),
            ("5M", secs(300)),
            ("6H", secs(21_600)),
            ("00000007S", secs(7)),
            ("0n", Duration::ZERO),
            ("99999999H", Deadline::after(Duration::MAX).remaining()),
        ] {
            assert_eq!(Deadline::parse(header).map(Deadline::remaining), Ok(left), "{header}");
        }
    });
}

#[test]
fn a_bad_header_is_refused_and_shown() {
    for header in [
        "",
        "S",
        "5",
        "5s",
        "5ms",
        "123456789S",
        "-5S",
        "+5S",
        " 5S",
        "5 S",
        "5S ",
        "1.5S",
        "٣S",
        "5Ss",
        "0x5S",
    ] {
        let error = Deadline::parse(header).expect_err(header);
        assert_eq!(error.value, header);
        let text =
            format!("the timeout is {header:?}; it must be 1 to 8 digits and a unit: n, u, m, S, M or H");
        assert_eq!(error.to_string(), text);
    }
    let long = "9".repeat(100_000);
    assert_eq!(Deadline::parse(&long).map_err(|DeadlineError { value, .. }| value.len()), Err(40));
}
