//! The source of all atomics and cells.
//!
//! In a normal build they are the standard library's. With `--cfg shardwheel_loom` they are loom's,
//! which explores the interleavings of a small model exhaustively. The cfg is private to this
//! crate, because the global `--cfg loom` would change every dependency as well. So are two others:
//! with `--cfg shardwheel_shuttle` they are Shuttle's, which runs whole timers under random
//! schedules, on a clock of its own; with `--cfg shardwheel_stall` a test stops threads at them
//! (`stall`).

#[cfg(shardwheel_stall)]
#[path = "../../tests/stall/points.rs"]
pub mod stall;

#[cfg(shardwheel_shuttle)]
pub use imp::VirtualClock;
pub(crate) use imp::{
    Arc, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Mutex, MutexGuard, Trace, UnsafeCell,
    fence, hint, model_thread, thread, thread_local, yield_now,
};
#[cfg(feature = "timer")]
pub(crate) use imp::{AtomicWaker, mpsc, now};
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

#[cfg(not(any(shardwheel_loom, shardwheel_shuttle)))]
mod imp {
    #[cfg(feature = "timer")]
    pub(crate) use atomic_waker::AtomicWaker;
    pub(crate) use std::sync::{Arc, Mutex, MutexGuard, mpsc};
    pub(crate) use std::thread::{self, yield_now};
    pub(crate) use std::thread_local;

    pub(crate) use super::atomics::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};

    /// The system's time. Shuttle has a time of its own.
    #[cfg(feature = "timer")]
    #[inline(always)]
    pub(crate) fn now() -> crate::time::Instant {
        crate::time::Instant::now()
    }

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
        pub(crate) fn model_change(&self) {}

        #[inline(always)]
        pub(crate) fn model_look(&self) {}
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
#[path = "../../loom-tests/testing/sync.rs"]
pub(crate) mod imp;
#[cfg(shardwheel_shuttle)]
#[path = "../../loom-tests/testing/shuttle.rs"]
pub(crate) mod imp;
