//! A queue whose values come out when their delays have passed: [`DelayQueue`], and what comes out
//! of it.
//!
//! The mechanism is documented in the source: `entry.rs` describes a value's way, `keys.rs` how a
//! key stays the same, `list.rs` how the queue knows all its values, `receiver.rs` how values are
//! taken out, and `waiters.rs` how consumers are woken.

mod entry;
mod keys;
mod list;
#[cfg(any(shardwheel_loom, shardwheel_model))]
#[path = "../../loom-tests/testing/delay_queue.rs"]
pub(crate) mod model;
mod receiver;
mod waiters;

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

pub use entry::Expired;
pub use keys::QueueKey;

use crate::error::{ScheduleError, ScheduleErrorKind};
use crate::shard::Extended;
use crate::tick::Tick;
use crate::time::{Duration, Instant};
use crate::timer::{Nanos, ShardHandle, Timer, TimerKey, nanos};
use entry::{CLOSED, QueueState, Ticket};
use keys::{Moved, Record};
use list::{Listing, SHARE};

/// A queue whose values come out when their delays have passed.
///
/// Any thread inserts, removes and resets values by a shared reference. Tasks take what has expired
/// with [`next`](Self::next) or as a [`Stream`](futures_core::Stream), threads with
/// [`blocking_recv`](Self::blocking_recv) or [`recv_timeout`](Self::recv_timeout); each value goes
/// to one of them. They wait while the queue is empty, because other threads may insert. The queue
/// ends when it is [closed](Self::close) and all values are taken, or when the `Timer` has been
/// shut down and all that has expired is taken. As with a
/// [`Sleep`](crate::Sleep), every 128th of a task's ready polls on a thread is pending first.
///
/// The values that expire on one shard come in the order of their deadlines, to a tick, or to the
/// `Timer`'s [slack](crate::TimerBuilder::slack) if it has one. If several threads insert, the
/// order of values that are due at about the same time may differ.
///
/// The queue is a handle of its [`Timer`]: the `Timer` does not end while the queue exists, unless
/// it is shut down.
///
/// # What becomes of the values
///
/// Each value comes out once: by a consumer when it has expired, or by [`remove`](Self::remove).
/// If the `Timer` is shut down, what has not expired comes out by [`unexpired`](Self::unexpired);
/// [`Timer::shutdown`] does not return it. If the queue is dropped, all its values are dropped with
/// it, at once; a consumer of an [`Arc`] keeps the queue while it waits.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::{DelayQueue, Timer};
/// # use std::future::Future;
/// # fn block_on<F: Future>(future: F) -> F::Output { futures::executor::block_on(future) }
///
/// let timer = Timer::new()?;
/// let queue = DelayQueue::new(&timer);
/// let slow = queue.insert("slow", Duration::from_secs(60))?;
/// queue.insert("fast", Duration::from_millis(10))?;
///
/// let expired = block_on(queue.next()).expect("the timer has not been shut down");
/// assert_eq!(expired.value, "fast");
/// queue.reset(&slow, Duration::from_millis(10)); // the key stays the same
/// let expired = queue.blocking_recv(); // in a thread
/// assert_eq!(expired.map(|expired| (expired.value, expired.key)), Some(("slow", slow)));
/// assert_eq!(queue.remove(&slow), None); // it is gone
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DelayQueue<T: Send + 'static> {
    timer: Timer,
    shared: Arc<QueueState<T>>,
    moved: Moved,
    list: Listing,
}

