//! Nodes, segments and wheels that wait together for a grace period (see [`recycle`](super::recycle)).

use super::node::NodeId;
use super::prefetch;
use super::reclaim::Unlinked;
use super::segment::{Segment, WORD_NODES};
use super::slab::Slab;
use super::wheel::Wheel;

pub(super) struct Batch<T> {
    /// A bit per node, for the words in `touched`.
    bits: Vec<u64>,
    touched: Vec<u32>,
    nodes: usize,
    pub(super) remains: Remains<T>,
}

/// What has been taken out of reach, and is freed when this is dropped.
pub(crate) struct Remains<T> {
    segments: Vec<Unlinked<Segment<T>>>,
    wheels: Vec<Unlinked<Wheel>>,
}

impl<T> Batch<T> {
    pub(super) fn new() -> Self {
        Self { bits: Vec::new(), touched: Vec::new(), nodes: 0, remains: Remains::default() }
    }

    /// How many nodes there are.
    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes == 0 && self.remains.is_empty()
    }

    /// Asks for the node's word of the bitmap.
    #[inline]
    pub(super) fn prefetch(&self, id: NodeId) {
        prefetch::for_writing(self.bits.as_ptr().wrapping_add(id as usize / WORD_NODES));
    }

    #[inline]
    pub(super) fn add(&mut self, id: NodeId) {
        let word = id as usize / WORD_NODES;
        if word >= self.bits.len() {
            self.make_room(word);
        }
        if self.bits[word] == 0 {
            self.touched.push(word as u32);
        }
        self.bits[word] |= 1 << (id as usize % WORD_NODES);
        self.nodes += 1;
    }

    /// Makes room for a word, in memory that the system has zeroed: what is not touched is not even backed, so this takes
    /// no longer than the words that there are.
    #[cold]
    fn make_room(&mut self, word: usize) {
        let mut bits = vec![0; (word + 1).next_power_of_two()];
        for &word in &self.touched {
            bits[word as usize] = self.bits[word as usize];
        }
        self.bits = bits;
    }

    /// Gives the nodes of so many words to the slab.
    pub(super) fn release(&mut self, slab: &Slab<T>, words: usize) {
        let from = self.touched.len().saturating_sub(words);
        // The segment of the word before: it is opened when its words are all given.
        let mut given = None;
        for word in self.touched.drain(from..) {
            let bits = std::mem::take(&mut self.bits[word as usize]);
            self.nodes -= bits.count_ones() as usize;
            slab.give(word as usize, bits);
            let segment = word as usize / Segment::<T>::WORDS;
            if let Some(former) = given.replace(segment).filter(|&former| former != segment) {
                slab.reopen(former);
            }
        }
        given.into_iter().for_each(|last| slab.reopen(last));
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.touched.iter().flat_map(move |&word| {
            let set = move |bit: &u32| (self.bits[word as usize] >> bit) & 1 == 1;
            (0..WORD_NODES as u32).filter(set).map(move |bit| word * WORD_NODES as u32 + bit)
        })
    }
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Remains<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.wheels.is_empty()
    }

    /// How many segments there are.
    pub(super) fn segments(&self) -> usize {
        self.segments.len()
    }

    pub(super) fn push_segment(&mut self, segment: Unlinked<Segment<T>>) {
        self.segments.push(segment);
    }

    pub(super) fn push_wheel(&mut self, wheel: Unlinked<Wheel>) {
        self.wheels.push(wheel);
    }

    pub(super) fn add(&mut self, more: Self) {
        self.segments.extend(more.segments);
        self.wheels.extend(more.wheels);
    }

    /// One of each.
    pub(super) fn take_one(&mut self) -> Self {
        Self {
            segments: self.segments.pop().into_iter().collect(),
            wheels: self.wheels.pop().into_iter().collect(),
        }
    }
}

impl<T> Default for Remains<T> {
    fn default() -> Self {
        Self { segments: Vec::new(), wheels: Vec::new() }
    }
}
