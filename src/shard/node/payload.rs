//! What a payload is made of, once its node is at hand; and what is made of it when its timer is over.
//!
//! A payload that is larger than a few words is made where it is to lie, not before: handed on from call to call
//! it would be copied each time, and each copy waits for the stores of the one before. Until then it is a seed, and
//! where the timer is not taken the seed comes back.

use std::mem::MaybeUninit;

/// Becomes a payload.
pub(crate) trait IntoPayload<T>: Sized {
    fn into_payload(self) -> T;

    /// What `payload` has grown from.
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

/// A payload whose timer is over, where it lies; whoever has it has it to himself. What is not picked is forgotten.
pub(crate) struct PayloadSlot<'n, T>(&'n mut MaybeUninit<T>);

impl<'n, T> PayloadSlot<'n, T> {
    /// # Safety
    ///
    /// There is a payload, and it is not looked at again.
    #[inline(always)]
    pub(crate) unsafe fn new(place: &'n mut MaybeUninit<T>) -> Self {
        Self(place)
    }

    /// All of it.
    #[inline(always)]
    pub(crate) fn read(self) -> T {
        // SAFETY: there is one, by the promise of `new`, and this is the last look at it.
        unsafe { self.0.assume_init_read() }
    }

    /// A part of it; the rest is dropped. Of a payload of several words this takes the one that is wanted from memory,
    /// where a copy of the whole would have to be made first.
    #[inline(always)]
    pub(crate) fn read_part<R>(self, part: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: as in `pick`.
        let payload = unsafe { self.0.assume_init_mut() };
        let part = part(payload);
        // SAFETY: as in `pick`.
        unsafe { self.0.assume_init_drop() };
        part
    }
}
