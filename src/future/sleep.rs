//! A future that waits until a deadline.

use std::fmt;
use std::future::Future;
use std::ops::{Deref, RangeInclusive};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

#[cfg(feature = "stream")]
use futures_core::FusedFuture;

use super::error::SleepError;
use super::global_shard::GlobalShard;
use super::wait::Wait;
use crate::time::{Duration, Instant};
use crate::timer::{Membership, NEVER, Nanos, ShardHandle, Timer, WindowEnd};

/// Waits until a deadline, on any executor. Made by [`Timer::sleep`](crate::Timer::sleep).
/// The free function [`sleep`](crate::sleep()) returns a
/// [`global::Sleep`](crate::global::Sleep), which has another `H`: it does not count its use of the
/// global `Timer`'s shard.
///
/// The first poll schedules a timer, and dropping the sleep cancels it. A sleep whose deadline has
/// passed is ready at its first poll. The sleep resolves to an error if the
/// [`Timer`] is shut down before the deadline, or refuses the timer, or the
/// sleep's [`Group`](crate::Group) is cancelled.
///
/// So that a task whose sleeps are all ready returns to its executor now and then, every 128th such
/// answer on a thread is pending first: it wakes the task at once, and the next poll is ready.
///
/// A sleep is [`Unpin`]: it can be polled, reset and stored without a pin. Once it has resolved,
/// further polls return the same result.
///
/// The thread of the `Timer` wakes the task, so the executor's wakers have to work on other threads.
/// monoio's do with its feature `sync`; without, the wake of a task panics
/// ([`on_panic`](crate::TimerBuilder::on_panic), [`Stats`](crate::Stats)), that of `block_on`'s own
/// future has no effect, and the sleep never ends. `LocalTimer` of shardwheel-compat does not need it.
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
/// block_on(timer.sleep(Duration::from_millis(20)))?;
/// assert!(timer.now() - begin >= Duration::from_millis(20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Performance
///
/// O(1), lock-free: the first poll, a poll with another waker, a reset and a drop. None of them
/// allocates, except where the shard grows, and usually when a thread uses the shard for the first
/// time. A poll with the same waker changes nothing.
#[must_use = "futures do nothing unless polled"]
pub struct Sleep<H: Deref<Target = ShardHandle> = Arc<ShardHandle>> {
    pub(super) handle: H,
    pub(super) wait: Wait,
}

impl<H: Deref<Target = ShardHandle>> Sleep<H> {
    #[inline]
    #[cfg_attr(feature = "introspect", track_caller)]
    pub(super) fn new(handle: H, deadline: Nanos, membership: Option<Box<Membership>>) -> Self {
        let wait = Wait::new(deadline, handle.time.slack, handle.tag_here(), membership);
        Self { handle, wait }
    }

    #[cfg_attr(feature = "introspect", track_caller)]
    pub(super) fn within(
        handle: H,
        window: RangeInclusive<impl WindowEnd>,
        membership: Option<Box<Membership>>,
    ) -> Self {
        let (tag, window) = (handle.tag_here(), handle.window(window));
        let wait = window.map(|(start, slack)| Wait::new(start, slack, tag, membership));
        Self { wait: wait.unwrap_or_else(Wait::refused), handle }
    }

