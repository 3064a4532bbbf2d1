//! The methods of a [`Timer`] that make futures.

use std::future::IntoFuture;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::interval::Interval;
use super::sleep::Sleep;
use super::timeout::Timeout;
use crate::time::{Duration, Instant};
use crate::timer::{Timer, WindowEnd};

impl Timer {
    /// Returns a future that is ready when `duration` has passed from now. A sleep of zero is ready
    /// at its first poll.
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn sleep(&self, duration: Duration) -> Sleep {
        let handle = self.handle();
        Sleep::new(Arc::clone(handle), handle.deadline_after(duration), self.membership())
    }

    /// Returns a future that is ready at `deadline`, by the `Timer`'s clock: see
    /// [`now`](Self::now). If the deadline has passed, the future is ready at its first poll.
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        let handle = self.handle();
        Sleep::new(Arc::clone(handle), handle.time.since_start(deadline), self.membership())
    }

    /// Returns a future that is ready at a time within `window`, both ends included: two instants,
    /// or two durations from now, by the `Timer`'s clock ([`now`](Self::now)). The `Timer` chooses the
    /// time so that sleeps with overlapping windows wake their tasks together, as
    /// [`schedule_within`](Self::schedule_within) does.
    ///
    /// It is never ready before the window, and its task is woken at the end of it at the latest,
    /// or at the first tick after its start if no tick begins within it. If the window has begun at
    /// the first poll, the sleep is ready then. A window of one moment, `at..=at`, is exact to a
    /// tick, also if the `Timer` has a [slack](crate::TimerBuilder::slack).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::Timer;
    /// # use std::future::Future;
    /// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
    ///
    /// let timer = Timer::new()?;
    /// let [early, late] = [20, 50].map(Duration::from_millis);
    /// let begin = timer.now();
    /// block_on(timer.sleep_within(early..=late))?;
    /// assert!(timer.now() >= begin + early);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The sleep resolves to an error if the window ends before it starts:
    /// [`ScheduleErrorKind::WindowEndsBeforeStart`](crate::ScheduleErrorKind::WindowEndsBeforeStart).
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn sleep_within(&self, window: RangeInclusive<impl WindowEnd>) -> Sleep {
        Sleep::within(Arc::clone(self.handle()), window, self.membership())
    }

    /// Limits `future` to `duration` from now.
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn timeout<F: IntoFuture>(&self, duration: Duration, future: F) -> Timeout<F::IntoFuture> {
        Timeout::new(future.into_future(), self.sleep(duration))
    }

    /// Limits `future` to the time until `deadline`, by the `Timer`'s clock.
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn timeout_at<F: IntoFuture>(&self, deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
        Timeout::new(future.into_future(), self.sleep_until(deadline))
    }

    /// Limits `future` to a time within `window`, which the `Timer` chooses: see
    /// [`sleep_within`](Self::sleep_within). The window counts by the `Timer`'s clock.
    ///
    /// # Examples
    ///
    /// A reply may take a second; it does not matter whether it is given up a little later:
    ///
    /// ```
    /// use std::future;
    /// use std::time::Duration;
    /// use shardwheel::{Timer, TimeoutError};
    /// # use std::future::Future;
    /// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
    ///
    /// let timer = Timer::new()?;
    /// let second = Duration::from_secs(1)..=Duration::from_millis(1_050);
    /// let reply = timer.timeout_within(second, future::ready(7));
    /// assert_eq!(block_on(reply), Ok(7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As of [`sleep_within`](Self::sleep_within), in a
    /// [`TimeoutError::Sleep`](crate::TimeoutError::Sleep).
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn timeout_within<F: IntoFuture>(
        &self,
        window: RangeInclusive<impl WindowEnd>,
        future: F,
    ) -> Timeout<F::IntoFuture> {
        Timeout::new(future.into_future(), self.sleep_within(window))
    }

    /// Returns a stream of moments `period` apart. The first comes at once, the second one period
    /// from now. [`interval_at`](Self::interval_at) chooses another first moment.
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn interval(&self, period: Duration) -> Interval {
        let sleep = self.sleep(Duration::ZERO);
        let first = sleep.deadline();
        Interval::new(sleep, first, period)
    }

    /// Returns a stream of moments `period` apart. The first comes at `start`, by the `Timer`'s
    /// clock; if that has passed, at once.
    ///
    /// # Examples
    ///
    /// A stream whose first tick comes after one period:
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::Timer;
    /// # use std::future::Future;
    /// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
    ///
    /// let (timer, period) = (Timer::new()?, Duration::from_millis(10));
    /// let start = timer.now() + period;
    /// let mut interval = timer.interval_at(start, period);
    /// assert_eq!(block_on(interval.tick())?, start);
    /// assert!(timer.now() >= start);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn interval_at(&self, start: Instant, period: Duration) -> Interval {
        Interval::new(self.sleep_until(start), Some(start), period)
    }
}
