//! What a shard's thread sleeps on.
//!
//! [`thread::park`] by itself will not do: its token is the thread's, and user code that parks (a channel, a scope, a
//! runtime) eats it. So what rings says so in a flag first, and the thread goes to sleep only while the flag is clear,
//! with no user code between its last look and the park.
//!
//! The order: the thread clears the flag, then looks at all that it can be rung for, then waits. A ring that comes before
//! the clear is for something that the look finds; one that comes after it leaves the flag set.
//!
//! One exception is left. [`Thread::unpark`] is a swap and, where the thread is parked, a system call. A thread that the
//! system stops between the two, for ever, has taken the wake over from those that ring after it: they find the token
//! there and call nobody. A shard's thread that is parked at that moment sleeps until its next deadline, or until the
//! stopped one goes on.

use std::sync::{Arc, OnceLock};
use std::task::Wake;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::sync::Ordering;
use crate::sync::plain::AtomicBool;

pub(crate) struct Parker {
    notified: AtomicBool,
    /// The thread that waits, if there is one.
    thread: OnceLock<Thread>,
}

impl Parker {
    pub(crate) fn new() -> Self {
        Self { notified: AtomicBool::new(false), thread: OnceLock::new() }
    }

    /// Says that the calling thread is the one that waits.
    pub(crate) fn set_thread(&self) {
        // It is set here alone, once.
        let _ = self.thread.set(thread::current());
    }

    /// Has the thread look around.
    pub(crate) fn notify(&self) {
        // Ordering: Release, pairs with `clear` and `wait`: what the thread is rung for is there. A read-modify-write
        // continues the release sequences of the rings before it, so `clear` sees what all of them were for.
        self.notified.swap(true, Ordering::Release);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Comes before the thread's look at what it can be rung for.
    pub(crate) fn clear(&self) {
        // Ordering: Acquire, pairs with `notify`. A read-modify-write, so that it does not come after the look.
        self.notified.swap(false, Ordering::Acquire);
    }

    /// Waits until it rings, or for that long.
    pub(crate) fn wait(&self, limit: Option<Duration>) {
        let begin = Instant::now();
        while !self.is_notified() {
            match limit.map(|limit| limit.saturating_sub(begin.elapsed())) {
                None => thread::park(),
                Some(Duration::ZERO) => return,
                Some(left) => thread::park_timeout(left),
            }
        }
    }

    fn is_notified(&self) -> bool {
        // Ordering: Acquire, pairs with `notify`.
        self.notified.load(Ordering::Acquire)
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.notify();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.notify();
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
