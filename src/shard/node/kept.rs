//! A timer that the shard's end has kept in its node, and where the node holds what is known of it.
//!
//! The version stays in the word. The low bits of the deadline lie in the word, in the place of the
//! extension; its high bits are the low half of `base`, and the id of the chain's next node is the
//! high half. So a chain of kept timers needs no memory of its own.

use super::NodeId;
use super::state::{KEPT_BITS, Word};
use crate::tick::Tick;

/// A timer that the shard's end has kept in its node.
pub(crate) struct KeptTimer<T> {
    /// The next node of the chain.
    pub(crate) next: NodeId,
    pub(crate) version: u32,
    pub(crate) deadline: Tick,
    pub(crate) payload: T,
}

/// A kept timer's deadline has 61 bits; this stands for all later deadlines. They are 73 years
/// away if a tick is a nanosecond, and out of the range of a timer's time from 8 ns on.
const LAST: Tick = (1 << (KEPT_BITS + u32::BITS)) - 1;

/// The word and `base` of the last node of a chain.
pub(super) fn at_the_end(word: Word, deadline: Tick) -> (Word, u64) {
    let deadline = deadline.min(LAST);
    (word.with_kept_bits(deadline), deadline >> KEPT_BITS)
}

/// The `base` that names the next node.
pub(super) fn followed_by(base: u64, next: NodeId) -> u64 {
    base & u64::from(u32::MAX) | u64::from(next) << u32::BITS
}

/// The kept timer with that payload.
pub(super) fn timer<T>(word: Word, base: u64, payload: T) -> KeptTimer<T> {
    let deadline = (base & u64::from(u32::MAX)) << KEPT_BITS | word.kept_bits();
    let deadline = if deadline == LAST { Tick::MAX } else { deadline };
    KeptTimer { next: (base >> u32::BITS) as NodeId, version: word.version(), deadline, payload }
}
