//! Records which thread waits for which, where user code may make the call that waits, so that no
//! threads wait for each other in a circle.
//!
//! A shutdown waits for the threads that run the timer's callbacks. A manual clock's `advance`
//! waits for the thread that drives the clock. Callbacks may make both calls, so the thread that is
//! waited for may itself wait. Each such wait is recorded here before it begins. A wait that would
//! close a circle is refused, and its caller takes another path.
//!
//! Each thread waits for at most one other thread at a time, so the recorded waits form chains, and
//! no circle is ever recorded. Only calls that wait for a thread are recorded: a short lock does no
//! harm.
//!
//! Threads have their own numbers here, because [`std::thread::current`] cannot be used in the
//! destructor of a thread-local.

use std::cell::Cell;
use std::sync::Mutex;

use super::unpoisoned;
use crate::sync::Ordering;
use crate::sync::plain::AtomicU64;

/// The number of a thread, unique in the process; 0 is no thread.
pub(crate) type ThreadNumber = u64;

/// The calling thread's number. Nothing here has a destructor, so a thread can call this at any
/// time in its life.
pub(crate) fn this_thread() -> ThreadNumber {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static OWN: Cell<ThreadNumber> = const { Cell::new(0) };
    }
    if OWN.get() == 0 {
        // Ordering: Relaxed, only the number matters; it publishes nothing.
        OWN.set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    OWN.get()
}

/// Pairs of the waiting thread and the thread that it waits for.
static WAITS: Mutex<Vec<(ThreadNumber, ThreadNumber)>> = Mutex::new(Vec::new());

/// Records that the calling thread waits for another thread, until it is dropped.
#[must_use = "the wait is over when it is dropped"]
pub(crate) struct Wait {
    waiter: ThreadNumber,
}

impl Wait {
    /// Records that the calling thread is about to wait for `other`. `None` if `other` already
    /// waits for the calling thread, directly or through other threads.
    ///
    /// If two threads are about to wait for each other, the second call is refused.
    pub(crate) fn begin(other: ThreadNumber) -> Option<Self> {
        let waiter = this_thread();
        let mut waits = unpoisoned(WAITS.lock());
        while waits.try_reserve(1).is_err() {
            // No memory to record the wait: retry until there is.
            drop(waits);
            std::thread::yield_now();
            waits = unpoisoned(WAITS.lock());
        }
        let next = |thread: &ThreadNumber| waits.iter().find(|(of, _)| of == thread).map(|&(_, on)| on);
        if std::iter::successors(Some(other), next).any(|thread| thread == waiter) {
            return None;
        }
        waits.push((waiter, other));
        Some(Self { waiter })
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut waits = unpoisoned(WAITS.lock());
        if let Some(at) = waits.iter().position(|&(of, _)| of == self.waiter) {
            waits.swap_remove(at);
        }
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use super::*;

    /// Numbers that no thread has.
    const OTHERS: [ThreadNumber; 3] = [u64::MAX - 2, u64::MAX - 1, u64::MAX];

    #[test]
    fn a_wait_that_closes_a_circle_is_refused() {
        let me = this_thread();
        let [first, second, third] = OTHERS;
        assert!(Wait::begin(me).is_none());
        unpoisoned(WAITS.lock()).extend([(first, second), (second, me)]);
        assert!(Wait::begin(first).is_none() && Wait::begin(second).is_none());
        drop(Wait::begin(third).expect("it waits for nobody"));
        unpoisoned(WAITS.lock()).retain(|&(of, _)| of != second);
        drop(Wait::begin(first).expect("the circle is open"));
        unpoisoned(WAITS.lock()).retain(|&(of, _)| of != first);
    }
}
