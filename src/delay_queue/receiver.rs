//! The consumers' calls: those that wait as a task, those that block, and those about all values.
//!
//! A consumer takes the whole stack at once and reverses it, so that values of one shard come in
//! the order in which they expired. `waiters.rs` describes how consumers are woken.

use std::future::Future;
use std::iter;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

#[cfg(feature = "stream")]
use futures_core::Stream;

use super::entry::{Boxed, Entry, Expired, QueueState, Ticket};
use super::waiters::ConsumerId;
use super::{DelayQueue, QueueKey};
use crate::future::{Elapsed, budget};
use crate::sync::now;
use crate::time::{Duration, Instant};
use crate::timer::Parker;
use crate::timer::ShardHandle;
use crate::unwind::FirstPanic;

impl<T: Send + 'static> QueueState<T> {
    /// The next entry that has expired; `None` at the end. If there is none yet, `waker` is woken
    /// when the consumer has to poll again; its former waker is passed to `discard`. `waiters.rs`
    /// has the protocol.
    pub(super) fn poll(
        &self,
        consumer: Option<ConsumerId>,
        waker: &Waker,
        discard: impl Fn(Waker),
    ) -> Poll<Option<Boxed<T>>> {
        if let Some(entry) = self.due.next() {
            return Poll::Ready(Some(entry));
        }
        self.waiters.register(consumer, waker, discard);
        // Read before the last look: what expired before the end is found.
        let has_ended = self.has_ended();
        match self.due.next() {
            None if !has_ended => Poll::Pending,
            entry => Poll::Ready(entry),
        }
    }

    /// Drops the values that still wait, which `cancel` takes out of the timer, and then all that
    /// is left to the consumers. The first panic goes on, the others end in `handle`.
    pub(super) fn drop_all(&self, handle: &ShardHandle, waiting: impl Iterator<Item = Ticket<T>>) {
        let mut panics = FirstPanic::default();
        let left = iter::from_fn(|| self.due.next().or_else(|| self.unexpired.next()));
        for entry in waiting.filter_map(Ticket::into_entry).chain(left) {
            if panics.takes_next() { panics.catch_drop(entry) } else { handle.guard.discard(entry) }
        }
        panics.resume();
    }
}

