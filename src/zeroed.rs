//! Zeroed memory that is backed by the system only where it is used: a table of half a megabyte costs an
//! almost empty slab nothing. It may be refused, as in [`fallible`](crate::fallible).

use crate::sync::{AtomicPtr, AtomicU64};

/// # Safety
///
/// All bytes zero is a valid value.
pub(crate) unsafe trait Zeroable {
    #[cfg(shardwheel_loom)]
    fn zero() -> Self;
}

macro_rules! zeroable {
    ($type:ty, $zero:expr $(, $param:ident)?) => {
        // SAFETY: an atomic integer, or an atomic pointer, has the representation of its value.
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
        // SAFETY: an integer, or an array of them.
        unsafe impl Zeroable for $type {
            #[cfg(shardwheel_loom)]
            fn zero() -> Self {
                Default::default()
            }
        }
    )*};
}

zeroable_plain!(u64, [u32; 1], [u32; 16]);

/// A slice of so many; none if there is no memory.
#[cfg(not(shardwheel_loom))]
pub(crate) fn slice<Z: Zeroable>(len: usize) -> Option<Box<[Z]>> {
    let layout = std::alloc::Layout::array::<Z>(len).ok()?;
    if layout.size() == 0 {
        return Some(Box::default());
    }
    // SAFETY: the layout is not empty.
    let raw = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<Z>();
    // SAFETY: `len` elements were allocated with the layout that a box of them has, and zero is a
    // valid value of each.
    (!raw.is_null()).then(|| unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(raw, len)) })
}

#[cfg(shardwheel_loom)]
pub(crate) fn slice<Z: Zeroable>(len: usize) -> Option<Box<[Z]>> {
    Some((0..len).map(|_| Z::zero()).collect())
}
