//! A batch: nodes, segments and wheels that wait together for one grace period (see
//! [`recycle`](crate::shard::memory::recycle)). Only the advancer uses a batch.

use crate::shard::memory::segment::Segment;
use crate::shard::memory::slab::{Freed, FreedNodes, Slab};
use crate::shard::memory::slot::{Keep, Unlinked};
use crate::shard::node::NodeId;
use crate::shard::wheel::Wheel;

/// A bitmap of up to this many words (8 KiB) keeps its memory.
const KEPT_WORDS: usize = 1024;

pub(super) struct Batch<T> {
    freed: FreedNodes,
    pub(super) remains: Retired<T>,
}

/// Segments and wheels that have been unlinked.
pub(crate) struct Retired<T> {
    segments: Vec<Unlinked<Segment<T>>>,
    wheels: Vec<Unlinked<Wheel>>,
}

impl<T> Batch<T> {
    pub(super) fn new() -> Self {
        Self { freed: FreedNodes::new(), remains: Retired::default() }
    }

    /// The number of nodes in the batch.
    pub(super) fn nodes(&self) -> usize {
        self.freed.count()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes() == 0 && self.remains.is_empty()
    }

    /// Prefetches the node's word of the bitmap.
    #[inline]
    pub(super) fn prefetch(&self, node: &Freed) {
        self.freed.prefetch(node);
    }

    /// Adds a node. If there is no memory for the bitmap, the node stays unused until the shard
    /// ends.
    #[inline]
    pub(super) fn add(&mut self, node: Freed) {
        self.freed.add(node);
    }

    /// Gives the nodes of up to `words` words to the slab.
    pub(super) fn release(&mut self, slab: &Slab<T>, words: usize, keep: Keep<'_>) {
        slab.give_words((0..words).map_while(|_| self.freed.take_word()), keep);
    }

    /// The number of words that the batch has nodes of. O(words of the bitmap / 64).
    pub(super) fn words(&self) -> usize {
        self.freed.words_in_use()
    }

