//! Which thread waits for which, where user code may have called what waits: so that no threads wait for one another in
//! a circle.
//!
//! A shutdown waits for the threads that run the timer's callbacks, and a manual clock's `advance` for the thread that
//! drives the clock. Both may be called by callbacks, so the thread that is waited for may wait in turn. Each such wait
//! is written down here first; the one that would close a circle is refused, and its caller goes another way.
//!
//! Each thread waits for at most one other at a time, so the waits form chains, and no circle is ever written down. All
//! that is a matter of calls that wait: a lock does no harm.
//!
//! Threads have numbers of their own here: [`std::thread::current`] is of no use in the destructor of a thread-local.

use std::cell::Cell;
use std::sync::Mutex;

use super::unpoisoned;
use crate::sync::Ordering;
use crate::sync::plain::AtomicU64;

/// A thread, told from all others of the process; 0 is none.
pub(crate) type ThreadNumber = u64;

/// The calling thread's number. Nothing here has a destructor: it can be asked for at any time in a thread's life.
pub(crate) fn this_thread() -> ThreadNumber {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static OWN: Cell<ThreadNumber> = const { Cell::new(0) };
    }
    if OWN.get() == 0 {
        // Ordering: Relaxed, the number alone matters.
        OWN.set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    OWN.get()
}

/// Who waits, and for whom.
static WAITS: Mutex<Vec<(ThreadNumber, ThreadNumber)>> = Mutex::new(Vec::new());

/// The calling thread waits for another for as long as this lives.
#[must_use = "the wait is over when it is dropped"]
pub(crate) struct Wait {
    waiter: ThreadNumber,
}

impl Wait {
    /// Writes down that the calling thread is about to wait for `other`; none if that one waits for the calling thread,
    /// by itself or through others.
    ///
    /// Where two threads are about to wait for each other, the second to come here is refused.
    pub(crate) fn begin(other: ThreadNumber) -> Option<Self> {
        let waiter = this_thread();
        let mut waits = unpoisoned(WAITS.lock());
        while waits.try_reserve(1).is_err() {
            // There is no memory to write it down: until there is.
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
