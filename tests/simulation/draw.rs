//! What is random.

use fastrand::Rng;

/// A number of at most `bits` bits, with all orders of magnitude alike.
pub(crate) fn magnitude(rng: &mut Rng, bits: u32) -> u64 {
    match rng.u32(..=bits) {
        0 => 0,
        drawn => rng.u64(..) >> (u64::BITS - drawn),
    }
}

/// True once in `times` calls, on average.
pub(crate) fn once_in(rng: &mut Rng, times: u32) -> bool {
    rng.u32(..times) == 0
}

/// A random index, if the list is not empty.
pub(crate) fn any(rng: &mut Rng, len: usize) -> Option<usize> {
    (len > 0).then(|| rng.usize(..len))
}
