//! A guard that cancels a timer when it is dropped.

use std::fmt;
use std::sync::Arc;

use super::shard_handle::ShardHandle;
use super::{Timer, TimerKey, cancel_in};

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

impl Timer {
    /// Returns a guard that cancels the timer when it is dropped.
    ///
    /// The guard of a timer that has ended, or of another [`Timer`]'s key, does nothing. A
    /// reschedule that gives the timer another key leaves the guard without it: detach the key,
    /// reschedule, and guard the new key.
    ///
    /// # Performance
    ///
    /// O(1), without allocation.
    pub fn guard(&self, key: TimerKey) -> CancelGuard {
        CancelGuard { key, handle: self.inner.home_of(key).cloned() }
    }
}

impl CancelGuard {
    /// Returns the timer's key.
    #[must_use]
    pub fn key(&self) -> TimerKey {
        self.key
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
            handle.run_guarded(|| cancel_in(handle, self.key));
        }
    }
}

impl fmt::Debug for CancelGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelGuard").field("key", &self.key).finish_non_exhaustive()
    }
}
