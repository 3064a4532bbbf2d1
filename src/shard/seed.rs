//! What a payload is made of, once its node is at hand.
//!
//! A payload that is larger than a few words is made where it is to lie, not before: handed on from call to call
//! it would be copied each time, and each copy waits for the stores of the one before. Until then it is a seed, and
//! where the timer is not taken the seed comes back.

/// Becomes a payload.
pub(crate) trait Seed<T>: Sized {
    fn grow(self) -> T;

    /// What `payload` has grown from.
    fn of(payload: T) -> Self;
}

/// A payload is its own seed.
impl<T> Seed<T> for T {
    #[inline(always)]
    fn grow(self) -> T {
        self
    }

    fn of(payload: T) -> Self {
        payload
    }
}
