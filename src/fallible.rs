//! Allocations that may fail: they return `None` if the system has no memory. The standard
//! library's boxes abort the process instead.
//!
//! Also here: what owns allocations through atomic pointers ([`List`], [`BoxSlot`], [`Stack`]).

mod stack;

use std::hint::black_box;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Deref;
use std::ptr::{NonNull, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

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
/// A value of all zero bytes is valid.
pub(crate) unsafe trait Zeroable {
    #[cfg(shardwheel_loom)]
    fn zero() -> Self;
}

macro_rules! zeroable {
    ($type:ty, $zero:expr $(, $param:ident)?) => {
        // SAFETY: an atomic integer or pointer has the representation of its value, and 0 and null
        // are valid. (Models do not rely on this: there `zeroed` calls `zero`.)
        unsafe impl $(<$param>)? Zeroable for $type {
            #[cfg(shardwheel_loom)]
            fn zero() -> Self {
                Self::new($zero)
            }
        }
    };
}

zeroable!(AtomicU64, 0);
zeroable!(AtomicPtr<P>, std::ptr::null_mut(), P);

macro_rules! zeroable_plain {
    ($($type:ty),*) => {$(
        // SAFETY: an integer, or an array of integers.
        unsafe impl Zeroable for $type {
            #[cfg(shardwheel_loom)]
            fn zero() -> Self {
                Default::default()
            }
        }
    )*};
}

zeroable_plain!(u16, u64, [u32; 1], [u32; 16]);

/// Makes a slice of `len` zeroes; `None` if there is no memory. The allocator clears memory that it
/// uses again. Fresh memory comes zeroed from the system, which backs only the pages that are used:
/// there, a table of half a megabyte costs an almost empty slab nothing.
#[cfg(not(shardwheel_loom))]
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

#[cfg(shardwheel_loom)]
pub(crate) fn zeroed<Z: Zeroable>(len: usize) -> Option<Box<[Z]>> {
    Some((0..len).map(|_| Z::zero()).collect())
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

/// Makes a box for a value that comes later; `None` if there is no memory.
pub(crate) fn reserve<T>() -> Option<Box<MaybeUninit<T>>> {
    boxed(MaybeUninit::uninit())
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

/// A counted handle to a value, like an `Arc`, whose allocation may fail. Its counter is the
/// standard library's in every build, so it adds no steps to a model.
pub(crate) struct Handle<T>(NonNull<Counted<T>>);

/// A value and the number of its handles. It exists only in an allocation of [`Handle::new`].
pub(crate) struct Counted<T> {
    /// The pointer that was allocated. A pointer made from a reference must not free it.
    origin: NonNull<Self>,
    handles: AtomicUsize,
    value: T,
}

// SAFETY: as for an `Arc`: the handles share the value, and the last handle, on any thread, drops
// it.
unsafe impl<T: Send + Sync> Send for Handle<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Handle<T> {}

impl<T> Handle<T> {
    /// Makes the first handle. `None` if there is no memory; `value` is then dropped.
    pub(crate) fn new(value: T) -> Option<Self> {
        let counted = boxed(Counted { origin: NonNull::dangling(), handles: AtomicUsize::new(1), value })?;
        let origin = NonNull::from(Box::leak(counted));
        // SAFETY: the pointer was just allocated, and no other reference to the value exists.
        unsafe { (*origin.as_ptr()).origin = origin };
        Some(Self(origin))
    }

    pub(crate) fn into_raw(self) -> *mut Counted<T> {
        ManuallyDrop::new(self).0.as_ptr()
    }

    /// Takes back a handle from its pointer.
    ///
    /// # Safety
    ///
    /// The pointer came from [`into_raw`](Self::into_raw), and each call of `into_raw` is matched
    /// by one call of this at most.
    pub(crate) unsafe fn from_raw(counted: NonNull<Counted<T>>) -> Self {
        Self(counted)
    }

    /// Makes a further handle to a value that has a handle.
    pub(crate) fn further(counted: &Counted<T>) -> Self {
        // Ordering: Relaxed, the reference keeps the value alive meanwhile.
        counted.handles.fetch_add(1, Ordering::Relaxed);
        Self(counted.origin)
    }

    /// Returns the number of handles at some moment.
    pub(crate) fn count(&self) -> usize {
        // Ordering: Relaxed, an estimate.
        self.counted().handles.load(Ordering::Relaxed)
    }

    fn counted(&self) -> &Counted<T> {
        // SAFETY: the value lives as long as a handle exists.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Deref for Counted<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Deref for Handle<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.counted().value
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Self::further(self.counted())
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        // Ordering: AcqRel, pairs with itself: every use through any handle comes before the drop.
        if self.counted().handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: the pointer came from a box, and this was the last handle.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

/// A list that owns its values and only grows. Any thread adds to it.
///
/// Invariant: each pointer in the list came from `Handle::into_raw`, and the list keeps that handle
/// until it is dropped.
pub(crate) struct List<T> {
    head: plain::AtomicPtr<Counted<Linked<T>>>,
    owns: PhantomData<Handle<Linked<T>>>,
}

/// A value in a list. Made by [`List::push`], so it is in one list at most.
pub(crate) struct Linked<T> {
    /// The value added before this one. Written before this one is published, never after.
    next: plain::AtomicPtr<Counted<Self>>,
    value: T,
}

impl<T> Deref for Linked<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> List<T> {
    pub(crate) fn new() -> Self {
        Self { head: plain::AtomicPtr::new(null_mut()), owns: PhantomData }
    }

    /// Adds a value; `None` if there is no memory. Lock-free: another thread's push has succeeded
    /// if the loop repeats.
    pub(crate) fn push(&self, value: T) -> Option<&Counted<Linked<T>>> {
        let handle = Handle::new(Linked { next: plain::AtomicPtr::new(null_mut()), value })?;
        // Ordering: Relaxed, the value is only linked to.
        let mut seen = self.head.load(Ordering::Relaxed);
        let pushed = handle.into_raw();
        // SAFETY: the list keeps the handle for as long as it lives.
        let linked = unsafe { &*pushed };
        loop {
            // Ordering: Relaxed, published below.
            linked.next.store(seen, Ordering::Relaxed);
            // Ordering: Release, pairs with the Acquire of `iter`: the value is complete. So are
            // the values behind it, because each later push continues the release sequences of the
            // earlier ones.
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            match self.head.compare_exchange_weak(seen, pushed, success, failure) {
                Ok(_) => return Some(linked),
                Err(now) => seen = now,
            }
        }
    }

    /// The values, the last one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Counted<Linked<T>>> {
        // Ordering: Acquire, pairs with the Release in `push`.
        let head = self.head.load(Ordering::Acquire);
        // SAFETY: by the invariant, the list keeps the value for as long as it lives.
        let head = unsafe { head.as_ref() };
        std::iter::successors(head, |linked| {
            // Ordering: Relaxed, written before the value was published.
            let next = linked.next.load(Ordering::Relaxed);
            // SAFETY: as above.
            unsafe { next.as_ref() }
        })
    }
}

impl<T> Drop for List<T> {
    fn drop(&mut self) {
        // Ordering: Relaxed, the last owner is here.
        let mut next = NonNull::new(self.head.load(Ordering::Relaxed));
        while let Some(linked) = next {
            // SAFETY: the list's own handle, given up once. There may be further handles.
            let linked = unsafe { Handle::from_raw(linked) };
            // Ordering: Relaxed, as above.
            next = NonNull::new(linked.next.load(Ordering::Relaxed));
        }
    }
}

/// A place for a box, which any thread puts in or takes out.
///
/// Both are SeqCst, because callers rely on their order relative to SeqCst accesses of their own.
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

    /// Puts a box in. Returns the box that was there.
    pub(crate) fn put(&self, value: Box<T>) -> Option<Box<T>> {
        self.swap(Box::into_raw(value))
    }

    /// Takes the box out, if there is one. Of several threads that try to, exactly one gets it.
    pub(crate) fn take(&self) -> Option<Box<T>> {
        self.swap(null_mut())
    }

    /// Stores a pointer that came from `into_raw`, or null.
    fn swap(&self, pointer: *mut T) -> Option<Box<T>> {
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
        drop(self.take());
    }
}

#[cfg(test)]
mod tests;
