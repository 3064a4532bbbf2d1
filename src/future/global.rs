//! Functions that wait on the [global `Timer`](crate::Timer::global), and the futures that they
//! return.
//!
//! They have the names and the results of `tokio::time`, and need no runtime: any executor may poll
//! them. The functions are in the root of the crate, too.
//!
//! The global `Timer` has no bound and is never shut down, so these futures have no errors of the
//! `Timer`. One reason for a refusal is left: the system gives no memory for another timer. The
//! future then wakes its task at once and tries again at the next poll, until there is memory or
//! its deadline has passed. It is late then, but it is neither lost nor early.
//!
//! # Examples
//!
//! ```
//! use std::time::Duration;
//! use shardwheel::{now, sleep, timeout};
//! # use std::future::Future;
//! # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
//!
//! block_on(async {
//!     let begin = now();
//!     sleep(Duration::from_millis(10)).await;
//!     assert!(now() - begin >= Duration::from_millis(10));
//!     assert_eq!(timeout(Duration::from_secs(60), async { 5 }).await, Ok(5));
//! });
//! ```

use std::future::IntoFuture;
use std::ops::RangeInclusive;

pub use super::global_shard::GlobalShard;
use crate::time::{Duration, Instant};
use crate::timer::{Inherited, WindowEnd};

/// Waits until a deadline, on any executor. Made by [`sleep`](crate::sleep()) and
/// [`sleep_until`](crate::sleep_until()).
///
/// It is the [`Sleep`](crate::Sleep) of the global `Timer`, with the output `()`.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::sleep;
/// # use std::future::Future;
/// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
///
/// let mut idle = sleep(Duration::from_secs(60));
/// idle.reset_after(Duration::from_millis(5));
/// block_on(idle);
/// ```
pub type Sleep = super::sleep::Sleep<GlobalShard>;

/// Yields moments one period apart. Made by [`interval`](crate::interval()) and
/// [`interval_at`](crate::interval_at()).
///
/// It is the [`Interval`](crate::Interval) of the global `Timer`, without its errors. As a stream
/// it yields the moment at which each tick was due, and never ends.
pub type Interval = super::interval::Interval<GlobalShard>;

/// Limits the time of a future. Made by [`timeout`](crate::timeout()) and
/// [`timeout_at`](crate::timeout_at()).
///
/// It is the [`Timeout`](crate::Timeout) of the global `Timer`: its error is
/// [`Elapsed`](crate::Elapsed).
pub type Timeout<F> = super::timeout::Timeout<F, Sleep>;

/// Returns the time by which the functions of the crate go here: the system's, or within the
/// [scope](crate::ManualClock::scope) of a manual clock that clock's.
///
/// The deadlines that these functions take are times of this clock. A deadline that is computed
/// from [`Instant::now`] is wrong in a scope whose clock has been moved. The time by a `Timer` of
/// your own is [`Timer::now`](crate::Timer::now).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::{ManualClock, now, sleep_until};
///
/// async fn an_hour() -> Duration {
///     let begin = now();
///     sleep_until(begin + Duration::from_secs(3600)).await;
///     now() - begin
/// }
///
/// let clock = ManualClock::new();
/// let (passed, _) = clock.scope(|| clock.run_until_stalled(an_hour()));
/// assert_eq!(passed, Some(Duration::from_secs(3600)));
/// ```
///
/// # Performance
///
/// One reading of the clock, and of a thread-local. It makes no `Timer` and keeps none.
#[must_use]
pub fn now() -> Instant {
    Inherited::current().now()
}

/// Returns a future that is ready when `duration` has passed from now. A sleep of zero is ready at
/// its first poll.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::now;
/// # use std::future::Future;
/// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
///
/// let begin = now();
/// block_on(shardwheel::sleep(Duration::from_millis(10)));
/// assert!(now() - begin >= Duration::from_millis(10));
/// ```
///
/// # Panics
///
/// If the [global `Timer`](crate::Timer::global) cannot be made.
///
/// # Performance
///
/// As a sleep of a [`Timer`](crate::Timer), without the two atomic operations that count a sleep's
/// reference to its shard.
#[cfg_attr(feature = "introspect", track_caller)]
pub fn sleep(duration: Duration) -> Sleep {
    let shard = GlobalShard::current();
    let deadline = shard.deadline_after(duration);
    Sleep::new(shard, deadline, None)
}

