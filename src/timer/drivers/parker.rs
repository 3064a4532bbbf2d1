//! What a driver sleeps on.
//!
//! [`thread::park`] alone is not enough. Its token belongs to the thread, and user code that parks
//! (a channel, a scope, a runtime) consumes it. So a notifier sets a flag first. The driver parks
//! only while the flag is clear, with no user code between its last look at the flag and the park.
//!
//! The order of a sleep: the thread clears the flag, then looks at everything that a notification
//! can be about, then waits. A notification before the clear is about something that the look
//! finds. A notification after the clear leaves the flag set.
//!
//! Any thread sets the flag; the driver clears it and sets `thread`, once.
//!
//! One exception is left. [`Thread::unpark`] is a swap and, if the thread is parked, a system call.
//! If the system stops a notifier between the two for ever, that notifier has taken over the wake
//! from all later notifiers: they find the token set and make no system call. If the driver is
//! parked at that moment, it sleeps until its next deadline, or until the stopped thread continues.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::sync::thread::{self, Thread};
use crate::sync::{AtomicBool, Ordering};

/// The longest single park; a longer wait takes several. Windows treats a timeout of 50 days and
/// more as none, and would never end such a park.
const LONGEST_PARK: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) struct Parker {
    notified: AtomicBool,
    /// The thread that waits, if there is one.
    thread: OnceLock<Thread>,
}

impl Parker {
    pub(crate) fn new() -> Self {
        Self { notified: AtomicBool::new(false), thread: OnceLock::new() }
    }

    /// Makes the calling thread the one that waits.
    pub(crate) fn set_thread(&self) {
        // Called once for each parker, so `set` succeeds.
        let _ = self.thread.set(thread::current());
    }

    /// Makes the thread look for work.
    pub(crate) fn notify(&self) {
        // Ordering: Release, pairs with `clear` and `is_notified`: what the notification is about
        // is visible. The read-modify-write continues the release sequences of earlier
        // notifications, so `clear` sees what all of them are about.
        self.notified.swap(true, Ordering::Release);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Clears the flag; for the thread, before it looks for work.
    pub(crate) fn clear(&self) {
        // Ordering: Acquire, pairs with `notify`. A read-modify-write, so that it does not come
        // after the look.
        self.notified.swap(false, Ordering::Acquire);
    }

    /// Waits until a notification, or until `limit` has passed.
    pub(crate) fn wait(&self, limit: Option<Duration>) {
        let begin = Instant::now();
        while !self.is_notified() {
            match limit.map(|limit| limit.saturating_sub(begin.elapsed())) {
                None => thread::park(),
                Some(Duration::ZERO) => return,
                Some(left) => thread::park_timeout(left.min(LONGEST_PARK)),
            }
        }
    }

    fn is_notified(&self) -> bool {
        // Ordering: Acquire, pairs with `notify`.
        self.notified.load(Ordering::Acquire)
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_not_lost_where_its_token_is_eaten() {
        let parker = Parker::new();
        parker.set_thread();
        parker.clear();
        parker.notify();
        thread::park();
        parker.wait(None);
    }

    #[test]
    fn a_token_that_is_left_over_ends_no_wait() {
        let (parker, begin) = (Parker::new(), Instant::now());
        thread::current().unpark();
        parker.wait(Some(Duration::from_millis(5)));
        assert!(begin.elapsed() >= Duration::from_millis(5));
    }
}