impl<T: Send + 'static> DelayQueue<T> {
    /// Returns the next value that has expired, if there is one. Does not wait.
    pub fn try_recv(&self) -> Option<Expired<T>> {
        self.give_out(self.shared.due.next())
    }

    /// Waits for the next value to expire. Resolves to `None` if the `Timer` has been shut down and
    /// all that has expired is taken, or if the queue is [closed](Self::close) and empty.
    ///
    /// It waits while the queue is empty as well. Any number of tasks and threads may wait: each
    /// value goes to one of them. A future that is dropped takes no value with it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{DelayQueue, Timer};
    /// # use std::future::Future;
    /// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
    ///
    /// let queue = DelayQueue::new(Timer::global());
    /// queue.insert("receipt", Duration::from_millis(5))?;
    /// let expired = block_on(queue.next());
    /// assert_eq!(expired.map(|expired| expired.value), Some("receipt"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Performance
    ///
    /// Each value wakes all tasks and threads that wait at that moment. Those that find nothing
    /// wait again.
    pub fn next(&self) -> impl Future<Output = Option<Expired<T>>> + Unpin {
        self.enter()
    }

    /// Blocks the thread until the next value expires. Returns `None` if the `Timer` has been shut
    /// down and all that has expired is taken, or if the queue is [closed](Self::close) and empty.
    ///
    /// In async code use [`next`](Self::next): this call would stop all tasks of its thread. A
    /// callback of the `Timer` must not call it either, because it would wait for its own thread.
    ///
    /// Any number of threads and tasks may wait: each value goes to one of them.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::thread;
    /// use std::time::Duration;
    /// use shardwheel::{DelayQueue, Timer};
    ///
    /// let queue = DelayQueue::new(&Timer::new()?);
    /// thread::scope(|scope| {
    ///     scope.spawn(|| queue.insert("receipt", Duration::from_millis(5)).unwrap());
    ///     assert_eq!(queue.blocking_recv().unwrap().value, "receipt");
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn blocking_recv(&self) -> Option<Expired<T>> {
        // Without a limit there is no error.
        self.block(None).unwrap_or(None)
    }

    /// Blocks the thread as [`blocking_recv`](Self::blocking_recv), but for at most `limit`, by the
    /// system's clock.
    ///
    /// # Errors
    ///
    /// [`Elapsed`], if `limit` has passed and no value has expired.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{DelayQueue, Timer};
    ///
    /// let queue = DelayQueue::new(&Timer::new()?);
    /// queue.insert("late", Duration::from_secs(3600))?;
    /// assert!(queue.recv_timeout(Duration::from_millis(5)).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recv_timeout(&self, limit: Duration) -> Result<Option<Expired<T>>, Elapsed> {
        self.block(Some(limit))
    }

    /// The former name of [`blocking_recv`](Self::blocking_recv).
    #[deprecated(note = "it blocks the thread: use `next().await` in async code, `blocking_recv` elsewhere")]
    pub fn recv(&self) -> Option<Expired<T>> {
        self.blocking_recv()
    }

    fn block(&self, limit: Option<Duration>) -> Result<Option<Expired<T>>, Elapsed> {
        if let Some(expired) = self.try_recv() {
            return Ok(Some(expired));
        }
        let (waiter, begin) = (self.enter(), now());
        let parker = Arc::new(Parker::new());
        parker.set_thread();
        let waker = Waker::from(Arc::clone(&parker));
        loop {
            parker.clear();
            if let Poll::Ready(expired) = self.poll_recv(Some(waiter.consumer), &waker) {
                return Ok(expired);
            }
            let left = limit.map(|limit| limit.saturating_sub(now().saturating_duration_since(begin)));
            if left == Some(Duration::ZERO) {
                return Err(Elapsed::new());
            }
            parker.wait(left);
        }
    }

    /// Yields the values that had not expired when the `Timer` was shut down, in no particular
    /// order. Yields nothing before that.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{DelayQueue, Timer};
    ///
    /// let timer = Timer::new()?;
    /// let queue = DelayQueue::new(&timer);
    /// let key = queue.insert("order 17", Duration::from_secs(1800))?;
    /// drop(timer.shutdown());
    /// assert_eq!(queue.blocking_recv(), None);
    /// assert_eq!(queue.unexpired().collect::<Vec<_>>(), [(key, "order 17")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn unexpired(&self) -> impl Iterator<Item = (QueueKey, T)> + '_ {
        iter::from_fn(|| {
            let Entry { id, value, .. } = self.shared.unexpired.next()?.value;
            self.forget(id);
            Some((QueueKey { queue: self.shared.id, id, timer_key: None }, value))
        })
    }

    /// Returns when the next value is due. If a value has expired and was not taken yet, it is that
    /// of the value that the next receive returns. Otherwise it is the earliest of those that wait.
    ///
    /// Of a value that has expired it is [`Expired::deadline`]. Of one that waits it is rounded up
    /// to a tick: the value does not come out before. `None` if the queue is empty, or if the
    /// system's `Instant` can represent none of its times. A value that expires during the call may
    /// be missed.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{DelayQueue, ManualClock, Timer};
    ///
    /// let clock = ManualClock::new();
    /// let timer = Timer::builder().clock(clock.clone()).build()?;
    /// let queue = DelayQueue::new(&timer);
    /// assert_eq!(queue.peek_deadline(), None);
    /// queue.insert("late", Duration::from_secs(60))?;
    /// queue.insert("soon", Duration::from_secs(5))?;
    /// let soon = timer.now() + Duration::from_secs(5);
    /// assert_eq!(queue.peek_deadline(), Some(soon));
    ///
    /// clock.advance(Duration::from_secs(7));
    /// assert_eq!(queue.peek_deadline(), Some(soon)); // until it is received
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Performance
    ///
    /// O(1) if a value has expired. Otherwise O(log values), amortised over the inserts, resets and
    /// removals since the last call: the call sorts what is new. The first call sorts all values,
    /// which takes about as long as [`iter`](Self::iter); so does one after as many changes as the
    /// queue has values. From then on a value takes 32 to 128 bytes more, and a reset to an earlier
    /// time notes the value in one more table. No other call waits for it, except as for `iter`, and
    /// a second such call, an `iter` or a drain beside it.
    #[must_use]
    pub fn peek_deadline(&self) -> Option<Instant> {
        let due = || self.shared.due.peek();
        let earliest = || {
            // Taken first: what is moved after it was sorted is there at the next call.
            let moved = self.moved.take_unsorted();
            self.instant(self.list.earliest(moved, |record| self.due(record))?)
        };
        // What has expired meanwhile is among the due ones by now.
        due().or_else(earliest).or_else(due)
    }

    /// Yields the keys of the values that wait, in no particular order, and when each is due: a
    /// snapshot. Values that have expired are not among them.
    ///
    /// The time is rounded up to a tick, as that of [`peek_deadline`](Self::peek_deadline); `None`
    /// if the system's `Instant` cannot represent it. The values themselves cannot be lent out,
    /// because a shard's thread may pass any of them to a consumer at any moment:
    /// [`remove`](Self::remove) takes one out by its key, [`drain`](Self::drain) all.
    ///
    /// # Examples
    ///
    /// Everything that is due within a minute comes out now:
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{DelayQueue, Timer};
    ///
    /// let timer = Timer::new()?;
    /// let queue = DelayQueue::new(&timer);
    /// queue.insert("soon", Duration::from_secs(50))?;
    /// queue.insert("late", Duration::from_secs(5_000))?;
    ///
    /// let limit = timer.now() + Duration::from_secs(60);
    /// let soon = queue.iter().filter(|(_, due)| due.is_some_and(|due| due < limit));
    /// let values: Vec<_> = soon.filter_map(|(key, _)| queue.remove(&key)).collect();
    /// assert_eq!(values, ["soon"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Performance
    ///
    /// O(values), and two allocations for the snapshot. No other call waits for it, except that a
    /// reset to an earlier time waits for a look at one value.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (QueueKey, Option<Instant>)> + use<T> {
        let waits = |record| Some((self.key_of(record), self.instant(self.due(record)?)));
        self.list.records().into_iter().filter_map(waits).collect::<Vec<_>>().into_iter()
    }

    /// Takes the values out, those that wait and then those that have expired, and yields them with
    /// their keys, in no particular order.
    ///
    /// A value leaves the queue when the iterator yields it, so nothing is lost with an iterator
    /// that is dropped early: the rest stays. A value that expires during the call, or that another
    /// thread receives or removes meanwhile, comes out once: here or there. One that is inserted
    /// meanwhile may stay. What a `Timer`'s end has left comes out by
    /// [`unexpired`](Self::unexpired).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{DelayQueue, Timer};
    ///
    /// let queue = DelayQueue::new(&Timer::new()?);
    /// for order in [17, 18, 19] {
    ///     queue.insert(order, Duration::from_secs(1800))?;
    /// }
    /// let mut orders: Vec<_> = queue.drain().map(|(_key, order)| order).collect();
    /// orders.sort();
    /// assert_eq!(orders, [17, 18, 19]);
    /// assert!(queue.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Performance
    ///
    /// As [`iter`](Self::iter), and then a [`remove`](Self::remove) or a
    /// [`try_recv`](Self::try_recv) for each value.
    pub fn drain(&self) -> impl Iterator<Item = (QueueKey, T)> + '_ {
        let waiting = self.iter().filter_map(|(key, _)| Some((key, self.remove(&key)?)));
        let expired = iter::from_fn(|| self.try_recv()).map(|expired| (expired.key, expired.value));
        waiting.chain(expired.take(self.len()))
    }

    /// Makes a consumer that may wait.
    fn enter(&self) -> Waiter<'_, T> {
        Waiter { queue: self, consumer: self.shared.waiters.enter() }
    }

    fn poll_in_task(
        &self,
        consumer: Option<ConsumerId>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Expired<T>>> {
        // Comes first, because a value that has been taken cannot wait.
        ready!(budget::spend(context.waker()));
        self.poll_recv(consumer, context.waker())
    }

    fn poll_recv(&self, consumer: Option<ConsumerId>, waker: &Waker) -> Poll<Option<Expired<T>>> {
        let discard = |former| self.timer.first_shard().guard.discard(former);
        let entry = self.shared.poll(consumer, waker, discard);
        entry.map(|entry| self.give_out(entry))
    }

    /// Takes an expired value out of its box, and what the queue knows of it.
    fn give_out(&self, entry: Option<Boxed<T>>) -> Option<Expired<T>> {
        let Entry { id, value, expired, .. } = entry?.value;
        self.forget(id);
        let (timer_key, deadline) = expired?;
        Some(Expired { value, key: self.key_of((id, timer_key)), deadline })
    }

    /// Forgets a value that has left the queue by its timer.
    fn forget(&self, id: u64) {
        self.moved.forget(id);
        self.note_left();
    }
}

