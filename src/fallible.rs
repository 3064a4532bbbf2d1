//! Allocations that may fail: they return `None` if the system has no memory. The standard
//! library's boxes abort the process instead.
//!
//! Also here: what owns allocations through atomic pointers ([`List`], [`BoxSlot`], [`Stack`]).

mod stack;

use std::hint::black_box;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use crate::sync::{AtomicPtr, AtomicU64, plain};

pub(crate) use stack::{Stack, Stacked};

/// Makes a slice of `len` values; `None` if there is no memory.
pub(crate) fn slice<T>(len: usize, value: impl FnMut() -> T) -> Option<Box<[T]>> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).ok()?;
    values.resize_with(len, value);
    Some(values.into_boxed_slice())
}

/// A type for which zero bytes are a value.
///
/// # Safety
///
/// A value of all zero bytes is valid, and is the default. (Models do not rely on this.)
pub(crate) unsafe trait Zeroable: Default {}

// SAFETY: an atomic integer has the representation of its value, and 0 is valid.
unsafe impl Zeroable for AtomicU64 {}
// SAFETY: likewise, and null is valid.
unsafe impl<P> Zeroable for AtomicPtr<P> {}
// SAFETY: 0 is valid.
unsafe impl Zeroable for u64 {}

/// Makes a slice of `len` zeroes; `None` if there is no memory. The allocator clears memory that it
/// uses again. Fresh memory comes zeroed from the system, which backs only the pages that are used:
/// there, a table of half a megabyte costs an almost empty slab nothing.
#[cfg(not(any(shardwheel_loom, shardwheel_shuttle)))]
pub(crate) fn zeroed<Z: Zeroable>(len: usize) -> Option<Box<[Z]>> {
    let layout = std::alloc::Layout::array::<Z>(len).ok()?;
    if layout.size() == 0 {
        return Some(Box::default());
    }
    // SAFETY: the layout is not empty.
    let raw = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<Z>();
    // SAFETY: `len` elements were allocated with the layout of a boxed slice of that length, and
    // zero is a valid value of each.
    (!raw.is_null()).then(|| unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(raw, len)) })
}

#[cfg(any(shardwheel_loom, shardwheel_shuttle))]
pub(crate) fn zeroed<Z: Zeroable>(len: usize) -> Option<Box<[Z]>> {
    slice(len, Z::default)
}

/// As [`zeroed`], of a fixed length.
pub(crate) fn zeroed_array<Z: Zeroable, const N: usize>() -> Option<Box<[Z; N]>> {
    zeroed(N)?.try_into().ok()
}

/// Moves a value into a box; `None` if there is no memory.
pub(crate) fn boxed<T>(value: T) -> Option<Box<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(1).ok()?;
    values.push(value);
    let one: Box<[T]> = values.into_boxed_slice();
    // SAFETY: a slice of one value has the layout of that value, so its box can become a box of the
    // value.
    Some(unsafe { Box::from_raw(Box::into_raw(one).cast::<T>()) })
}

/// Returns whether the system has `bytes` bytes of memory. For a caller that is about to call code
/// which aborts the process if its allocation fails.
pub(crate) fn has_memory(bytes: usize) -> bool {
    let mut memory = Vec::<u8>::new();
    let has_memory = memory.try_reserve_exact(bytes).is_ok();
    // Keeps the compiler from removing the allocation.
    black_box(&mut memory);
    has_memory
}

/// A list that owns its values and only grows. Any thread adds to it.
///
/// Invariant: each pointer in the list came from `Box::into_raw`, and the list owns the box.
pub(crate) struct List<T> {
    head: plain::AtomicPtr<Linked<T>>,
    owns: PhantomData<Box<Linked<T>>>,
}

struct Linked<T> {
    /// The value added before this one. Written before this one is published, never after.
    next: *mut Self,
    value: T,
}

// SAFETY: as a box of the values; `next` is not written after the value was published.
unsafe impl<T: Send> Send for Linked<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Linked<T> {}

impl<T> List<T> {
    pub(crate) fn new() -> Self {
        Self { head: plain::AtomicPtr::new(null_mut()), owns: PhantomData }
    }

    /// Adds a value; `None` if there is no memory. Lock-free: another thread's push has succeeded
    /// if the loop repeats.
    pub(crate) fn push(&self, value: T) -> Option<&T> {
        // Ordering: Relaxed, the value is only linked to.
        let mut seen = self.head.load(Ordering::Relaxed);
        let pushed = Box::into_raw(boxed(Linked { next: seen, value })?);
        loop {
            // Ordering: Release, pairs with the Acquire of `iter`: the value is complete. So are
            // the values behind it, because each later push continues the release sequences of the
            // earlier ones.
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            match self.head.compare_exchange_weak(seen, pushed, success, failure) {
                // SAFETY: the list keeps the box for as long as it lives.
                Ok(_) => return Some(unsafe { &(*pushed).value }),
                Err(now) => seen = now,
            }
            // SAFETY: it is not published yet.
            unsafe { (*pushed).next = seen };
        }
    }

    /// The values, the last one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        // Ordering: Acquire, pairs with the Release in `push`.
        let head = self.head.load(Ordering::Acquire);
        // SAFETY: by the invariant, null or a box that the list keeps.
        let first = unsafe { head.as_ref() };
        // SAFETY: as above.
        std::iter::successors(first, |linked| unsafe { linked.next.as_ref() }).map(|linked| &linked.value)
    }
}

impl<T> Drop for List<T> {
    fn drop(&mut self) {
        // Ordering: Relaxed, the last owner is here.
        let mut next = self.head.load(Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: by the invariant a box, which the list gives up.
            next = unsafe { Box::from_raw(next) }.next;
        }
    }
}

/// A place for a box, which any thread puts in or takes out.
///
/// The swap is SeqCst, because callers rely on its order relative to SeqCst accesses of their own.
///
/// Invariant: the pointer is null, or came from `Box::into_raw`. The thread that swaps it out owns
/// the box.
pub(crate) struct BoxSlot<T> {
    place: AtomicPtr<T>,
    /// It may be sent and shared as a mutex may that holds the box.
    owns: PhantomData<Mutex<Option<Box<T>>>>,
}

impl<T> BoxSlot<T> {
    pub(crate) fn empty() -> Self {
        Self { place: AtomicPtr::new(null_mut()), owns: PhantomData }
    }

    /// Puts a box in, or none, and takes out the one that was there. Of several threads that take,
    /// exactly one gets a box.
    pub(crate) fn swap(&self, value: Option<Box<T>>) -> Option<Box<T>> {
        let pointer = value.map_or(null_mut(), Box::into_raw);
        // Ordering: SeqCst, see `BoxSlot`. As AcqRel, a swap that puts a box in pairs with the one
        // that takes it out.
        let former = self.place.swap(pointer, Ordering::SeqCst);
        // SAFETY: by the invariant the pointer came from `into_raw`, and this call has swapped it
        // out.
        (!former.is_null()).then(|| unsafe { Box::from_raw(former) })
    }
}

impl<T> Drop for BoxSlot<T> {
    fn drop(&mut self) {
        drop(self.swap(None));
    }
}

#[cfg(test)]
mod tests;
