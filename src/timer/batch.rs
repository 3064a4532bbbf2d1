//! Cancelling many timers.

use super::{Timer, TimerKey};
use crate::shard::{Ahead, Stopped};
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
    /// If a callback panics when it is dropped; the other timers are cancelled first. If `keys`
    /// panics; the last keys that it has yielded, up to eight, are then left pending.
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
            cancelled += usize::from(self.cancel_catching(key, &mut panics));
        }
        panics.resume();
        cancelled
    }

    fn cancel_catching(&self, key: TimerKey, panics: &mut FirstPanic) -> bool {
        let Some(handle) = self.home_of(key) else { return false };
        if key.recurs() {
            let stopped = handle.scheduler.stop(key.key());
            let is_stopped = !matches!(stopped, Stopped::Gone);
            panics.catch_drop(stopped);
            is_stopped
        } else {
            let task = handle.scheduler.cancel(key.key());
            let is_cancelled = task.is_some();
            panics.catch_drop(task);
            is_cancelled
        }
    }
}
