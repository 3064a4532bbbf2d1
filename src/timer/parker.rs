//! What a driver sleeps on: its thread's parking, or, for a driver without a thread, a task's
//! waker.
//!
//! [`thread::park`] alone is not enough. Its token belongs to the thread, and user code that parks
//! (a channel, a scope, a runtime) consumes it. So a notifier sets a flag first. The driver parks
//! only while the flag is clear, with no user code between its last look at the flag and the park.
//!
//! The order of a sleep: the thread clears the flag, then looks at everything that a notification
//! can be about, then waits. A notification before the clear is about something that the look
//! finds. A notification after the clear leaves the flag set.
//!
//! A driver without a thread does the same, but returns to its caller instead of waiting. A
//! notification takes the task's waker and wakes it. So the driver registers the waker each time
//! that it has cleared the flag, and then looks whether the flag has been set meanwhile: that
//! notification may have come before there was a waker.
//!
//! Any thread sets the flag; the driver clears it, sets its thread, once, and registers its waker.
//!
//! One exception is left. [`Thread::unpark`] is a swap and, if the thread is parked, a system call.
//! If the system stops a notifier between the two for ever, that notifier has taken over the wake
//! from all later notifiers: they find the token set and make no system call. If the driver is
//! parked at that moment, it sleeps until its next deadline, or until the stopped thread continues.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};
use std::time::Duration;

use crate::sync::thread::{self, Thread};
use crate::sync::{AtomicBool, AtomicWaker, Ordering, now};
use crate::unwind::quietly;

/// The longest single park; a longer wait takes several. Windows treats a timeout of 50 days and
/// more as none, and would never end such a park.
const LONGEST_PARK: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) struct Parker {
    notified: AtomicBool,
    /// The thread that waits, once it is known.
    thread: OnceLock<Thread>,
    /// Of a parker without a thread: the task that has registered its waker, if there is one.
    task: AtomicWaker,
}

// No user code runs while a waker is registered or taken, so a panic in it leaves no half change.
impl UnwindSafe for Parker {}
impl RefUnwindSafe for Parker {}

impl Parker {
    pub(crate) fn new() -> Self {
        let (notified, thread, task) = (AtomicBool::new(false), OnceLock::new(), AtomicWaker::new());
        Self { notified, thread, task }
    }

    /// Makes the calling thread the one that waits.
    pub(crate) fn set_thread(&self) {
        // A parker is one thread's: if `set` fails, the thread has called this before.
        let _ = self.thread.set(thread::current());
    }

    /// Makes the next notification wake `waker`, or wakes it at once if there has been one since
    /// the last clear. For one thread at a time.
    pub(crate) fn register(&self, waker: &Waker) {
        self.task.register(waker);
        // A notification that has found no waker has set the flag before.
        if self.is_notified() {
            self.wake_task();
        }
    }

    /// Forgets the waker.
    pub(crate) fn unregister(&self) {
        let waker = self.task.take();
        quietly(|| drop(waker));
    }

    /// Makes the thread look for work.
    pub(crate) fn notify(&self) {
        // Ordering: Release, pairs with `clear` and `is_notified`: what the notification is about
        // is visible. The read-modify-write continues the release sequences of earlier
        // notifications, so `clear` sees what all of them are about.
        self.notified.swap(true, Ordering::Release);
        match self.thread.get() {
            Some(thread) => thread.unpark(),
            None => self.wake_task(),
        }
    }

    /// Wakes the task. The waker is user code, and a producer calls this: a panic ends here.
    fn wake_task(&self) {
        if let Some(waker) = self.task.take() {
            quietly(|| waker.wake());
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
        let begin = now();
        while !self.is_notified() {
            match limit.map(|limit| limit.saturating_sub(now().saturating_duration_since(begin))) {
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

/// A parker is the waker of a task that its thread polls.
impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.notify();
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_notification_is_not_lost_where_its_token_is_eaten() {
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
