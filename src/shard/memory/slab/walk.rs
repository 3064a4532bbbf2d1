//! Walks over all nodes of a slab: for statistics, for invariant checks, and for the shard's end.

use super::Slab;
use crate::shard::memory::epochs::Guard;
use crate::shard::memory::free_bits::WORD_NODES;
use crate::shard::memory::segment::Segment;
use crate::shard::memory::table::Keep;
use crate::shard::node::NodeId;

impl<T> Slab<T> {
    fn all<'g>(&'g self, keep: Keep<'g>) -> impl Iterator<Item = &'g Segment<T>> {
        (0..self.segments.height()).filter_map(move |index| self.segments.get(index, keep))
    }

    /// The number of nodes that have memory, and how many of them are in use, set aside or worn
    /// out.
    pub(crate) fn usage(&self, pinned: &Guard<'_>) -> (usize, usize) {
        self.all(Keep::pinned(pinned)).fold((0, 0), |(capacity, used), segment| {
            let free = &segment.free;
            (capacity + free.capacity(), used + free.capacity().saturating_sub(free.count()))
        })
    }

    /// The number of words of free bits, for [`taken`](Self::taken).
    pub(crate) fn words(&self) -> usize {
        self.segments.height() * Segment::<T>::WORDS
    }

    /// The nodes of a word that are in use or set aside.
    pub(crate) fn taken(&self, word: usize, keep: Keep<'_>) -> Ids {
        let words = Segment::<T>::WORDS;
        let segment = self.segments.get(word / words, keep);
        let bits = segment.map_or(0, |segment| segment.free.taken(word % words));
        // Node 0 has the name `NIL`, and is never handed out.
        Ids { word: word as u32, bits: if word == 0 { bits & !1 } else { bits } }
    }
}

/// The names of nodes of one word, in memory order.
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
