//! Building a payload in its node, and taking it out of there.
//!
//! A payload larger than a few words is built directly in its node. If it were passed from call to
//! call, each call would copy it, and each copy would wait for the stores of the one before. Until
//! it is in the node, the payload is a *seed*. If the timer is refused, the caller gets the seed
//! back.

use std::mem::MaybeUninit;

/// A seed: becomes a payload.
pub(crate) trait IntoPayload<T>: Sized {
    fn into_payload(self) -> T;

    /// The seed that `payload` was made from.
    fn from_payload(payload: T) -> Self;
}

/// A payload is its own seed.
impl<T> IntoPayload<T> for T {
    #[inline(always)]
    fn into_payload(self) -> T {
        self
    }

    fn from_payload(payload: T) -> Self {
        payload
    }
}

/// A payload still in its node, whose timer has ended or gets another payload. The slot's owner has
/// exclusive access. A payload that is not read is leaked.
pub(crate) struct PayloadSlot<'n, T>(&'n mut MaybeUninit<T>);

impl<'n, T> PayloadSlot<'n, T> {
    /// Makes a slot of a payload cell.
    ///
    /// # Safety
    ///
    /// The cell holds a payload, and nothing reads that payload after this slot.
    #[inline(always)]
    pub(crate) unsafe fn new(place: &'n mut MaybeUninit<T>) -> Self {
        Self(place)
    }

    /// Takes out the whole payload.
    #[inline(always)]
    pub(crate) fn read(self) -> T {
        // SAFETY: the cell holds a payload, by the promise of `new`, and this is its last read.
        unsafe { self.0.assume_init_read() }
    }

    /// Takes out a part of the payload and drops the rest. This loads only the part from memory;
    /// [`read`](Self::read) would copy the whole payload first.
    #[inline(always)]
    pub(crate) fn read_part<R>(self, part: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the cell holds a payload, by the promise of `new`.
        let payload = unsafe { self.0.assume_init_mut() };
        let part = part(payload);
        // SAFETY: as above, and nothing reads the payload after this.
        unsafe { self.0.assume_init_drop() };
        part
    }
}
