//! A batch: nodes, segments and wheels that wait together for one grace period (see
//! [`recycle`](crate::shard::memory::recycle)). Only the advancer uses a batch.

use crate::hardware;
use crate::shard::memory::epochs::Unlinked;
use crate::shard::memory::segment::{Segment, WORD_NODES};
use crate::shard::memory::slab::Slab;
use crate::shard::node::NodeId;
use crate::shard::wheel::Wheel;
use crate::shard::wheel::bitset::Bitmap;

/// A bitmap of up to this many words (8 KiB) keeps its memory.
const KEPT_WORDS: usize = 1024;

pub(super) struct Batch<T> {
    /// The nodes. They are given to the slab in memory order, whatever the order in which they were
    /// added.
    ids: Bitmap,
    nodes: usize,
    /// All words before this one have been given to the slab.
    given: usize,
    pub(super) remains: Retired<T>,
}

/// Segments and wheels that have been unlinked. Dropping this frees them.
pub(crate) struct Retired<T> {
    segments: Vec<Unlinked<Segment<T>>>,
    wheels: Vec<Unlinked<Wheel>>,
}

impl<T> Batch<T> {
    pub(super) fn new() -> Self {
        Self { ids: Bitmap::empty(), nodes: 0, given: 0, remains: Retired::default() }
    }

    /// The number of nodes in the batch.
    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes == 0 && self.remains.is_empty()
    }

    /// Prefetches the node's word of the bitmap.
    #[inline]
    pub(super) fn prefetch(&self, id: NodeId) {
        hardware::prefetch_for_writing(self.ids.address(id as usize / WORD_NODES));
    }

    /// Adds a node. If there is no memory for the bitmap, the node stays unused until the shard
    /// ends.
    #[inline]
    pub(super) fn add(&mut self, id: NodeId) {
        let word = id as usize / WORD_NODES;
        if word >= self.ids.len() && !self.make_room(word) {
            return;
        }
        self.ids.insert(id as usize);
        self.nodes += 1;
    }

    /// Grows the bitmap to hold `word`; false if there is no memory. Takes time proportional to the
    /// words in use before.
    #[cold]
    fn make_room(&mut self, word: usize) -> bool {
        let Some(mut ids) = Bitmap::new((word + 1).next_power_of_two()) else { return false };
        ids.absorb(&self.ids);
        self.ids = ids;
        true
    }

    /// Gives the nodes of up to `words` words to the slab.
    pub(super) fn release(&mut self, slab: &Slab<T>, words: usize) {
        // The segment of the previous word. It is reopened once all its words are given.
        let mut to_open = None;
        for _ in 0..words {
            let Some(word) = self.ids.word_from(self.given) else { break };
            self.given = word + 1;
            let bits = self.ids.take_word(word);
            self.nodes -= bits.count_ones() as usize;
            slab.give(word, bits);
            let segment = word / Segment::<T>::WORDS;
            if let Some(former) = to_open.replace(segment).filter(|&former| former != segment) {
                slab.reopen(former);
            }
        }
        to_open.into_iter().for_each(|last| slab.reopen(last));
        if self.nodes == 0 {
            self.given = 0;
        }
    }

    /// Frees the bitmap if it is empty, larger than [`KEPT_WORDS`], and more than 8 times as large
    /// as the existing segments need.
    #[inline]
    pub(super) fn trim(&mut self, slab: &Slab<T>) {
        if self.nodes == 0
            && self.ids.len() > KEPT_WORDS
            && self.ids.len() > 8 * slab.size() * Segment::<T>::WORDS
        {
            self.ids = Bitmap::empty();
        }
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        let next = |from| self.ids.first_from(from);
        std::iter::successors(next(0), move |&id| next(id + 1)).map(|id| id as NodeId)
    }
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Retired<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.wheels.is_empty()
    }

    /// The number of segments.
    pub(super) fn segments(&self) -> usize {
        self.segments.len()
    }

    /// Reserves memory for that many more segments and wheels; false if there is none.
    pub(super) fn has_room(&mut self, segments: usize, wheels: usize) -> bool {
        self.segments.try_reserve(segments).is_ok() && self.wheels.try_reserve(wheels).is_ok()
    }

    /// Reserves memory to add `more`; false if there is none.
    pub(super) fn make_room_for(&mut self, more: &Self) -> bool {
        self.has_room(more.segments.len(), more.wheels.len())
    }

    /// Adds a segment. The caller has checked that there is [room](Self::has_room).
    pub(super) fn push_segment(&mut self, segment: Unlinked<Segment<T>>) {
        self.segments.push(segment);
    }

    /// Adds a wheel. The caller has checked that there is [room](Self::has_room).
    pub(super) fn push_wheel(&mut self, wheel: Unlinked<Wheel>) {
        self.wheels.push(wheel);
    }

    /// Adds all of `more`. The caller has checked that there is [room](Self::make_room_for).
    pub(super) fn add(&mut self, more: Self) {
        self.segments.extend(more.segments);
        self.wheels.extend(more.wheels);
    }

    /// Frees one segment and one wheel.
    pub(super) fn drop_one(&mut self) {
        drop((self.segments.pop(), self.wheels.pop()));
    }
}