/// Returns a future that is ready at `deadline`, by the clock of [`now`]. If the deadline has
/// passed, the future is ready at its first poll.
///
/// # Panics
///
/// If the [global `Timer`](crate::Timer::global) cannot be made.
#[cfg_attr(feature = "introspect", track_caller)]
pub fn sleep_until(deadline: Instant) -> Sleep {
    let shard = GlobalShard::current();
    let deadline = shard.time.since_start(deadline);
    Sleep::new(shard, deadline, None)
}

/// Returns a future that is ready at a time within `window`, both ends included: two instants, or
/// two durations from now, by the clock of [`now`]. The `Timer` chooses the time so that sleeps with
/// overlapping windows wake their tasks together: see
/// [`Timer::sleep_within`](crate::Timer::sleep_within).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::now;
/// # use std::future::Future;
/// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
///
/// let (begin, early) = (now(), Duration::from_millis(10));
/// block_on(shardwheel::sleep_within(early..=Duration::from_millis(40)));
/// assert!(now() - begin >= early);
/// ```
///
/// # Panics
///
/// If the window ends before it starts, or the [global `Timer`](crate::Timer::global) cannot be
/// made.
#[track_caller]
pub fn sleep_within(window: RangeInclusive<impl WindowEnd>) -> Sleep {
    let shard = GlobalShard::current();
    if let Err(kind) = shard.window(window.clone()) {
        panic!("{kind}");
    }
    Sleep::within(shard, window, None)
}

/// Limits `future` to `duration` from now.
///
/// Each poll polls the future before the time limit, so a future that is ready in time never times
/// out.
///
/// # Examples
///
/// ```
/// use std::future;
/// use std::time::Duration;
/// use shardwheel::timeout;
/// # use std::future::Future;
/// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
///
/// let limit = Duration::from_millis(10);
/// assert_eq!(block_on(timeout(limit, future::ready(5))), Ok(5));
/// assert!(block_on(timeout(limit, future::pending::<u8>())).is_err());
/// ```
///
/// # Errors
///
/// The future resolves to [`Elapsed`](crate::Elapsed) if the time limit passes first.
///
/// # Panics
///
/// If the [global `Timer`](crate::Timer::global) cannot be made.
#[inline]
#[cfg_attr(feature = "introspect", track_caller)]
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout::new(future.into_future(), sleep(duration))
}

/// Limits `future` to the time until `deadline`, by the clock of [`now`]; as [`timeout()`].
///
/// # Errors
///
/// The future resolves to [`Elapsed`](crate::Elapsed) if the deadline passes first.
///
/// # Panics
///
/// If the [global `Timer`](crate::Timer::global) cannot be made.
#[inline]
#[cfg_attr(feature = "introspect", track_caller)]
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    Timeout::new(future.into_future(), sleep_until(deadline))
}

/// Limits `future` to a time within `window`, which the `Timer` chooses: see [`sleep_within`]; as
/// [`timeout()`]. The window counts by the clock of [`now`].
///
/// # Errors
///
/// The future resolves to [`Elapsed`](crate::Elapsed) if that time comes first.
///
/// # Panics
///
/// As [`sleep_within`].
#[inline]
#[track_caller]
pub fn timeout_within<F: IntoFuture>(
    window: RangeInclusive<impl WindowEnd>,
    future: F,
) -> Timeout<F::IntoFuture> {
    Timeout::new(future.into_future(), sleep_within(window))
}

/// Returns a stream of moments `period` apart. The first comes at once, the second one period from
/// now. [`interval_at`] chooses another first moment.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
/// use shardwheel::{interval, now};
/// # use std::future::Future;
/// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
///
/// let begin = now();
/// let mut interval = interval(Duration::from_millis(5));
/// block_on(async {
///     for count in 0..3 {
///         let due: Instant = interval.tick().await;
///         assert!(now() - begin >= count * Duration::from_millis(5));
///         assert!(due <= now());
///     }
/// });
/// ```
///
/// # Panics
///
/// If the period is zero, or the [global `Timer`](crate::Timer::global) cannot be made.
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    check(period);
    let sleep = sleep(Duration::ZERO);
    let first = sleep.deadline();
    Interval::new(sleep, first, period)
}

/// Returns a stream of moments `period` apart. The first comes at `start`, by the clock of [`now`];
/// if that has passed, at once.
///
/// # Panics
///
/// If the period is zero, or the [global `Timer`](crate::Timer::global) cannot be made.
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    check(period);
    Interval::new(sleep_until(start), Some(start), period)
}

#[track_caller]
fn check(period: Duration) {
    assert!(!period.is_zero(), "the period is 0 ns; it must be at least 1 ns");
}
