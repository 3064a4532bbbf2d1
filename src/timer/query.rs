//! What a user can ask about one timer.

use std::time::Instant;

use super::{Timer, TimerKey};

impl Timer {
    /// Returns whether a timer is pending: neither fired nor cancelled. A recurring timer is
    /// pending also while its callback runs.
    ///
    /// While other threads use the timer, the answer is that of some moment during the call. After
    /// `false` it is always `false`.
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
        let Some(handle) = self.inner.home_of(key) else { return false };
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
        let handle = self.inner.home_of(key)?;
        let tick = handle.scheduler.deadline(key.key())?;
        handle.time.instant(handle.time.start_of(tick))
    }
}
