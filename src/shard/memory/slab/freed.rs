//! Nodes that the advancer has freed, on their way back to the free bits.

use super::rights::{FreeWord, InHand};
use crate::shard::memory::segment::Segment;
use crate::shard::node::{NodeId, Vacant};
use crate::shard::wheel::bitset::Bitmap;

/// The right to a free node that is in no list. A `Freed` that is dropped leaves the node unused
/// until the shard ends.
#[derive(Debug)]
pub(crate) struct Freed(NodeId);

impl Freed {
    /// A node that a test has taken.
    #[cfg(all(test, not(shardwheel_loom)))]
    pub(crate) fn of(id: NodeId) -> Self {
        Self(id)
    }
}

impl<T> InHand<'_, T> {
    /// The right to a node that has just been freed.
    ///
    /// # Panics
    ///
    /// If `vacant` is the right to another node.
    #[inline]
    pub(crate) fn freed(&self, vacant: Vacant<'_, T>) -> Freed {
        assert!(std::ptr::eq(vacant.node(), self.node), "a right belongs to its node");
        Freed(self.id)
    }
}

/// Freed nodes, a bitmap for each segment: they come out in memory order, whatever the order in
/// which they were added.
pub(crate) struct FreedNodes {
    /// By the segment's place in the table. Without words until a node of that segment is added.
    segments: Vec<Bitmap>,
    count: usize,
    /// Where [`take_word`](Self::take_word) goes on: a segment, and a word in it.
    next: (usize, usize),
}

impl FreedNodes {
    pub(crate) fn new() -> Self {
        Self { segments: Vec::new(), count: 0, next: (0, 0) }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Adds a node of a slab of `T`.
    #[inline]
    pub(crate) fn add<T>(&mut self, Freed(id): Freed) {
        let (segment, node) = (id as usize / Segment::<T>::NODES, id as usize % Segment::<T>::NODES);
        let nodes = match self.segments.get_mut(segment) {
            Some(nodes) if nodes.words() > 0 => nodes,
            _ => self.make_room(segment, Segment::<T>::WORDS),
        };
        nodes.insert(node);
        self.count += 1;
    }

    #[cold]
    fn make_room(&mut self, segment: usize, words: usize) -> &mut Bitmap {
        if segment >= self.segments.len() {
            self.segments.resize_with(segment + 1, || Bitmap::new(0));
        }
        self.segments[segment] = Bitmap::new(words);
        &mut self.segments[segment]
    }

    /// Frees the bitmap of a segment that has been given back.
    pub(crate) fn forget(&mut self, segment: usize) {
        if let Some(nodes) = self.segments.get_mut(segment) {
            *nodes = Bitmap::new(0);
        }
    }

    /// Lets [`take_word`](Self::take_word) begin with the first segment.
    pub(crate) fn rewind(&mut self) {
        self.next = (0, 0);
    }

    /// Whether [`take_word`](Self::take_word) has come to its end.
    pub(crate) fn is_at_end(&self) -> bool {
        self.next.0 >= self.segments.len()
    }

    /// Takes the nodes of the next word that has any, up to the last segment.
    pub(crate) fn take_word<T>(&mut self) -> Option<FreeWord> {
        loop {
            let (segment, from) = self.next;
            let nodes = self.segments.get_mut(segment)?;
            let Some(word) = nodes.word_from(from) else {
                self.next = (segment + 1, 0);
                continue;
            };
            let bits = nodes.take_word(word);
            self.count -= bits.count_ones() as usize;
            self.next.1 = word + 1;
            return Some(FreeWord { word: (segment * Segment::<T>::WORDS + word) as u32, bits });
        }
    }

    /// The nodes; for invariant checks.
    #[cfg(any(test, debug_assertions, fuzzing, shardwheel_loom))]
    pub(crate) fn ids<T>(&self) -> impl Iterator<Item = NodeId> + '_ {
        let of = |(segment, nodes): (usize, &'_ Bitmap)| {
            let numbers: Vec<_> =
                std::iter::successors(nodes.first_from(0), |&number| nodes.first_from(number + 1)).collect();
            numbers.into_iter().map(move |number| (segment * Segment::<T>::NODES + number) as NodeId)
        };
        self.segments.iter().enumerate().flat_map(of)
    }
}
