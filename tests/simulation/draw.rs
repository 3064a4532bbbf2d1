//! Where random cases come from: a seed, or bytes that a property test or a fuzzer chooses.

use fastrand::Rng;

use crate::bytes::Bytes;

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

/// What chooses a case.
pub(crate) enum Choices<'a> {
    Seed(Rng),
    Bytes(Bytes<'a>),
}

impl Choices<'_> {
    /// Whether nothing is left to choose from.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self, Self::Bytes(bytes) if bytes.is_empty())
    }

    pub(crate) fn is_seed(&self) -> bool {
        matches!(self, Self::Seed(_))
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        match self {
            Self::Seed(rng) => rng.usize(..limit),
            Self::Bytes(bytes) if limit <= 256 => usize::from(bytes.byte()) % limit,
            Self::Bytes(bytes) => (bytes.wide() % limit as u64) as usize,
        }
    }

    /// True once in `times` calls, on average.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// A random index, if the list is not empty.
    pub(crate) fn any(&mut self, len: usize) -> Option<usize> {
        (len > 0).then(|| self.below(len))
    }

    /// A number of ticks; a seed draws at most `bits` bits.
    pub(crate) fn ticks(&mut self, bits: u32) -> u64 {
        match self {
            Self::Seed(rng) => magnitude(rng, bits),
            Self::Bytes(bytes) => bytes.ticks(),
        }
    }
}
