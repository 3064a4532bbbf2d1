//! Cancelling many timers.

use super::{Timer, TimerKey, cancel_in};
use crate::shard::Ahead;
use crate::unwind::FirstPanic;

impl Timer {
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
        let (mut cancelled, mut panics) = (0, FirstPanic::new());
        while let Some(key) = keys.next(prefetch) {
            let Some(handle) = self.home_of(key) else { continue };
            let cancel = || cancel_in(handle, key);
            let done = if panics.takes_next() { panics.catch(cancel) } else { handle.run_guarded(cancel) };
            // A panic is one in a drop, so the timer was cancelled.
            cancelled += usize::from(done.unwrap_or(true));
        }
        panics.resume();
        cancelled
    }
}
