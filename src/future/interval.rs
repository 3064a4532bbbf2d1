//! A stream of moments.

use std::future::poll_fn;
use std::ops::Deref;
#[cfg(feature = "stream")]
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

#[cfg(feature = "stream")]
use futures_core::{FusedStream, Stream};

use super::budget;
use super::error::SleepError;
use super::global_shard::GlobalShard;
use super::sleep::Sleep;
use crate::error::ScheduleErrorKind;
use crate::time::{Duration, Instant};
use crate::timer::{Every, Missed, Schedule};
use crate::timer::{NEVER, ShardHandle, nanos};

/// Yields moments one period apart. Made by [`Timer::interval`](crate::Timer::interval), with the
/// first at once, or by [`Timer::interval_at`](crate::Timer::interval_at). The free function
/// [`interval`](crate::interval()) returns a [`global::Interval`](crate::global::Interval).
///
/// As a [`Stream`] it yields the moment at which each tick was due, at a fixed rate. Ticks that
/// were missed because no task polled are made up for, unless [`missed`](Self::missed) chooses
/// otherwise. If the `Timer` refuses a tick, because it is full or the system has no memory, the
/// stream yields that error, and the next poll tries again for the same tick. The stream ends after
/// it has yielded the error of a `Timer` that has been shut down, of a group that was cancelled, or
/// of a period of zero. Of ticks that are ready at once, every 128th gives way to other tasks, as
/// with a [`Sleep`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::Timer;
/// # use std::future::Future;
/// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
///
/// let timer = Timer::builder().build()?;
/// let begin = timer.now();
/// let mut interval = timer.interval(Duration::from_millis(10));
/// block_on(async {
///     for count in 0..3 {
///         let due = interval.tick().await?;
///         assert!(timer.now() - begin >= count * Duration::from_millis(10));
///         assert!(due <= timer.now());
///     }
///     Ok(())
/// })
/// # .map_err(|error: shardwheel::SleepError| error.to_string())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct Interval<H: Deref<Target = ShardHandle> = Arc<ShardHandle>> {
    sleep: Sleep<H>,
    /// When the next tick is due. The sleep's deadline is the same, except that a sleep takes the
    /// `Timer`'s start for a time before it: later ticks would then not count from the caller's
    /// time.
    due: Option<Instant>,
    schedule: Every,
    #[cfg(feature = "stream")]
    ended: bool,
}

impl<H: Deref<Target = ShardHandle>> Interval<H> {
    pub(super) fn new(sleep: Sleep<H>, due: Option<Instant>, period: Duration) -> Self {
        Self {
            sleep,
            due,
            schedule: Every::new(period),
            #[cfg(feature = "stream")]
            ended: false,
        }
    }

    /// Sets how long after it is due a tick may come, so that the `Timer` wakes for it together
    /// with others. Default: the [slack of the `Timer`](crate::TimerBuilder::slack), which is zero
    /// unless it is set.
    ///
    /// No tick comes early, and the interval does not drift: the moments that it yields stay one
    /// period apart. If the slack is longer than the period, several ticks come at a time. It holds
    /// from the next wait on: give it before the first poll.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{ManualClock, Timer};
    ///
    /// let (second, clock) = (Duration::from_secs(1), ManualClock::new());
    /// let timer = Timer::builder().clock(clock.clone()).build()?;
    /// let start = timer.now();
    /// let mut interval = timer.interval(second).slack(second / 10);
    /// for count in 0..3 {
    ///     let due = clock.run_until_stalled(interval.tick()).expect("the clock moves")?;
    ///     assert_eq!(due, start + count * second);
    ///     assert!(timer.now() >= due && timer.now() <= due + second / 10);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn slack(mut self, slack: Duration) -> Self {
        self.sleep.wait.slack = nanos(slack);
        self
    }

    /// Sets what happens to missed ticks.
    pub fn missed(self, missed: Missed) -> Self {
        Self { schedule: self.schedule.missed(missed), ..self }
    }

    /// Sets what happens to missed ticks. By default they are made up for.
    pub fn set_missed_tick_behavior(&mut self, missed: Missed) {
        self.schedule = self.schedule.missed(missed);
    }

    /// Returns what happens to missed ticks.
    #[must_use]
    pub fn missed_tick_behavior(&self) -> Missed {
        self.schedule.missed
    }

    /// Returns the time between two ticks.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.schedule.period()
    }

    /// Waits for the next tick, as the `next` of [`futures::StreamExt`](https://docs.rs/futures)
    /// does.
    #[cfg(feature = "stream")]
    pub async fn next(&mut self) -> Option<<Self as Stream>::Item>
    where
        Self: Stream + Unpin,
    {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Makes the next tick come one period from now.
    pub fn reset(&mut self) {
        self.reset_after(self.period());
    }

    /// Makes the next tick come at once.
    pub fn reset_immediately(&mut self) {
        self.reset_after(Duration::ZERO);
    }

    /// Makes the next tick come when `delay` has passed from now. Later ticks count from there.
    ///
    /// A stream that has ended stays ended.
    pub fn reset_after(&mut self, delay: Duration) {
        self.sleep.reset_after(delay);
        self.due = self.sleep.deadline();
    }

    /// Makes the next tick come at `deadline`, by the clock of the interval's `Timer`. Later ticks
    /// count from there.
    ///
    /// A stream that has ended stays ended.
    pub fn reset_at(&mut self, deadline: Instant) {
        self.wait_until(Some(deadline));
    }

    /// Begins to wait for the next tick, and returns the moment at which the previous one was due.
    fn go_on(&mut self) -> Instant {
        let now = self.sleep.handle.now_instant();
        let due = self.due.unwrap_or(now);
        let next = self.schedule.next_after(due, now);
        self.wait_until(next);
        due
    }

    fn wait_until(&mut self, due: Option<Instant>) {
        let since_start = |due| self.sleep.handle.time.since_start(due);
        self.sleep.reset_to(due.map_or(NEVER, since_start));
        self.due = due;
    }
}