    /// Frees the bitmap if it is empty, larger than [`KEPT_WORDS`], and more than 8 times as large
    /// as the segments need. The highest segment decides, not how many there are: its nodes would
    /// make the bitmap as large again.
    #[inline]
    pub(super) fn trim(&mut self, slab: &Slab<T>) {
        let is_large = |segments: usize| self.freed.words() > 8 * segments * Segment::<T>::WORDS;
        let may_go = self.nodes() == 0 && self.freed.words() > KEPT_WORDS && is_large(slab.size());
        if may_go && is_large(slab.extent()) {
            self.freed.forget();
        }
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.freed.ids()
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

    /// Takes a segment out.
    pub(super) fn pop_segment(&mut self) -> Option<Unlinked<Segment<T>>> {
        self.segments.pop()
    }

    /// Takes a wheel out.
    pub(super) fn pop_wheel(&mut self) -> Option<Unlinked<Wheel>> {
        self.wheels.pop()
    }

    /// The segments and the wheels.
    pub(crate) fn into_parts(self) -> (Vec<Unlinked<Segment<T>>>, Vec<Unlinked<Wheel>>) {
        (self.segments, self.wheels)
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
    use crate::shard::memory::free_bits::WORD_NODES;
    use crate::shard::memory::slab::FreeWord;

    #[test]
    fn a_batch_is_given_word_by_word_and_used_again() {
        let (epochs, slab, mut free) =
            (Epochs::new(), Slab::<u64>::new().expect("there is memory"), FreeWord::default());
        let who = epochs.join().expect("there is memory");
        let nodes = Segment::<u64>::NODES + 3 * WORD_NODES;
        let mut take = || slab.take(&mut free, &who, 0).expect("there is memory").id();
        let ids: Vec<_> = (0..nodes).map(|_| take()).collect();
        let pinned = who.pin();
        let keep = Keep::pinned(&pinned);
        let mut batch = Batch::new();
        for round in 0..2 {
            // Nodes of the first few words and of another segment, the highest first.
            let is_meant = |id: &NodeId| {
                *id as usize % 3 == round && !(300..Segment::<u64>::NODES).contains(&(*id as usize))
            };
            let mut left: BTreeSet<_> = ids.iter().copied().filter(is_meant).collect();
            left.iter().rev().for_each(|&id| batch.add(Freed::of(id)));
            while let Some(&first) = left.first() {
                assert_eq!((batch.nodes(), batch.ids().collect()), (left.len(), left.clone()));
                let word = first as usize / WORD_NODES;
                batch.release(&slab, 1, keep);
                let taken: Vec<_> = slab.taken(word, keep).collect();
                left.retain(|&id| id as usize / WORD_NODES != word || taken.contains(&id));
            }
            batch.release(&slab, 1, keep);
            assert!(batch.is_empty() && batch.ids().next().is_none());
        }
    }

    /// A large bitmap is freed once its segments are gone; a small one stays.
    #[test]
    fn the_memory_of_a_batch_goes_with_the_segments() {
        let slab = Slab::<u64>::new().expect("there is memory");
        let mut batch = Batch::new();
        let far = [1, KEPT_WORDS * WORD_NODES].map(|id| NodeId::try_from(id).expect("it is a name"));
        far.into_iter().for_each(|id| batch.add(Freed::of(id)));
        batch.trim(&slab);
        assert_eq!(batch.freed.words(), 2 * KEPT_WORDS, "it is in use");
        assert_eq!(far.map(|_| batch.freed.take_word().is_some()), [true; 2]);
        batch.trim(&slab);
        assert_eq!(batch.freed.words(), 0);
        batch.add(Freed::of(1));
        assert!(batch.freed.take_word().is_some());
        batch.trim(&slab);
        assert_eq!(batch.freed.words(), 1);
    }

    /// The bitmap begins where the nodes are, and moves when it is empty; a node before its begin
    /// makes it reach from the first node on.
    #[test]
    fn a_bitmap_is_as_large_as_its_nodes_are_far_apart() {
        let mut batch = Batch::<u64>::new();
        let node = |word: usize| NodeId::try_from(word * WORD_NODES + 3).expect("it is a name");
        let take = |batch: &mut Batch<u64>| batch.freed.take_word().is_some();
        [70_000, 70_001].into_iter().for_each(|word| batch.add(Freed::of(node(word))));
        assert_eq!(batch.ids().collect::<Vec<_>>(), [70_000, 70_001].map(node));
        assert_eq!((take(&mut batch), take(&mut batch), batch.is_empty()), (true, true, true));
        batch.add(Freed::of(node(9)));
        assert_eq!(batch.ids().collect::<Vec<_>>(), [node(9)]);
        assert_eq!((batch.freed.words(), take(&mut batch)), (2, true));
        [5_000, 5_001, 100].into_iter().for_each(|word| batch.add(Freed::of(node(word))));
        assert_eq!(batch.ids().collect::<Vec<_>>(), [100, 5_000, 5_001].map(node));
        assert_eq!((batch.freed.words(), batch.words(), take(&mut batch)), (8_192, 3, true));
        assert_eq!(batch.ids().collect::<Vec<_>>(), [5_000, 5_001].map(node));
    }

    /// A bitmap that is large enough for its nodes moves and does not grow; and once nodes have come
    /// before the first one, the next bitmap begins before its first one.
    #[test]
    fn a_bitmap_has_room_below_its_first_node() {
        let mut batch = Batch::<u64>::new();
        let node = |word: usize| NodeId::try_from(word * WORD_NODES + 3).expect("it is a name");
        let mut add = |words: &[usize]| {
            words.iter().for_each(|&word| batch.add(Freed::of(node(word))));
            let mut sorted = words.to_vec();
            sorted.sort_unstable();
            let nodes: Vec<_> = sorted.into_iter().map(node).collect();
            assert_eq!(batch.ids().collect::<Vec<_>>(), nodes);
            let words = batch.freed.words();
            nodes.iter().for_each(|_| assert!(batch.freed.take_word().is_some(), "a word for each node"));
            words
        };
        // 100 words between the nodes, and then as many in all places around the first one.
        assert_eq!(add(&[1_000, 1_099, 1_050]), 128);
        assert_eq!(add(&[2_000, 1_990, 2_089, 1_980, 2_100]), 128);
        assert_eq!(add(&[3_000, 2_980, 3_107]), 128);
        // Nodes in random order, spread over a million words.
        assert_eq!(add(&[500_000, 3, 999_999]), 1 << 20);
        assert_eq!(add(&[700_000, 7, 999_998, 0]), 1 << 20);
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
        let take = |free: &mut FreeWord| slab.take(free, &who, 0).map(|owned| owned.id());
        (1..=3 * NODES).for_each(|id| assert_eq!(take(&mut free), Ok(id as NodeId)));
        let ids = [NODES / 2, NODES + 1, 2 * NODES + 3].map(|id| id as NodeId);
        let mut batch = Batch::new();
        ids.iter().for_each(|&id| batch.add(Freed::of(id)));
        let [first, .., last] = ids.map(|id| id as usize / WORD_NODES);
        assert_eq!(batch.freed.words(), (last - first + 1).next_power_of_two());
        batch.release(&slab, usize::MAX, Keep::pinned(&who.pin()));
        assert_eq!(ids.map(|_| take(&mut FreeWord::default())), ids.map(Ok));
    }
}
