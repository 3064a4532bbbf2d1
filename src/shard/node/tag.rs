//! A number that goes with a timer and means nothing to the shard: what a `Timer` notes of its timers
//! for the feature `introspect`. Without the feature it takes no memory and no instruction.

use crate::sync::{AtomicU64, Ordering};

/// How many numbers a timer has.
const NUMBERS: usize = cfg!(feature = "introspect") as usize;

pub(crate) type Tag = [u64; NUMBERS];

/// The tag in a node. The producer that arms the node writes it, before it stores the word.
#[derive(Default)]
pub(crate) struct TagCell([AtomicU64; NUMBERS]);

impl TagCell {
    #[inline(always)]
    pub(crate) fn set(&self, tag: Tag) {
        // Ordering: Release, pairs with the Acquire in `get`: a thread that reads this tag finds the
        // word of the node's former timer replaced.
        self.0.iter().zip(tag).for_each(|(cell, tag)| cell.store(tag, Ordering::Release));
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> Tag {
        // Ordering: Acquire, pairs with `set`.
        self.0.each_ref().map(|cell| cell.load(Ordering::Acquire))
    }
}
