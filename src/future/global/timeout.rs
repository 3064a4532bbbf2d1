//! A time limit on the global timer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

#[cfg(feature = "stream")]
use futures_core::FusedFuture;
use pin_project_lite::pin_project;

use super::Sleep;
use crate::future::Elapsed;

pin_project! {
    /// Limits the time of a future. Made by [`timeout`](crate::timeout()) and
    /// [`timeout_at`](crate::timeout_at()).
    ///
    /// Each poll polls the future before the time limit, so a future that is ready in time never
    /// times out.
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
    #[inline]
    pub(super) fn new(future: F, sleep: Sleep) -> Self {
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
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let output = match this.future.poll(context) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => this.sleep.poll_sleep(context.waker()).map(|()| Err(Elapsed::new())),
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
