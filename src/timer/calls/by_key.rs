//! What the user does by a timer's key: cancel, reschedule, ask.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use crate::shard::Ahead;
use crate::shard::Stopped;
use crate::tick::Tick;
use crate::time::{Duration, Instant};
use crate::timer::handle::Timer;
use crate::timer::key::TimerKey;
use crate::timer::shard::ShardHandle;
use crate::timer::task::{Membership, Task, TaskBody};
use crate::unwind::FirstPanic;

impl Timer {
    /// Cancels a timer.
    ///
    /// Returns true if the timer will not fire (again). Returns false if it has fired, is being
    /// fired, or was cancelled before. The answer is final at once. The callback of a pending timer
    /// is dropped here, before the call returns.
    ///
    /// A recurring timer can be cancelled while its callback runs, also by the callback itself. The
    /// call then returns true, and the current occurrence is the last. The callback is dropped
    /// after it, where it ran or on the `Timer`'s thread. A callback that waits at an
    /// [`Executor`](crate::Executor) then does not run: its [`Job`](crate::Job) drops it.
    ///
    /// # Panics
    ///
    /// If the callback panics when it is dropped; the timer is cancelled. While another panic
    /// unwinds the thread, this one is counted and [reported](crate::TimerBuilder::on_panic)
    /// instead. A panic in the drop of a schedule is always counted and reported.
    ///
    /// # Performance
    ///
    /// O(1), lock-free. It allocates nothing, except usually when a thread uses the shard for the
    /// first time.
    pub fn cancel(&self, key: TimerKey) -> bool {
        let Some(handle) = self.home_of(key) else { return false };
        // A panic is one in a drop, so the timer was cancelled.
        handle.guard.run_for_caller(|| cancel_in(handle, key)).unwrap_or(true)
    }

    /// Makes a pending timer fire when `delay` has passed from now, and returns the key that the
    /// timer has then.
    ///
    /// Returns `None` if the timer has fired, is being fired, was cancelled before, or the `Timer`
    /// has been shut down. If the system gives no memory for a move, the timer keeps its deadline
    /// and its key. A recurring timer continues from the new deadline: its schedule takes it for
    /// the time at which the timer was due.
    ///
    /// # Performance
    ///
    /// O(1), lock-free. To a later time it is usually one compare-and-swap, and the key stays the
    /// same. A recurring timer always moves to another node and gets a new key.
    #[must_use = "the timer may have another key from now on; the former one then finds nothing"]
    pub fn reschedule_after(&self, key: TimerKey, delay: Duration) -> Option<TimerKey> {
        let handle = self.home_of(key)?;
        reschedule_in(handle, key, handle.tick_after(delay))
    }

    /// Makes a pending timer fire at `deadline`, by the `Timer`'s clock; as
    /// [`reschedule_after`](Self::reschedule_after).
    #[must_use = "the timer may have another key from now on; the former one then finds nothing"]
    pub fn reschedule_at(&self, key: TimerKey, deadline: Instant) -> Option<TimerKey> {
        let handle = self.home_of(key)?;
        reschedule_in(handle, key, handle.tick_for(deadline))
    }

    /// Cancels timers as [`cancel`](Self::cancel) does, and returns how many of them will not fire
    /// (again).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::Timer;
    ///
    /// let timer = Timer::new()?;
    /// let hour = Duration::from_secs(3600);
    /// let keys: Vec<_> = (0..100).map(|_| timer.schedule_after(hour, || ())).collect::<Result<_, _>>()?;
    /// timer.cancel(keys[5]);
    /// assert_eq!(timer.cancel_batch(keys), 99);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As [`cancel`](Self::cancel): the first panic is the caller's, after the other timers are
    /// cancelled, and the others are counted and reported. Also if `keys` panics: the last keys
    /// that it has yielded, up to eight, are then left pending.
    ///
    /// # Performance
    ///
    /// As [`Scheduler::cancel_batch`](crate::Scheduler::cancel_batch).
    pub fn cancel_batch(&self, keys: impl IntoIterator<Item = TimerKey>) -> usize {
        let mut keys = Ahead::new(keys.into_iter());
        let prefetch = |&key: &TimerKey| {
            self.home_of(key).into_iter().for_each(|handle| handle.scheduler.prefetch(key.key()));
        };
        let (mut cancelled, mut panics) = (0, FirstPanic::default());
        while let Some(key) = keys.next(prefetch) {
            let Some(handle) = self.home_of(key) else { continue };
            let cancel = || cancel_in(handle, key);
            let done =
                if panics.takes_next() { panics.catch(cancel) } else { handle.guard.run(None, cancel) };
            // A panic is one in a drop, so the timer was cancelled.
            cancelled += usize::from(done.unwrap_or(true));
        }
        panics.resume();
        cancelled
    }

    /// Returns a guard that cancels the timer when it is dropped.
    ///
    /// The guard of a timer that has ended, or of another [`Timer`]'s key, does nothing. A
    /// [reschedule](Self::reschedule_after) by the key may give the timer another key, which the
    /// guard does not know. So reschedule by the guard ([`CancelGuard::reschedule_after`]).
    ///
    /// # Performance
    ///
    /// O(1), without allocation.
    pub fn guard(&self, key: TimerKey) -> CancelGuard {
        CancelGuard { key, handle: self.home_of(key).cloned() }
    }