    /// Returns the deadline, or the start of the `Timer` if it is before that. `None` if it is
    /// further away than the system's clock can represent. Of a sleep with a window or a slack it
    /// is the earliest time.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.wait.deadline(&self.handle)
    }

    /// Returns the time until the deadline, by the clock of the sleep's `Timer`: zero if it has
    /// passed, [`Duration::MAX`] if it never comes.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        let left = |deadline: Nanos| Duration::from_nanos(deadline.saturating_sub(self.handle.now()));
        if self.wait.deadline == NEVER { Duration::MAX } else { left(self.wait.deadline) }
    }

    /// Returns whether the sleep is over: its next poll is ready.
    ///
    /// A sleep that waits is over once its timer has fired. For any other sleep, and for one whose
    /// `Timer` has been shut down, the clock decides. Between two resets, the answer never returns
    /// to false. (A user's [`Clock`](crate::Clock) that is set back may make it false again before
    /// the first poll.)
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        self.wait.is_elapsed(&self.handle)
    }

    /// Gives the sleep another deadline, whether it has resolved or not. The task that last polled
    /// a waiting sleep is woken for the new deadline; a sleep that has resolved must be polled
    /// again. If the new deadline has passed, the next poll is ready. A sleep with a window or a
    /// slack keeps its length: the window begins at the new deadline.
    ///
    /// The deadline is by the clock of the sleep's `Timer`: [`Timer::now`], or
    /// [`now`](crate::now()) for a sleep of the free functions. [`reset_after`](Self::reset_after)
    /// needs no clock.
    pub fn reset(&mut self, deadline: Instant) {
        self.reset_to(self.handle.time.since_start(deadline));
    }

    /// Makes the sleep end when `delay` has passed from now; as [`reset`](Self::reset).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{ManualClock, Timer};
    ///
    /// let (second, clock) = (Duration::from_secs(1), ManualClock::new());
    /// let timer = Timer::builder().clock(clock.clone()).build()?;
    /// let mut idle = timer.sleep(60 * second);
    /// clock.advance(50 * second); // then a packet comes
    /// idle.reset_after(60 * second);
    /// assert_eq!(idle.remaining(), 60 * second);
    /// # Ok::<(), shardwheel::BuildError>(())
    /// ```
    pub fn reset_after(&mut self, delay: Duration) {
        self.reset_to(self.handle.deadline_after(delay));
    }

    pub(super) fn reset_to(&mut self, deadline: Nanos) {
        self.wait.reset(&self.handle, deadline);
    }

    #[inline]
    pub(super) fn poll_sleep(&mut self, waker: &Waker) -> Poll<Result<(), SleepError>> {
        self.wait.poll(&self.handle, waker)
    }
}

impl Sleep<GlobalShard> {
    /// Polls a sleep of the global timer, which refuses one only if the system gives no memory, or
    /// if it is that of a scope which has ended. The task is then woken at once, and its next poll
    /// tries again.
    #[inline(always)]
    pub(super) fn poll_global(&mut self, waker: &Waker) -> Poll<()> {
        match self.poll_sleep(waker) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => Poll::Ready(()),
            Poll::Ready(Err(refused)) => self.try_again(refused, waker),
        }
    }

    /// The timer of a scope is shut down when the scope ends. A sleep that outlives the scope goes
    /// on to the same deadline on the timer of the process.
    #[cold]
    fn try_again(&mut self, refused: SleepError, waker: &Waker) -> Poll<()> {
        if refused.is_shut_down()
            && let Ok(timer) = Timer::of_process()
        {
            let deadline = self.deadline();
            self.handle = GlobalShard::Process(timer.handle());
            self.wait.deadline = deadline.map_or(NEVER, |at| self.handle.time.since_start(at));
        }
        self.wait.try_again();
        waker.wake_by_ref();
        Poll::Pending
    }
}

impl Future for Sleep {
    type Output = Result<(), SleepError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().poll_sleep(context.waker())
    }
}

impl Future for Sleep<GlobalShard> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.get_mut().poll_global(context.waker())
    }
}

#[cfg(feature = "stream")]
impl<H: Deref<Target = ShardHandle>> FusedFuture for Sleep<H>
where
    Self: Future,
{
    /// Whether the sleep has resolved, and has not been reset since.
    fn is_terminated(&self) -> bool {
        self.wait.is_terminated()
    }
}

impl<H: Deref<Target = ShardHandle>> Drop for Sleep<H> {
    #[inline]
    fn drop(&mut self) {
        self.wait.cancel(&self.handle);
    }
}

impl<H: Deref<Target = ShardHandle>> fmt::Debug for Sleep<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("deadline", &self.deadline()).finish_non_exhaustive()
    }
}
