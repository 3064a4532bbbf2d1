//! Walks over all nodes of a slab: for statistics, for invariant checks, and for the shard's end.

use super::Slab;
use crate::shard::memory::epochs::Guard;
use crate::shard::memory::segment::{Segment, WORD_NODES};
use crate::shard::node::NodeId;

impl<T> Slab<T> {
    /// All segments; for who is pinned, or the advancer.
    fn segments(&self) -> impl Iterator<Item = &Segment<T>> {
        (0..self.height()).filter_map(|index| self.load(index))
    }

    /// Nodes there is memory for, and how many of them are in use or set aside.
    pub(crate) fn usage(&self, _pinned: &Guard) -> (usize, usize) {
        self.segments().fold((0, 0), |(capacity, used), segment| {
            let free = &segment.free;
            (capacity + free.capacity(), used + free.capacity().saturating_sub(free.count()))
        })
    }

    /// How many nodes are worn out, in the segments that there are; for invariant checks.
    pub(crate) fn worn(&self) -> usize {
        self.segments().map(|segment| segment.free.worn() as usize).sum()
    }

    /// Words of free bits in all, for [`taken`](Self::taken).
    pub(crate) fn words(&self) -> usize {
        self.height() * Segment::<T>::WORDS
    }

    /// The nodes of a word that are in use or set aside; for the advancer and the last owner.
    pub(crate) fn taken(&self, word: usize) -> Ids {
        let words = Segment::<T>::WORDS;
        let segment = self.load(word / words);
        let bits = segment.map_or(0, |segment| segment.free.taken(word % words));
        // The very first node has the name that stands for none, and is never handed out.
        Ids { word: word as u32, bits: if word == 0 { bits & !1 } else { bits } }
    }
}

/// Names of nodes of one word, in memory order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ids {
    word: u32,
    bits: u64,
}

impl Iterator for Ids {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        let bit = (self.bits != 0).then(|| self.bits.trailing_zeros())?;
        self.bits &= self.bits - 1;
        Some(self.word * WORD_NODES as u32 + bit)
    }
}