    /// Returns whether a timer is pending: neither fired nor cancelled. A recurring timer is
    /// pending also while its callback runs.
    ///
    /// While other threads use the `Timer`, the answer is that of some moment during the call.
    /// After `false` it is always `false`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::{ManualClock, Timer};
    ///
    /// let clock = ManualClock::new();
    /// let timer = Timer::builder().clock(clock.clone()).build()?;
    /// let key = timer.schedule_after(Duration::from_secs(5), || ())?;
    /// assert!(timer.is_pending(key));
    /// assert_eq!(timer.deadline(key), Some(timer.now() + Duration::from_secs(5)));
    ///
    /// clock.advance(Duration::from_secs(5));
    /// assert!(!timer.is_pending(key));
    /// assert_eq!(timer.deadline(key), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Performance
    ///
    /// O(1), lock-free.
    #[must_use]
    pub fn is_pending(&self, key: TimerKey) -> bool {
        let Some(handle) = self.home_of(key) else { return false };
        if key.recurs() {
            handle.scheduler.is_alive(key.key())
        } else {
            handle.scheduler.is_pending(key.key())
        }
    }

    /// Returns when a pending timer is due, rounded up to a tick.
    ///
    /// Returns `None` if the timer has fired or was cancelled, while the callback of a recurring
    /// timer runs, and if the system's `Instant` cannot represent the time.
    ///
    /// # Performance
    ///
    /// O(1), lock-free.
    #[must_use]
    pub fn deadline(&self, key: TimerKey) -> Option<Instant> {
        let handle = self.home_of(key)?;
        let tick = handle.scheduler.deadline(key.key())?;
        handle.time.instant(handle.time.start_of(tick))
    }
}

/// Makes a timer of that shard fire at `tick`, and returns its key from then on.
fn reschedule_in(handle: &ShardHandle, key: TimerKey, tick: Tick) -> Option<TimerKey> {
    let (scheduler, mut place) = (&handle.scheduler, None);
    let look =
        |task: &Task| place = Membership::of(task).map(|member| (member.members.clone(), member.number));
    let moved = if key.recurs() {
        scheduler.relocate(key.key(), tick, look, |moved| moved).map(TimerKey::recurring)
    } else {
        scheduler.reschedule_and(key.key(), tick, look, |moved| moved).map(TimerKey::once)
    }?;
    // A member of a group stays one, or is cancelled with the group.
    let cancelled = place.and_then(|(members, number)| members.fill(number, scheduler, moved));
    let is_cancelled = cancelled.map(|task| task.discard(&handle.guard, None)).is_some();
    (!is_cancelled).then_some(moved)
}

/// Cancels a timer of that shard. The callback is dropped here, or the sleep woken: both may panic.
#[inline]
fn cancel_in(handle: &ShardHandle, key: TimerKey) -> bool {
    if !key.recurs() {
        let cancelled = handle.scheduler.cancel(key.key());
        return cancelled.map(|mut task| task.take_waker().map(Waker::wake)).is_some();
    }
    let mut stopped = handle.scheduler.stop(key.key());
    if let Stopped::Pending(task) = &mut stopped {
        handle.guard.run(None, || task.callback_mut().map(TaskBody::drop_schedule));
    }
    !matches!(stopped, Stopped::Gone)
}

/// Cancels a timer when it is dropped. Made by [`Timer::guard`].
///
/// The guard does not keep the [`Timer`] from being shut down. A panic in the drop of the cancelled
/// callback is counted and reported, like a panic in a callback that fires.
///
/// # Examples
///
/// A limit on a piece of work, however the work ends:
///
/// ```
/// use std::time::Duration;
/// use shardwheel::Timer;
///
/// fn work(timer: &Timer) -> Result<(), Box<dyn std::error::Error>> {
///     let limit = timer.schedule_after(Duration::from_secs(60), || eprintln!("too slow"))?;
///     let _guard = timer.guard(limit);
///     "no number".parse::<u8>()?; // returns early: the limit is cancelled
///     Ok(())
/// }
///
/// let timer = Timer::new()?;
/// assert!(work(&timer).is_err());
/// assert_eq!(timer.stats().pending, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "the timer is cancelled when the guard is dropped"]
pub struct CancelGuard {
    key: TimerKey,
    /// The timer's shard; `None` if the key is of another [`Timer`], or once it is detached.
    handle: Option<Arc<ShardHandle>>,
}

impl CancelGuard {
    /// Returns the timer's key.
    #[must_use]
    pub fn key(&self) -> TimerKey {
        self.key
    }

    /// Makes the timer fire when `delay` has passed from now; as [`Timer::reschedule_after`]. The
    /// guard has the timer's new key. Returns false if there is no such timer any more.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use shardwheel::Timer;
    ///
    /// let timer = Timer::new()?;
    /// let mut limit = timer.guard(timer.schedule_after(Duration::from_secs(60), || ())?);
    /// assert!(limit.reschedule_after(Duration::from_secs(30)));
    /// drop(limit);
    /// assert_eq!(timer.stats().pending, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reschedule_after(&mut self, delay: Duration) -> bool {
        self.reschedule(|handle| handle.tick_after(delay))
    }

    /// Makes the timer fire at `deadline`; as [`reschedule_after`](Self::reschedule_after).
    pub fn reschedule_at(&mut self, deadline: Instant) -> bool {
        self.reschedule(|handle| handle.tick_for(deadline))
    }

    fn reschedule(&mut self, tick: impl FnOnce(&ShardHandle) -> Tick) -> bool {
        let Some(handle) = &self.handle else { return false };
        let moved = reschedule_in(handle, self.key, tick(handle));
        self.key = moved.unwrap_or(self.key);
        moved.is_some()
    }

    /// Returns the key, and cancels nothing.
    pub fn detach(mut self) -> TimerKey {
        self.handle = None;
        self.key
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        if let Some(handle) = &self.handle {
            handle.guard.run(None, || cancel_in(handle, self.key));
        }
    }
}

impl fmt::Debug for CancelGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelGuard").field("key", &self.key).finish_non_exhaustive()
    }
}
