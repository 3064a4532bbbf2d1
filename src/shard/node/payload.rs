//! Building a payload in its node.
//!
//! A payload larger than a few words is built directly in its node. If it were passed from call to
//! call, each call would copy it, and each copy would wait for the stores of the one before. Until
//! it is in the node, the payload is a *seed*. If the timer is refused, the caller gets the seed
//! back.

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
