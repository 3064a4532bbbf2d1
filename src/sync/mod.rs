//! The one place that says where atomics and cells come from.
//!
//! In a normal build they are the standard library's; with `--cfg shardwheel_loom` they are loom's, which
//! explores the interleavings of a small model exhaustively. The cfg is private to this crate: the global
//! `--cfg loom` would change every dependency as well. With `--cfg shardwheel_stall`, as private, a test stops
//! threads at them (`stall`).

#[cfg(shardwheel_stall)]
pub mod stall;

pub(crate) use imp::{
    Arc, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Life, Token, Trace, UnsafeCell, fence,
    thread_token, yield_now,
};
pub(crate) use std::sync::atomic::Ordering;

/// The standard library's in every build: for statics, which loom's cannot be, and for what belongs to one
/// thread at a time and would only multiply the interleavings of every model (lanes, counters).
pub(crate) mod plain {
    pub(crate) use std::cell::UnsafeCell;
    pub(crate) use std::sync::Arc;
    #[cfg(not(shardwheel_stall))]
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

    #[cfg(shardwheel_stall)]
    pub(crate) use crate::sync::stall::atomics::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
}

#[cfg(not(shardwheel_loom))]
mod imp {
    pub(crate) use std::sync::Arc;
    #[cfg(not(shardwheel_stall))]
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};
    pub(crate) use std::thread::yield_now;

    #[cfg(shardwheel_stall)]
    pub(crate) use crate::sync::stall::atomics::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence,
    };

    /// What a lane's maker and its next owner must have in common: nothing, any thread may take it over.
    #[derive(Debug, PartialEq, Eq)]
    pub(crate) struct Token;

    pub(crate) fn thread_token() -> Token {
        Token
    }

    /// Nothing; in a model it tells of a use that does not come before the end.
    #[derive(Debug)]
    pub(crate) struct Life;

    impl Life {
        pub(crate) fn begin() -> Self {
            Self
        }

        #[inline(always)]
        pub(crate) fn note_use(&self) {}

        #[cfg(feature = "model")]
        pub(crate) fn note_end(&self) {}
    }

    /// Nothing; in a model it makes known that what is in `plain` has changed, or is looked at.
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

    /// `std::cell::UnsafeCell` with the interface of loom's, which has to see each access begin and end.
    #[derive(Debug)]
    #[repr(transparent)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
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
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};
    pub(crate) use loom::thread::yield_now;

    /// A use counts as reading a cell, the end as writing it: loom sees where the two may meet.
    #[derive(Debug)]
    pub(crate) struct Life(UnsafeCell<()>);

    // SAFETY: there is nothing in the cell; loom checks how it is used.
    unsafe impl Sync for Life {}

    impl Life {
        pub(crate) fn begin() -> Self {
            Self(UnsafeCell::new(()))
        }

        pub(crate) fn note_use(&self) {
            self.0.with(|_| ());
        }

        /// Nobody uses it any more.
        pub(crate) fn note_end(&self) {
            self.0.with_mut(|_| ());
        }
    }

    impl Drop for Life {
        fn drop(&mut self) {
            self.note_end();
        }
    }

    /// loom tries another order of two steps only where it sees that they touch the same thing; so changes of
    /// what it does not see, and looks at it, touch this: *before* they happen, for the order is that of the steps that
    /// loom sees, each with what follows it up to the next.
    ///
    /// And of those who have touched a thing it remembers the last one only. Where a thread looks at an atomic and then
    /// changes it, another's look before both goes unnoticed; a trace between the two steps makes up for that.
    #[derive(Debug)]
    pub(crate) struct Trace(AtomicU32);

    impl Trace {
        pub(crate) fn begin() -> Self {
            Self(AtomicU32::new(0))
        }

        pub(crate) fn note_change(&self) {
            // Ordering: Relaxed, it is to be seen, and to order nothing.
            self.0.fetch_add(1, super::Ordering::Relaxed);
        }

        pub(crate) fn note_look(&self) {
            // Ordering: Relaxed, as above.
            self.0.load(super::Ordering::Relaxed);
        }
    }

    /// What a lane's maker and its next owner must have in common: models do not look into lanes, so they
    /// would not see that one thread's writes come before the other's reads.
    pub(crate) use loom::thread::ThreadId as Token;

    pub(crate) fn thread_token() -> Token {
        loom::thread::current().id()
    }
}
