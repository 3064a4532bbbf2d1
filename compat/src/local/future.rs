//! The futures of a local timer.

use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use pin_project_lite::pin_project;
use shardwheel::{Interval, SleepError};

use super::on_loop;

pin_project! {
    /// A [`Sleep`](shardwheel::Sleep), [`Timeout`](shardwheel::Timeout) or [`Interval`] of a
    /// [`LocalTimer`](crate::LocalTimer), with all of its calls. It stays on its thread.
    #[must_use = "futures do nothing unless polled"]
    pub struct Local<T> {
        #[pin]
        inner: T,
        bound: PhantomData<Rc<()>>,
    }
}

impl<T> Local<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, bound: PhantomData }
    }
}

impl Local<Interval> {
    /// Waits for the next tick, as [`Interval::tick`] does.
    ///
    /// # Errors
    ///
    /// As [`Interval::tick`].
    pub async fn tick(&mut self) -> Result<Instant, SleepError> {
        poll_fn(|context| self.poll_tick(context)).await
    }

    /// Polls for the next tick, as [`Interval::poll_tick`] does.
    ///
    /// # Errors
    ///
    /// As [`Interval::tick`].
    pub fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Result<Instant, SleepError>> {
        on_loop(|| self.inner.poll_tick(context))
    }
}

impl<T: Future> Future for Local<T> {
    type Output = T::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T::Output> {
        on_loop(|| self.project().inner.poll(context))
    }
}

impl<T> Deref for Local<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for Local<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T: fmt::Debug> fmt::Debug for Local<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
