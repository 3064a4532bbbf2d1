//! A sleep on the global timer.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

#[cfg(feature = "stream")]
use futures_core::FusedFuture;

use super::wake_to_try_again;
use crate::future::wait::Wait;
use crate::timer::{Nanos, ShardHandle};

/// Waits until a deadline, on any executor. Made by [`sleep`](crate::sleep()) and
/// [`sleep_until`](crate::sleep_until()).
///
/// It is the [`Sleep`](crate::Sleep) of the global timer, with the output `()`. It is [`Unpin`],
/// and once it has resolved further polls are ready. Of answers that are ready at once, every 128th
/// gives way to other tasks, as described there.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
/// use shardwheel::sleep;
/// # use std::future::Future;
/// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
///
/// let mut idle = sleep(Duration::from_secs(60));
/// idle.reset(Instant::now() + Duration::from_millis(5));
/// block_on(idle);
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct Sleep {
    handle: &'static ShardHandle,
    wait: Wait,
}

impl Sleep {
    #[inline]
    pub(super) fn new(handle: &'static ShardHandle, deadline: Nanos) -> Self {
        Self { handle, wait: Wait::new(deadline) }
    }

    /// Returns the deadline; `None` if it is further away than the system's clock can represent.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.wait.deadline(self.handle)
    }

    /// Returns whether the sleep is over: its next poll is ready. Between two resets, the answer
    /// never returns to false.
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        self.wait.is_elapsed(self.handle)
    }

    /// Gives the sleep another deadline, whether it has resolved or not. The task that last polled
    /// a waiting sleep is woken for the new deadline; a sleep that has resolved must be polled
    /// again. If the new deadline has passed, the next poll is ready.
    pub fn reset(&mut self, deadline: Instant) {
        self.wait.reset(self.handle, self.handle.time.since_start(deadline));
    }

    #[inline(always)]
    pub(in crate::future) fn poll_sleep(&mut self, waker: &Waker) -> Poll<()> {
        match self.wait.poll(self.handle, waker) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => Poll::Ready(()),
            Poll::Ready(Err(_)) => self.try_again(waker),
        }
    }

    #[cold]
    fn try_again(&mut self, waker: &Waker) -> Poll<()> {
        self.wait.try_again();
        wake_to_try_again(waker)
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.get_mut().poll_sleep(context.waker())
    }
}

#[cfg(feature = "stream")]
impl FusedFuture for Sleep {
    /// Whether the sleep has resolved, and has not been reset since.
    fn is_terminated(&self) -> bool {
        self.wait.is_terminated()
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.wait.cancel(self.handle);
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("deadline", &self.deadline()).finish_non_exhaustive()
    }
}
