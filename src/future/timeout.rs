//! A future with a time limit.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

#[cfg(feature = "stream")]
use futures_core::FusedFuture;
use pin_project_lite::pin_project;

use super::error::TimeoutError;
use super::sleep::Sleep;

pin_project! {
    /// Limits the time of a future. Made by [`Timer::timeout`](crate::Timer::timeout).
    /// The free function [`timeout`](crate::timeout()) returns a
    /// [`global::Timeout`](crate::global::Timeout).
    ///
    /// Each poll polls the future before the time limit, so a future that is ready in time never
    /// times out.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future;
    /// use std::time::Duration;
    /// use shardwheel::{Timer, TimeoutError};
    /// # use std::future::Future;
    /// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
    ///
    /// let timer = Timer::builder().build()?;
    /// let limit = Duration::from_millis(20);
    /// assert_eq!(block_on(timer.timeout(limit, future::ready(5))), Ok(5));
    /// assert_eq!(block_on(timer.timeout(limit, future::pending::<u8>())), Err(TimeoutError::Elapsed));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Timeout<F> {
        #[pin]
        future: F,
        sleep: Sleep,
        ended: bool,
    }
}

impl<F> Timeout<F> {
    pub(crate) fn new(future: F, sleep: Sleep) -> Self {
        Self { future, sleep, ended: false }
    }

    /// Returns the future.
    pub fn get_ref(&self) -> &F {
        &self.future
    }

    /// Returns the future, mutably.
    pub fn get_mut(&mut self) -> &mut F {
        &mut self.future
    }

    /// Returns the future without its time limit.
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, TimeoutError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let elapsed =
            |ended: Result<(), _>| Err(ended.map_or_else(TimeoutError::Sleep, |()| TimeoutError::Elapsed));
        let output = match this.future.poll(context) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => this.sleep.poll_sleep(context.waker()).map(elapsed),
        };
        *this.ended = output.is_ready();
        output
    }
}

#[cfg(feature = "stream")]
impl<F: Future> FusedFuture for Timeout<F> {
    /// Whether the timeout has resolved.
    fn is_terminated(&self) -> bool {
        self.ended
    }
}
