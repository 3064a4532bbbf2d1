//! Zeroed memory that is backed by the system only where it is used: a table of half a megabyte costs an
//! almost empty slab nothing.

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

#[cfg(not(shardwheel_loom))]
pub(crate) fn slice<Z: Zeroable>(len: usize) -> Box<[Z]> {
    let layout = std::alloc::Layout::array::<Z>(len).expect("tables are small");
    // SAFETY: the layout is not empty: no table is, nor its elements.
    let raw = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<Z>();
    if raw.is_null() {
        std::alloc::handle_alloc_error(layout);
    }
    // SAFETY: `len` elements were allocated with the layout that a box of them has, and zero is a
    // valid value of each.
    unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(raw, len)) }
}

#[cfg(shardwheel_loom)]
pub(crate) fn slice<Z: Zeroable>(len: usize) -> Box<[Z]> {
    (0..len).map(|_| Z::zero()).collect()
}
