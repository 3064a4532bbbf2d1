//! Nodes that the advancer has freed, on their way back to the free bits.

use std::ops::Range;

use super::rights::{FreeWord, InHand};
use crate::hardware;
use crate::shard::memory::free_bits::WORD_NODES;
use crate::shard::node::{NodeId, Vacant};
use crate::shard::wheel::bitset::Bitmap;

/// The right to a free node that is in no list. A `Freed` that is dropped leaves the node unused
/// until the shard ends.
#[derive(Debug)]
pub(crate) struct Freed(NodeId);

impl Freed {
    /// A node that a test has taken.
    #[cfg(all(test, not(shardwheel_loom)))]
    pub(in crate::shard::memory) fn of(id: NodeId) -> Self {
        Self(id)
    }

    pub(crate) fn id(&self) -> NodeId {
        self.0
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

/// Freed nodes, as a bitmap: they come out in memory order, whatever the order in which they were
/// added.
///
/// Timers that were scheduled together often fire together, and their nodes lie side by side. So an
/// empty bitmap begins at the first word that is added, less `below`: a distance that leaves room
/// for earlier words. Its size then follows from the span of its nodes, not from their distance to
/// the slab's first node. A large bitmap takes long to make.
pub(crate) struct FreedNodes {
    /// Nodes, counted from the first one of word `base`.
    ids: Bitmap,
    base: usize,
    /// How far below its first word a set of nodes has reached, at most.
    below: usize,
    count: usize,
    /// All words of `ids` before this one are empty. 0 unless words are being taken out.
    from: usize,
}

impl FreedNodes {
    pub(in crate::shard::memory) fn new() -> Self {
        Self { ids: Bitmap::new(0), base: 0, below: 0, count: 0, from: 0 }
    }

    pub(in crate::shard::memory) fn count(&self) -> usize {
        self.count
    }

    /// The size of the bitmap, in words.
    pub(in crate::shard::memory) fn words(&self) -> usize {
        self.ids.len()
    }

    /// The number of words with nodes. O(words / 64).
    pub(in crate::shard::memory) fn words_in_use(&self) -> usize {
        self.ids.words_in_use()
    }

    /// Prefetches the node's word.
    #[inline]
    pub(in crate::shard::memory) fn prefetch(&self, node: &Freed) {
        hardware::prefetch_for_writing(
            self.ids.address((node.0 as usize / WORD_NODES).wrapping_sub(self.base)),
        );
    }

    /// Adds a node.
    #[inline]
    pub(in crate::shard::memory) fn add(&mut self, Freed(id): Freed) {
        let word = id as usize / WORD_NODES;
        if word.wrapping_sub(self.base) >= self.ids.len() {
            self.make_room(word);
        }
        self.ids.insert(id as usize - self.base * WORD_NODES);
        self.count += 1;
    }

    /// Moves or grows the bitmap so that it holds `word`. Takes time proportional to the words
    /// between the nodes.
    #[cold]
    fn make_room(&mut self, word: usize) {
        if self.count == 0 {
            self.base = word.saturating_sub(self.below);
        } else if word < self.base {
            self.below += self.base - word;
        }
        let used = self.ids.words_between();
        let span = self.span_with(word, &used);
        let needs_more = span.len() > self.ids.len();
        if self.count == 0 && !needs_more {
            return;
        }
        let length = if needs_more { span.len().next_power_of_two() } else { self.ids.len() };
        let mut ids = Bitmap::new(length);
        let below = if word < self.base { (length - span.len()) / 2 } else { 0 };
        let base = span.start.saturating_sub(below);
        ids.absorb(&self.ids, used.clone(), self.base + used.start - base);
        (self.ids, self.base) = (ids, base);
    }

    /// The words from the first to the last that must have room: those in use, and `word`.
    fn span_with(&self, word: usize, used: &Range<usize>) -> Range<usize> {
        if cfg!(shardwheel_loom) {
            // Models have words of a few nodes, not of 64 as the bitmap: they begin at the first
            // one.
            0..self.ids.len().max(word + 1)
        } else if used.is_empty() {
            self.base..word + 1
        } else {
            (self.base + used.start).min(word)..(self.base + used.end).max(word + 1)
        }
    }

    /// Takes the nodes of the first word that has any.
    pub(in crate::shard::memory) fn take_word(&mut self) -> Option<FreeWord> {
        let word = self.ids.word_from(self.from)?;
        let bits = self.ids.take_word(word);
        self.count -= bits.count_ones() as usize;
        self.from = if self.count == 0 { 0 } else { word + 1 };
        Some(FreeWord { word: (self.base + word) as u32, bits })
    }

    /// Frees the bitmap. The nodes in it stay unused until the shard ends.
    pub(in crate::shard::memory) fn forget(&mut self) {
        *self = Self::new();
    }

    pub(in crate::shard::memory) fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        let next = |from| self.ids.first_from(from);
        let numbers = std::iter::successors(next(0), move |&number| next(number + 1));
        numbers.map(|number| (self.base * WORD_NODES + number) as NodeId)
    }
}