impl<T> Default for Retired<T> {
    fn default() -> Self {
        Self { segments: Vec::new(), wheels: Vec::new() }
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::shard::memory::epochs::Epochs;
    use crate::shard::memory::slab::FreeWord;

    #[test]
    fn a_batch_is_given_word_by_word_and_used_again() {
        let (epochs, slab, mut free) =
            (Epochs::new(), Slab::<u64>::new().expect("there is memory"), FreeWord::default());
        let who = epochs.join().expect("there is memory");
        let nodes = Segment::<u64>::NODES + 3 * WORD_NODES;
        let ids: Vec<_> = (0..nodes).map(|_| slab.take(&mut free, &who).expect("there is memory")).collect();
        let mut batch = Batch::new();
        for round in 0..2 {
            // Nodes of the first few words and of another segment, the highest first.
            let is_meant = |id: &NodeId| {
                *id as usize % 3 == round && !(300..Segment::<u64>::NODES).contains(&(*id as usize))
            };
            let mut left: BTreeSet<_> = ids.iter().copied().filter(is_meant).collect();
            left.iter().rev().for_each(|&id| batch.add(id));
            while let Some(&first) = left.first() {
                assert_eq!((batch.nodes(), batch.ids().collect()), (left.len(), left.clone()));
                let word = first as usize / WORD_NODES;
                batch.release(&slab, 1);
                let taken: Vec<_> = slab.taken(word).collect();
                left.retain(|&id| id as usize / WORD_NODES != word || taken.contains(&id));
            }
            batch.release(&slab, 1);
            assert!(batch.is_empty() && batch.ids().next().is_none());
        }
    }

    /// A large bitmap is freed once its segments are gone; a small one stays.
    #[test]
    fn the_memory_of_a_batch_goes_with_the_segments() {
        let slab = Slab::<u64>::new().expect("there is memory");
        let mut batch = Batch::new();
        batch.add(NodeId::try_from(KEPT_WORDS * WORD_NODES).expect("it is a name"));
        batch.trim(&slab);
        assert_eq!(batch.ids.len(), 2 * KEPT_WORDS, "it is in use");
        batch.ids.take_word(KEPT_WORDS);
        batch.nodes = 0;
        batch.trim(&slab);
        assert_eq!(batch.ids.len(), 0);
        batch.add(1);
        batch.ids.take_word(0);
        batch.nodes = 0;
        batch.trim(&slab);
        assert_eq!(batch.ids.len(), 1);
    }

    /// Nodes given back are found again, in whichever segments they are.
    #[test]
    fn all_segments_of_a_release_are_open_again() {
        type Large = [u8; 4096];
        const NODES: usize = Segment::<Large>::NODES;
        let (epochs, slab) = (Epochs::new(), Slab::<Large>::new().expect("there is memory"));
        let who = epochs.join().expect("there is memory");
        let mut free = FreeWord::default();
        // The last node belongs to a fourth segment; the search has found the first three full.
        (1..=3 * NODES).for_each(|id| assert_eq!(slab.take(&mut free, &who), Ok(id as NodeId)));
        let ids = [NODES / 2, NODES + 1, 2 * NODES + 3].map(|id| id as NodeId);
        let mut batch = Batch::new();
        ids.iter().for_each(|&id| batch.add(id));
        assert_eq!(batch.ids.len(), (ids[2] as usize / WORD_NODES + 1).next_power_of_two());
        batch.release(&slab, usize::MAX);
        assert_eq!(ids.map(|_| slab.take(&mut FreeWord::default(), &who)), ids.map(Ok));
    }
}
