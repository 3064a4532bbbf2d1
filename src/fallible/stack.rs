//! A stack of boxes that any thread pushes to, without an allocation.

use std::marker::PhantomData;
use std::ptr::{NonNull, null_mut};
use std::sync::Mutex;

use crate::sync::{AtomicPtr, Ordering, plain};

/// A stack of boxes. Any thread pushes, without an allocation; a thread takes all at once. Nothing
/// is taken singly while others push, so no pointer is compared that may have been reused.
///
/// Pushes and takes are in one order, and each sees what was written before those that came
/// earlier: both are read-modify-writes of one word, which acquire and release.
///
/// Invariant: each pointer in the stack came from `Box::into_raw`. The stack owns the box.
pub(crate) struct Stack<T> {
    head: AtomicPtr<Stacked<T>>,
    /// It may be sent and shared as a mutex may that holds the boxes.
    owns: PhantomData<Mutex<Option<Box<T>>>>,
}

/// A value and its place in a stack.
pub(crate) struct Stacked<T> {
    /// The value pushed before this one. Written by the owner of the box.
    next: plain::AtomicPtr<Self>,
    pub(crate) value: T,
}

impl<T> Stacked<T> {
    pub(crate) fn boxed(value: T) -> Box<Self> {
        Box::new(Self { next: plain::AtomicPtr::new(null_mut()), value })
    }
}

impl<T> Stack<T> {
    pub(crate) fn new() -> Self {
        Self::from_first(null_mut())
    }

    fn from_first(first: *mut Stacked<T>) -> Self {
        Self { head: AtomicPtr::new(first), owns: PhantomData }
    }

    /// Adds a value. Lock-free: another thread's push has succeeded if the loop repeats.
    pub(crate) fn push(&self, node: Box<Stacked<T>>) {
        let node = Box::into_raw(node);
        // Ordering: Relaxed, the value is only linked to.
        let mut seen = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the box is this thread's until it is published below.
            // Ordering: Relaxed, published below.
            unsafe { &*node }.next.store(seen, Ordering::Relaxed);
            // Ordering: AcqRel. Release pairs with the Acquire of `take_all`, also for the values
            // behind: later pushes continue the release sequences of earlier ones. Acquire pairs
            // with the Release of `take_all`, for callers that look what was written before it.
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            match self.head.compare_exchange_weak(seen, node, success, failure) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Takes all values, the last one first.
    pub(crate) fn take_all(&self) -> Self {
        // Ordering: AcqRel, pairs with that of `push`.
        let all = self.head.swap(null_mut(), Ordering::AcqRel);
        Self::from_first(all)
    }

    /// Takes the value that was pushed last, in its box: it may be larger than the thread's stack.
    /// The caller has the stack of boxes to itself.
    pub(crate) fn pop(&mut self) -> Option<Box<Stacked<T>>> {
        // Ordering: Relaxed, the caller has the stack to itself.
        let first = NonNull::new(self.head.load(Ordering::Relaxed))?;
        // SAFETY: by the invariant a box, and the caller takes it out of the stack.
        let mut node = unsafe { Box::from_raw(first.as_ptr()) };
        // Ordering: Relaxed, as above.
        self.head.store(*node.next.get_mut(), Ordering::Relaxed);
        Some(node)
    }

    /// The same values, the first one first.
    pub(crate) fn reversed(self) -> Self {
        // Ordering: Relaxed, the caller has the stack to itself.
        let (mut rest, mut done) = (self.head.swap(null_mut(), Ordering::Relaxed), null_mut());
        while let Some(node) = NonNull::new(rest) {
            // SAFETY: by the invariant a box, of a stack that this call has to itself.
            let next = unsafe { node.as_ref() };
            // Ordering: Relaxed, as above.
            rest = next.next.swap(done, Ordering::Relaxed);
            done = node.as_ptr();
        }
        Self::from_first(done)
    }
}

impl<T> Drop for Stack<T> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}
