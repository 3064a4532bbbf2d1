//! A handle that does not keep its timer alive.

use std::sync::{Arc, Weak};

use super::{Inner, Timer};

/// A handle of a [`Timer`] that does not keep the timer from being shut down. Made by
/// [`Timer::downgrade`].
///
/// A recurring callback that holds a [`Timer`] keeps that timer alive for ever; one that holds a
/// `WeakTimer` does not.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel::Timer;
///
/// let timer = Timer::new()?;
/// let weak = timer.downgrade();
/// timer.schedule_every(Duration::from_secs(1), move || {
///     if let Some(timer) = weak.upgrade() {
///         println!("{} timers are pending", timer.stats().pending);
///     }
/// })?;
/// let weak = timer.downgrade();
/// drop(timer); // ends the recurring timer
/// assert!(weak.upgrade().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct WeakTimer {
    inner: Weak<Inner>,
}

impl Timer {
    /// Returns a handle that does not keep the timer from being shut down when the last `Timer` is
    /// dropped.
    #[must_use]
    pub fn downgrade(&self) -> WeakTimer {
        WeakTimer { inner: Arc::downgrade(&self.inner) }
    }
}

impl WeakTimer {
    /// Returns the timer; `None` if its last [`Timer`] handle has been dropped.
    ///
    /// A timer that was shut down by [`shutdown`](Timer::shutdown) is returned as long as a handle
    /// exists. If the returned handle is the last one when it is dropped, that drop shuts the timer
    /// down.
    #[must_use]
    pub fn upgrade(&self) -> Option<Timer> {
        self.inner.upgrade().map(|inner| Timer { inner })
    }
}