/// A thread or a future that waits. Its drop takes its waker out of the list.
struct Waiter<'q, T: Send + 'static> {
    queue: &'q DelayQueue<T>,
    consumer: ConsumerId,
}

impl<T: Send + 'static> Future for Waiter<'_, T> {
    type Output = Option<Expired<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.queue.poll_in_task(Some(self.consumer), context)
    }
}

impl<T: Send + 'static> Drop for Waiter<'_, T> {
    fn drop(&mut self) {
        let waker = self.queue.shared.waiters.take(self.consumer);
        self.queue.timer.first_shard().guard.discard(waker);
    }
}

#[cfg(feature = "stream")]
/// Yields what has expired; waits while nothing has. Ends when the `Timer` has been shut down, or
/// when the queue is closed and empty.
impl<T: Send + 'static> Stream for DelayQueue<T> {
    type Item = Expired<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        self.poll_in_task(Some(ConsumerId::Owner), context)
    }
}

#[cfg(feature = "stream")]
/// The same by a shared reference, for several consumers, or for a queue that other threads insert
/// into. The waker of a task that gives up stays until the next value expires, and so do all that a
/// task has brought if their clones are told apart (as those of some foreign runtimes are);
/// [`next`](DelayQueue::next) keeps one, and takes it back.
impl<T: Send + 'static> Stream for &DelayQueue<T> {
    type Item = Expired<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Expired<T>>> {
        self.poll_in_task(None, context)
    }
}
