//! The source of all atomics and cells.
//!
//! In a normal build they are the standard library's. With `--cfg shardwheel_loom` they are loom's,
//! which explores the interleavings of a small model exhaustively. The cfg is private to this
//! crate, because the global `--cfg loom` would change every dependency as well. With `--cfg
//! shardwheel_stall`, also private, a test stops threads at them (`stall`).

#[cfg(shardwheel_stall)]
#[path = "../../tests/stall/points.rs"]
pub mod stall;

#[cfg(feature = "timer")]
pub(crate) use imp::AtomicWaker;
pub(crate) use imp::{
    Arc, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Mutex, MutexGuard, Trace, UnsafeCell,
    fence, hint, model_thread, thread, yield_now,
};
pub(crate) use std::sync::atomic::Ordering;

/// The standard library's types, also in models. For statics, which cannot hold loom's types, and
/// for data that belongs to one thread at a time and would only multiply the interleavings of every
/// model (lanes, counters). A test with `shardwheel_stall` can stop a thread at these atomics too.
pub(crate) mod plain {
    pub(crate) use super::atomics::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
}

#[cfg(shardwheel_stall)]
use stall::atomics;
#[cfg(not(shardwheel_stall))]
use std::sync::atomic as atomics;

#[cfg(not(shardwheel_loom))]
mod imp {
    #[cfg(feature = "timer")]
    pub(crate) use atomic_waker::AtomicWaker;
    pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
    pub(crate) use std::thread::{self, yield_now};

    pub(crate) use super::atomics::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};

    /// Reads what only saves work, or counts. `None` in a model: it is harder without, and ends
    /// sooner.
    #[inline(always)]
    pub(crate) fn hint<H>(read: impl FnOnce() -> H) -> Option<H> {
        Some(read())
    }

    /// In a model, the number of the calling thread.
    pub(crate) fn model_thread() -> Option<usize> {
        None
    }

    /// Empty; in a model it makes changes and reads of `plain` data visible to loom.
    #[derive(Debug)]
    pub(crate) struct Trace;

    impl Trace {
        pub(crate) fn begin() -> Self {
            Self
        }

        #[inline(always)]
        pub(crate) fn note_change(&self) {}

        #[inline(always)]
        pub(crate) fn note_look(&self) {}
    }

    /// `std::cell::UnsafeCell` with the interface of loom's cell, which must observe where each
    /// access begins and ends.
    #[derive(Debug)]
    #[repr(transparent)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        #[cfg(any(all(test, not(fuzzing)), shardwheel_loom, shardwheel_model))]
        pub(crate) fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

#[cfg(shardwheel_loom)]
mod imp {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
    pub(crate) use loom::thread::yield_now;

    /// Parking, with the standard library's names. loom's own `unpark` also ends a wait of the
    /// thread for a lock or for another thread.
    pub(crate) mod thread {
        use loom::sync::{Arc, Condvar, Mutex};

        #[derive(Clone)]
        pub(crate) struct Thread(Arc<(Mutex<bool>, Condvar)>);

        loom::thread_local! {
            static OWN: Thread = Thread(Arc::new((Mutex::new(false), Condvar::new())));
        }

        impl Thread {
            pub(crate) fn unpark(&self) {
                let (token, left) = &*self.0;
                *token.lock().expect("no model panics here") = true;
                left.notify_one();
            }
        }

        pub(crate) fn current() -> Thread {
            OWN.with(Clone::clone)
        }

        pub(crate) fn park() {
            let own = current();
            let (token, left) = &*own.0;
            let mut token = token.lock().expect("no model panics here");
            while !*token {
                token = left.wait(token).expect("no model panics here");
            }
            *token = false;
        }

        /// A model has no time, so the wait is over at once.
        pub(crate) fn park_timeout(_: std::time::Duration) {
            loom::thread::yield_now();
        }

        pub(crate) use park_timeout as sleep;
    }

    /// atomic-waker's type, of which a model sees what matters: a registration and a wake come one
    /// after the other, and the later one acquires what the earlier one has released.
    #[cfg(feature = "timer")]
    pub(crate) struct AtomicWaker(Mutex<Option<std::task::Waker>>);

    #[cfg(feature = "timer")]
    impl AtomicWaker {
        pub(crate) fn new() -> Self {
            Self(Mutex::new(None))
        }

        pub(crate) fn register(&self, waker: &std::task::Waker) {
            *self.0.lock().expect("no model panics here") = Some(waker.clone());
        }

        pub(crate) fn take(&self) -> Option<std::task::Waker> {
            self.0.lock().expect("no model panics here").take()
        }
    }

    pub(crate) fn hint<H>(_: impl FnOnce() -> H) -> Option<H> {
        None
    }

    /// The number of the calling thread. A model ends before the locals of its threads do, so its
    /// threads cannot give numbers back.
    pub(crate) fn model_thread() -> Option<usize> {
        let id = format!("{:?}", loom::thread::current().id());
        Some(id.chars().filter(char::is_ascii_digit).collect::<String>().parse().expect("a number"))
    }

    /// Makes accesses to `plain` data visible to loom.
    ///
    /// loom tries another order of two steps only if both touch the same loom object. So each
    /// change and each read of `plain` data touches a trace, *before* the access: loom orders the
    /// steps that it observes, each together with all that follows it up to the next such step.
    ///
    /// loom also remembers only the last access to each object, by any thread. If a thread reads an
    /// atomic and then changes it, loom misses another thread's read that comes before both. A
    /// trace between the two steps makes up for that.
    #[derive(Debug)]
    pub(crate) struct Trace(AtomicU32);

    impl Trace {
        pub(crate) fn begin() -> Self {
            Self(AtomicU32::new(0))
        }

        pub(crate) fn note_change(&self) {
            // Ordering: Relaxed, loom must observe the access; it orders nothing.
            self.0.fetch_add(1, super::Ordering::Relaxed);
        }

        pub(crate) fn note_look(&self) {
            // Ordering: Relaxed, as above.
            self.0.load(super::Ordering::Relaxed);
        }
    }
}
