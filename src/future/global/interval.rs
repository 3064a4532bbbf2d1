//! A stream of moments on the global timer.

use std::future::poll_fn;
#[cfg(feature = "stream")]
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

#[cfg(feature = "stream")]
use futures_core::{FusedStream, Stream};

use super::wake_to_try_again;
use crate::future::interval::Interval as TimerInterval;
use crate::timer::Missed;

/// Yields moments one period apart. Made by [`interval`](crate::interval()) and
/// [`interval_at`](crate::interval_at()).
///
/// It is the [`Interval`](crate::Interval) of the global timer, without its errors. As a [`Stream`]
/// it yields the moment at which each tick was due, and never ends.
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct Interval {
    interval: TimerInterval,
}

impl Interval {
    pub(super) fn new(interval: TimerInterval) -> Self {
        Self { interval }
    }

    /// Sets what happens to missed ticks. By default they are made up for.
    pub fn set_missed_tick_behavior(&mut self, missed: Missed) {
        self.interval.set_missed_tick_behavior(missed);
    }

    /// Returns what happens to missed ticks.
    #[must_use]
    pub fn missed_tick_behavior(&self) -> Missed {
        self.interval.missed_tick_behavior()
    }

    /// Returns the time between two ticks.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.interval.period()
    }

    /// Waits for the next tick, and returns the moment at which it was due.
    ///
    /// Cancel-safe: if the returned future is dropped before it resolves, no tick is lost.
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|context| self.poll_tick(context)).await
    }

    /// Waits for the next tick, as the `next` of [`futures::StreamExt`](https://docs.rs/futures)
    /// does.
    #[cfg(feature = "stream")]
    pub async fn next(&mut self) -> Option<Instant> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Polls for the next tick, as [`tick`](Self::tick) waits for it.
    pub fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Instant> {
        match self.interval.poll_tick(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(due)) => Poll::Ready(due),
            // The next poll tries again for the same tick.
            Poll::Ready(Err(_)) => wake_to_try_again(context.waker()),
        }
    }

    /// Makes the next tick come one period from now.
    pub fn reset(&mut self) {
        self.interval.reset();
    }

    /// Makes the next tick come at once.
    pub fn reset_immediately(&mut self) {
        self.interval.reset_immediately();
    }

    /// Makes the next tick come when `delay` has passed from now. Later ticks count from there.
    pub fn reset_after(&mut self, delay: Duration) {
        self.interval.reset_after(delay);
    }

    /// Makes the next tick come at `deadline`. Later ticks count from there.
    pub fn reset_at(&mut self, deadline: Instant) {
        self.interval.reset_at(deadline);
    }
}

#[cfg(feature = "stream")]
impl Stream for Interval {
    type Item = Instant;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Instant>> {
        self.get_mut().poll_tick(context).map(Some)
    }
}

#[cfg(feature = "stream")]
impl FusedStream for Interval {
    /// Always false: the stream does not end.
    fn is_terminated(&self) -> bool {
        false
    }
}
