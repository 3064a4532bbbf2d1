//! The user's name for a timer of a shard, and the numbers that tell shards apart.

use std::fmt;
use std::num::NonZeroU64;

use crate::shard::node::NodeId;
use crate::sync::Ordering;
use crate::sync::plain::AtomicU64;

/// Names a timer of one shard. Small and `Copy`; a stale key is harmless.
///
/// A key holds the shard's number, the node that the timer is in, and a generation of 64 bits. The
/// generation tells the timer from all others that the node has held or will hold. A key whose
/// timer has ended never finds a timer again. A key that is passed to another shard finds nothing
/// either. (A shard's number has 31 bits. The numbers repeat after 2^31 shards in one process,
/// about two billion.)
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// From the highest bit down: [`Timer`](crate::Timer)'s mark (1 bit), the shard's number (31
    /// bits), the node (32 bits). The key is two words in all, so it is passed in registers: a
    /// value that is written in parts and read as a whole waits for the parts.
    place: NonZeroU64,
    pub(crate) generation: u64,
}

const MARK: u64 = 1 << 63;

impl Key {
    #[inline]
    pub(crate) fn new(shard: ShardId, node: NodeId, generation: u64) -> Self {
        Self { place: shard.0 | u64::from(node), generation }
    }

    #[inline]
    pub(crate) fn is_of(self, shard: ShardId) -> bool {
        (self.place.get() ^ shard.0.get()) >> NodeId::BITS == 0
    }

    #[inline]
    pub(crate) fn node(self) -> NodeId {
        self.place.get() as NodeId
    }

    /// The difference between the number of the timer's shard and that of `first`, modulo 2^31.
    #[inline]
    pub(crate) fn shards_after(self, first: ShardId) -> usize {
        ((self.place.get().wrapping_sub(first.0.get()) & !MARK) >> NodeId::BITS) as usize
    }

    /// The same key with the mark. No shard accepts a marked key.
    pub(crate) fn marked(self) -> Self {
        Self { place: self.place | MARK, ..self }
    }

    pub(crate) fn is_marked(self) -> bool {
        self.place.get() & MARK != 0
    }

    /// The same key without the mark.
    #[inline]
    pub(crate) fn unmarked(self) -> Self {
        // Never zero: a shard's number is not zero.
        NonZeroU64::new(self.place.get() & !MARK).map_or(self, |place| Self { place, ..self })
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("shard", &((self.place.get() & !MARK) >> NodeId::BITS))
            .field("node", &self.node())
            .field("generation", &self.generation)
            .finish()
    }
}

/// Tells the shards of a process apart: a number of 31 bits, stored above the 32 bits of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardId(NonZeroU64);

impl ShardId {
    /// Takes `shards` consecutive numbers and returns the first. No shard has the number 0, and the
    /// numbers do not pass the largest.
    pub(crate) fn block(shards: usize) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let shards = shards as u64;
        loop {
            // Ordering: Relaxed, only the number matters.
            let next = NEXT.fetch_add(shards, Ordering::Relaxed);
            if let Some(first) = Self::first_of(next, shards) {
                return first;
            }
        }
    }

    /// The first number of the block that starts at the count `next`, which does not wrap when the
    /// numbers do. `None` if the block would contain 0 or pass the largest number.
    fn first_of(next: u64, shards: u64) -> Option<Self> {
        const NUMBERS: u64 = 1 << 31;
        let first = next % NUMBERS;
        let fits = first + shards <= NUMBERS;
        NonZeroU64::new(first << NodeId::BITS).filter(|_| fits).map(Self)
    }

    /// The number `ahead` after this one, in the same block.
    pub(crate) fn after(self, ahead: usize) -> Self {
        Self(self.0.saturating_add((ahead as u64) << NodeId::BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_numbers_lies_between_none_and_the_largest() {
        let first_of =
            |next, shards| ShardId::first_of(next, shards).map(|ShardId(first)| first.get() >> NodeId::BITS);
        assert_eq!((first_of(1, 5), first_of(9, 1)), (Some(1), Some(9)));
        let largest = (1 << 31) - 1;
        for (shards, ahead) in [(1, 0), (3, 2)] {
            assert_eq!(first_of(largest - ahead, shards), Some(largest - ahead));
            assert_eq!(first_of(largest - ahead, shards + 1), None);
        }
        assert_eq!((first_of(largest + 1, 1), first_of(largest + 2, 1)), (None, Some(1)));
    }

    #[test]
    fn a_key_is_small_and_so_is_its_option() {
        assert_eq!(size_of::<Key>(), 16);
        assert_eq!(size_of::<Option<Key>>(), 16);
    }

    #[test]
    fn a_key_says_what_it_was_made_of() {
        let first = ShardId::block(3);
        for ahead in 0..3 {
            let shard = first.after(ahead);
            let key = Key::new(shard, NodeId::MAX, 7);
            assert!(key.is_of(shard));
            assert!(!key.is_of(first.after((ahead + 1) % 3)));
            assert_eq!((key.node(), key.shards_after(first)), (NodeId::MAX, ahead));
        }
    }

    #[test]
    fn a_marked_key_is_of_no_shard() {
        let shard = ShardId::block(1);
        let key = Key::new(shard, 5, 7);
        let marked = key.marked();
        assert!(!marked.is_of(shard) && marked.is_marked() && !key.is_marked());
        assert_eq!((marked.unmarked(), key.unmarked()), (key, key));
        assert_eq!(marked.shards_after(shard), 0);
    }
}
