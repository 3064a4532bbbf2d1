//! What a thread may do with nodes of a slab: see the table in [`slab`](super).
//!
//! Only the slab makes these and takes them apart.

use std::marker::PhantomData;
use std::ops::Deref;

use crate::shard::memory::epochs::{Guard, Participant};
use crate::shard::memory::segment::Segment;
use crate::shard::node::state::Word;
use crate::shard::node::{NIL, Node, NodeId, Vacant};
use crate::tick::Tick;

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
    /// The tick that the node is linked for, if it is in a list.
    pub(super) linked_for: Option<Tick>,
}

/// The right to a dead node that the owner of a lane keeps, from a cancel to its next schedule.
///
/// Read it field by field: copying the struct would cause a store-forwarding stall.
#[derive(Default)]
pub(crate) struct Held {
    /// `NIL` if no node is held.
    pub(super) node: NodeId,
    /// The node's word.
    pub(super) word: Word,
    /// The earliest tick at which the next timer may be due.
    pub(super) linked_for: Tick,
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

impl Held {
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.node == NIL
    }

    /// The earliest tick at which the next timer may be due.
    #[inline]
    pub(crate) fn linked_for(&self) -> Tick {
        self.linked_for
    }

    /// Takes the right to the node of a timer that the caller has just cancelled, and holds it.
    #[inline]
    pub(crate) fn hold<T>(&mut self, node: NodeId, vacant: Vacant<'_, T>) {
        (self.node, self.word) = (node, vacant.word());
        self.linked_for = vacant.node().linked_for(vacant.word());
    }

    /// Takes back the right that [`Slab::regain`](super::Slab::regain) has given out; the rest is
    /// as it was.
    pub(crate) fn hold_again<T>(&mut self, owned: OwnedNode<'_, T>) {
        (self.node, self.word) = (owned.id, owned.vacant.word());
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

    /// The tick that the node is linked for; `None` if it is in no list.
    #[inline(always)]
    pub(crate) fn linked_for(&self) -> Option<Tick> {
        self.linked_for
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