impl<T: Send + 'static> DelayQueue<T> {
    /// Makes a queue whose values are timers of `timer`.
    #[must_use]
    pub fn new(timer: &Timer) -> Self {
        let shared = Arc::new(QueueState::new());
        let watcher = Arc::downgrade(&shared);
        if !timer.first_shard().watch_end(shared.id, watcher) {
            shared.note_end(drop);
        }
        Self { timer: timer.clone(), shared, moved: Moved::default(), list: Listing::new() }
    }

    /// Inserts a value that expires when `delay` has passed from now.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`], with the value, if the queue is [closed](Self::close), if the `Timer` has
    /// been shut down, if as many timers are pending as the `Timer` may hold, or if the system
    /// gives no memory.
    ///
    /// # Performance
    ///
    /// O(1) on average, and it waits for no other thread: a box for the value, a timer, and what
    /// all threads share: a counter, and the list that [`iter`](Self::iter) goes through. The list
    /// takes 24 bytes a value, and is copied when it has doubled; an insert beside another one or
    /// beside an [`iter`](Self::iter) allocates its part of it. The caller's stack needs room for
    /// some copies of the value, as that of a consumer does.
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn insert(&self, value: T, delay: Duration) -> Result<QueueKey, ScheduleError<T>> {
        self.insert_for(value, |handle| {
            let deadline = handle.now_or_later().saturating_add(nanos(delay));
            (deadline, handle.tick_after(delay))
        })
    }

    /// Inserts a value that expires at `deadline`, by the clock of the `Timer`; if that has passed,
    /// at the next tick. As [`insert`](Self::insert).
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    #[cfg_attr(feature = "introspect", track_caller)]
    pub fn insert_at(&self, value: T, deadline: Instant) -> Result<QueueKey, ScheduleError<T>> {
        self.insert_for(value, |handle| (handle.time.since_start(deadline), handle.tick_for(deadline)))
    }

    #[cfg_attr(feature = "introspect", track_caller)]
    fn insert_for(
        &self,
        value: T,
        times: impl FnOnce(&ShardHandle) -> (Nanos, Tick),
    ) -> Result<QueueKey, ScheduleError<T>> {
        let handle = self.timer.handle();
        let (value, (deadline, tick)) = handle.read_clock_beside(value, || times(handle));
        let (id, ticket) = Ticket::new(&self.shared, (deadline, tick), value);
        let scheduled = if id < CLOSED {
            handle.schedule(None, tick, ticket)
        } else {
            Err(ScheduleError::new(ScheduleErrorKind::QueueClosed, ticket))
        };
        let key = scheduled.map_err(|refused| {
            let refused = refused.map(Ticket::into_value);
            self.note_left();
            refused
        })?;
        let record = (id, TimerKey::once(key));
        self.list.add(record);
        Ok(self.key_of(record))
    }

    /// Takes a value out before it expires. Returns `None` if it has expired, also if no consumer
    /// has taken it yet, or was removed before. The key of another queue finds nothing.
    ///
    /// # Performance
    ///
    /// O(1), lock-free, unless the value has been moved by a reset: then it takes a lock, for
    /// O(log moved values).
    pub fn remove(&self, key: &QueueKey) -> Option<T> {
        let value = self.cancel(key)?.into_value();
        self.note_left();
        Some(value)
    }

    /// Takes a value's ticket out of the timer.
    fn cancel(&self, key: &QueueKey) -> Option<Ticket<T>> {
        let (handle, timer_key) = self.home_of(key)?;
        let cancelled = handle.scheduler.cancel(timer_key.key()).or_else(|| {
            let moved = self.moved.forget(key.id)?;
            handle.scheduler.cancel(moved.key())
        });
        Some(cancelled?.into_content::<Ticket<T>>())
    }

    /// Closes the queue: from now on inserts are refused, and the error has the value.
    ///
    /// The values in the queue stay, and come out when they are due; they can still be reset or
    /// removed. When the last one has left, the consumers get `None`, and the stream ends; an empty
    /// queue ends at once. To end a queue before its values are due, close it and
    /// [`drain`](Self::drain) it. A second call changes nothing.
    ///
    /// An insert beside this call is refused, or its value comes out as any other.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{DelayQueue, Timer};
    ///
    /// let queue = DelayQueue::new(&Timer::new()?);
    /// queue.insert("last", Duration::from_millis(5))?;
    /// queue.close();
    /// let refused = queue.insert("more", Duration::from_millis(5)).unwrap_err();
    /// assert_eq!(refused.into_payload(), "more");
    /// assert_eq!(queue.blocking_recv().map(|expired| expired.value), Some("last"));
    /// assert_eq!(queue.blocking_recv(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&self) {
        self.shared.close(|waker| self.wake(waker));
    }

    fn wake(&self, waker: Waker) {
        self.timer.first_shard().guard.run(None, || waker.wake());
    }

    /// Makes a value expire when `delay` has passed from now. Returns false if it has expired or
    /// was removed. The key stays the same.
    ///
    /// If the system gives no memory for a move, the value keeps its deadline.
    ///
    /// # Performance
    ///
    /// O(1). To a later time it is usually one compare-and-swap. To an earlier time the value's
    /// timer moves to another node, and the queue notes under a lock where it is: O(log moved
    /// values).
    pub fn reset(&self, key: &QueueKey, delay: Duration) -> bool {
        self.move_to(key, |handle| handle.tick_after(delay))
    }

    /// Makes a value expire at `deadline`, by the clock of the `Timer`; as [`reset`](Self::reset).
    pub fn reset_at(&self, key: &QueueKey, deadline: Instant) -> bool {
        self.move_to(key, |handle| handle.tick_for(deadline))
    }

    fn move_to(&self, key: &QueueKey, tick: impl FnOnce(&ShardHandle) -> Tick) -> bool {
        let Some((handle, timer_key)) = self.home_of(key) else { return false };
        let tick = tick(handle);
        match handle.scheduler.extend(timer_key.key(), tick) {
            Extended::Done => true,
            Extended::Gone if self.moved.is_empty() => false,
            Extended::Gone | Extended::NeedsMove => self.moved.relocate(handle, key, tick),
        }
    }

    fn key_of(&self, (id, timer_key): Record) -> QueueKey {
        QueueKey { queue: self.shared.id, id, timer_key: Some(timer_key) }
    }

    /// Notes that a value has just left, or was refused. Ends a queue that is closed and empty.
    /// Sweeps the list, if it is the value's turn. If several threads take values out, a turn may be
    /// missed: the next one does its work.
    fn note_left(&self) {
        self.shared.end_if_empty(|waker| self.wake(waker));
        if self.shared.left().is_multiple_of(SHARE) {
            let waits = |timer_key| self.timer.is_pending(timer_key).then_some(());
            self.list.sweep(self.len(), |record| self.moved.at_present(record, waits).is_some());
        }
    }

    /// When the value of a record is due, if it waits.
    fn due(&self, record: Record) -> Option<Tick> {
        let due = |key: TimerKey| self.timer.home_of(key)?.scheduler.deadline(key.key());
        self.moved.at_present(record, due)
    }

    /// The time of a tick, which is the same on all shards.
    fn instant(&self, tick: Tick) -> Option<Instant> {
        let time = &self.timer.first_shard().time;
        time.instant(time.start_of(tick))
    }

    /// The shard of the value's timer and the key of its first timer, if the key is of this queue.
    fn home_of(&self, key: &QueueKey) -> Option<(&ShardHandle, TimerKey)> {
        let timer_key = key.timer_key.filter(|_| key.queue == self.shared.id)?;
        Some((self.timer.home_of(timer_key)?, timer_key))
    }

    /// Returns how many values the queue holds: those that wait, and those that have expired and
    /// were not taken yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Returns whether the queue holds no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Send + 'static> Drop for DelayQueue<T> {
    /// Drops all values. The first panic in a value's drop goes on after the others, which are
    /// counted and reported.
    fn drop(&mut self) {
        self.shared.note_drop();
        let handle = self.timer.first_shard();
        handle.forget_watcher(self.shared.id);
        self.shared.waiters.take_all().for_each(|waker| handle.guard.discard(waker));
        // A value that expires meanwhile is dropped by the thread that fires it, or is due here.
        let records = self.list.records().into_iter();
        self.shared.drop_all(handle, records.filter_map(|record| self.cancel(&self.key_of(record))));
    }
}

impl<T: Send + 'static> fmt::Debug for DelayQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayQueue").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests;
