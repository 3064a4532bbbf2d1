//! A future with a time limit.

use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

#[cfg(feature = "stream")]
use futures_core::FusedFuture;
use pin_project_lite::pin_project;

use super::budget;
use super::error::{Elapsed, TimeoutError};
use super::global_shard::GlobalShard;
use super::sleep::Sleep;
use crate::timer::{Inherited, ShardHandle};

pin_project! {
    /// Limits the time of a future. Made by [`Timer::timeout`](crate::Timer::timeout).
    /// The free function [`timeout`](crate::timeout()) returns a
    /// [`global::Timeout`](crate::global::Timeout), which has the sleep `S` of the global `Timer`.
    ///
    /// Each poll polls the future before the time limit, so a future that is ready in time never
    /// times out. Where a [`Sleep`] would give way to other tasks, a poll does so before it polls
    /// anything. A future that itself gives way is not ready then, and the time limit decides.
    ///
    /// Within the [scope](crate::Deadline::scope) of a deadline, the time ends there at the latest.
    /// A poll that comes after that deadline is ready, also if the timer has not fired yet: of
    /// nested time limits that end at the same deadline, the innermost ends first.
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
    pub struct Timeout<F, S = Sleep> {
        #[pin]
        future: F,
        sleep: S,
        // Whether the time ends at an inherited deadline: others end there, too.
        is_inherited: bool,
        ended: bool,
    }
}

impl<F, H: Deref<Target = ShardHandle>> Timeout<F, Sleep<H>> {
    /// Limits the future by the sleep, and by the deadline that the caller has inherited.
    #[inline]
    pub(super) fn new(future: F, mut sleep: Sleep<H>) -> Self {
        let mut is_inherited = false;
        if let Some(deadline) = Inherited::current().deadline_for(&sleep.handle) {
            let (deadline, wait) = (sleep.handle.time.since_start(deadline), &mut sleep.wait);
            wait.deadline = wait.deadline.min(deadline);
            wait.slack = wait.slack.min(deadline - wait.deadline);
            is_inherited = wait.deadline + wait.slack == deadline;
        }
        Self { future, sleep, is_inherited, ended: false }
    }
}

impl<F, S> Timeout<F, S> {
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

impl<F: Future, H: Deref<Target = ShardHandle>> Timeout<F, Sleep<H>> {
    /// Polls the future, then the sleep by `poll_sleep`.
    #[inline]
    fn poll_both<E>(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        poll_sleep: impl FnOnce(&mut Sleep<H>, &Waker) -> Poll<E>,
    ) -> Poll<Result<F::Output, E>> {
        ready!(budget::look(context.waker()));
        let this = self.project();
        let mut output = this.future.poll(context).map(Ok);
        if output.is_pending() {
            if *this.is_inherited {
                this.sleep.wait.look_at_clock(&this.sleep.handle);
            }
            output = poll_sleep(this.sleep, context.waker()).map(Err);
        }
        *this.ended = output.is_ready();
        output
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, TimeoutError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let elapsed =
            |ended: Result<(), _>| ended.map_or_else(TimeoutError::Sleep, |()| TimeoutError::Elapsed);
        self.poll_both(context, |sleep, waker| sleep.poll_sleep(waker).map(elapsed))
    }
}

impl<F: Future> Future for Timeout<F, Sleep<GlobalShard>> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_both(context, |sleep, waker| sleep.poll_global(waker).map(|()| Elapsed::new()))
    }
}

#[cfg(feature = "stream")]
impl<F, S> FusedFuture for Timeout<F, S>
where
    Self: Future,
{
    /// Whether the timeout has resolved.
    fn is_terminated(&self) -> bool {
        self.ended
    }
}
