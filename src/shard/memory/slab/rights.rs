//! What a thread may do with nodes of a slab: see the table in [`slab`](super).
//!
//! Only the slab makes these and takes them apart.

use std::marker::PhantomData;
use std::ops::Deref;

use crate::shard::memory::epochs::{Guard, Participant};
use crate::shard::memory::segment::Segment;
use crate::shard::node::state::Word;
use crate::shard::node::{Node, NodeId, Vacant};

/// The right to free nodes of one word. A lane has those of the word that it hands out nodes of.
#[derive(Debug, Default)]
pub(crate) struct FreeWord {
    /// The word's index, counted over all segments.
    pub(super) word: u32,
    pub(super) bits: u64,
}

/// The right to a node without a payload.
#[must_use = "the node is lost"]
pub(crate) struct OwnedNode<'s, T> {
    pub(super) id: NodeId,
    pub(super) era: u32,
    pub(super) vacant: Vacant<'s, T>,
    /// Whether the node is in a list.
    pub(super) is_linked: bool,
}

/// A node that was dead when its lane last looked. It is no right: the advancer may have freed the
/// node since, and given its segment back.
pub(crate) struct DeadNode {
    pub(super) node: NodeId,
    /// The era of its segment, and its word.
    pub(super) era: u32,
    pub(super) word: Word,
}

impl FreeWord {
    /// The word's segment.
    pub(super) fn segment<T>(&self) -> usize {
        self.word as usize / Segment::<T>::WORDS
    }

    /// Gives up the right to one of the nodes.
    #[cfg(any(shardwheel_loom, shardwheel_model))]
    pub(crate) fn split(&mut self) -> Self {
        let one = self.bits & self.bits.wrapping_neg();
        self.bits &= !one;
        Self { word: self.word, bits: one }
    }
}

impl DeadNode {
    #[inline]
    pub(crate) fn new(node: NodeId, era: u32, word: Word) -> Self {
        Self { node, era, word }
    }
}

impl<'s, T> OwnedNode<'s, T> {
    #[inline(always)]
    pub(crate) fn id(&self) -> NodeId {
        self.id
    }

    /// The era of the node's segment.
    #[inline(always)]
    pub(crate) fn era(&self) -> u32 {
        self.era
    }

    /// Whether the node is in a list.
    #[inline(always)]
    pub(crate) fn is_linked(&self) -> bool {
        self.is_linked
    }

    #[inline(always)]
    pub(crate) fn vacant(&self) -> &Vacant<'s, T> {
        &self.vacant
    }

    #[inline(always)]
    pub(crate) fn into_vacant(self) -> Vacant<'s, T> {
        self.vacant
    }
}

/// A node that the advancer has in hand.
pub(crate) struct InHand<'s, T> {
    pub(super) id: NodeId,
    pub(super) era: u32,
    pub(super) node: &'s Node<T>,
}

impl<'s, T> InHand<'s, T> {
    #[inline(always)]
    pub(crate) fn id(&self) -> NodeId {
        self.id
    }

    /// The era of the node's segment.
    #[inline(always)]
    pub(crate) fn era(&self) -> u32 {
        self.era
    }
}

impl<T> Deref for InHand<'_, T> {
    type Target = Node<T>;

    #[inline(always)]
    fn deref(&self) -> &Node<T> {
        self.node
    }
}

/// Keeps the segment of a node while a thread that does not own the node reads it.
pub(crate) struct Stay<'l> {
    pub(super) id: NodeId,
    /// Protects: the segment, if the caller's free nodes do not.
    pub(super) _pinned: Option<Guard<'l>>,
    /// Otherwise the caller's free nodes, which lie in the same segment. The borrow prevents
    /// handing them out meanwhile.
    free: PhantomData<&'l FreeWord>,
}

impl<'l> Stay<'l> {
    #[inline]
    pub(super) fn new(id: NodeId, pinned: Option<Guard<'l>>) -> Self {
        Self { id, _pinned: pinned, free: PhantomData }
    }

    #[inline]
    pub(crate) fn pinned(id: NodeId, who: &'l Participant) -> Self {
        Self::new(id, Some(who.pin()))
    }
}