impl Interval {
    /// Waits for the next tick, and returns the moment at which it was due.
    ///
    /// Cancel-safe: if the returned future is dropped before it resolves, no tick is lost.
    ///
    /// # Errors
    ///
    /// [`SleepError`], if the `Timer` has been shut down or refuses another sleep, the interval's
    /// [`Group`](crate::Group) was cancelled, or the period is zero. After a refusal the next call
    /// waits for the same tick. After the end of the `Timer` or the group no tick comes, not even
    /// one that was missed before.
    pub async fn tick(&mut self) -> Result<Instant, SleepError> {
        poll_fn(|context| self.poll_tick(context)).await
    }

    /// Polls for the next tick, as [`tick`](Self::tick) waits for it.
    ///
    /// # Errors
    ///
    /// As [`tick`](Self::tick).
    pub fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Result<Instant, SleepError>> {
        if self.period().is_zero() {
            ready!(budget::spend(context.waker()));
            return Poll::Ready(Err(SleepError::new(ScheduleErrorKind::ZeroPeriod)));
        }
        let poll = self.sleep.poll_sleep(context.waker());
        // A tick that has passed asks no timer, so it may come after the end.
        poll.map(|ended| match ended.and_then(|()| self.sleep.wait.ending(&self.sleep.handle)) {
            Ok(()) => Ok(self.go_on()),
            Err(error) => {
                if !is_final(error) {
                    self.sleep.wait.try_again();
                }
                Err(error)
            }
        })
    }
}

impl Interval<GlobalShard> {
    /// Waits for the next tick, and returns the moment at which it was due.
    ///
    /// Cancel-safe: if the returned future is dropped before it resolves, no tick is lost.
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|context| self.poll_tick(context)).await
    }

    /// Polls for the next tick, as [`tick`](Self::tick) waits for it.
    pub fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Instant> {
        self.sleep.poll_global(context.waker()).map(|()| self.go_on())
    }
}

#[cfg(feature = "stream")]
impl Stream for Interval {
    type Item = Result<Instant, SleepError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if this.ended {
            return Poll::Ready(None);
        }
        this.poll_tick(context).map(|tick| {
            this.ended = tick.is_err_and(is_final);
            Some(tick)
        })
    }
}

#[cfg(feature = "stream")]
impl Stream for Interval<GlobalShard> {
    type Item = Instant;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Instant>> {
        self.get_mut().poll_tick(context).map(Some)
    }
}

#[cfg(feature = "stream")]
impl<H: Deref<Target = ShardHandle>> FusedStream for Interval<H>
where
    Self: Stream,
{
    /// Whether the stream has ended. One on the global timer never ends.
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

/// Whether no tick follows that error. A refusal is not final.
fn is_final(error: SleepError) -> bool {
    use ScheduleErrorKind::{Cancelled, ShutDown, ZeroPeriod};
    matches!(error.kind(), ShutDown | Cancelled | ZeroPeriod)
}
