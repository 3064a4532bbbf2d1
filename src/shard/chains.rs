//! Lists that the advancer has detached and nobody else can reach, walked in turn.
//!
//! A linked list is one cache miss after another. Walking several chains in turn, each with its next node
//! prefetched, keeps as many misses in flight as there are chains; and because an adder picks its list by
//! its node's place in memory, nodes that lie side by side are met one after the other.

use super::node::{NIL, NodeId};
use super::slab::Slab;
use super::wheel::STRIPES;
use crate::sync::Ordering;

/// Room for the lists of both halves of a bucket and for what a sweep has detached of it.
const CHAINS: usize = 3 * STRIPES;

#[derive(Clone, Debug, Default)]
pub(crate) struct Chains {
    heads: [NodeId; CHAINS],
    /// A bit per chain that is not empty.
    left: u32,
    /// The chain to look at next.
    turn: u32,
}

impl Chains {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Adds a bucket's lists in places that are empty, of which there are enough for three of them.
    #[inline]
    pub(crate) fn add(&mut self, lists: [NodeId; STRIPES], slab: &Slab<impl Sized>) {
        for (stripe, &first) in lists.iter().enumerate() {
            if first != NIL {
                self.add_one(stripe, first, slab);
            }
        }
    }

    fn add_one(&mut self, stripe: usize, first: NodeId, slab: &Slab<impl Sized>) {
        let free = (stripe..CHAINS).step_by(STRIPES).find(|at| self.left & (1 << at) == 0);
        debug_assert!(free.is_some(), "a bucket has three sources");
        self.set(free.unwrap_or(stripe), first, slab);
    }

    /// Adds what another set of chains holds, which came of the same bucket and of one source.
    pub(crate) fn merge(&mut self, other: &Self, slab: &Slab<impl Sized>) {
        self.add(other.lists(), slab);
    }

    /// What is left of the lists of one bucket's half, which was all that was added.
    pub(crate) fn lists(&self) -> [NodeId; STRIPES] {
        debug_assert!(self.heads[STRIPES..].iter().all(|&head| head == NIL));
        std::array::from_fn(|stripe| self.heads[stripe])
    }

    /// Puts one node in front of its stripe's chain.
    pub(crate) fn push<T>(&mut self, id: NodeId, slab: &Slab<T>) {
        let stripe = id as usize % STRIPES;
        // SAFETY: the advancer holds the node in its hands: it is in use.
        let (node, _) = unsafe { slab.owned(id) };
        // Ordering: Relaxed, nobody else looks at the link.
        node.next().store(self.heads[stripe], Ordering::Relaxed);
        self.heads[stripe] = id;
        self.left |= 1 << stripe;
    }

    fn set<T>(&mut self, at: usize, first: NodeId, slab: &Slab<T>) {
        self.heads[at] = first;
        if first == NIL {
            self.left &= !(1 << at);
        } else {
            self.left |= 1 << at;
            slab.prefetch(first);
        }
    }

    /// Takes the next node off.
    #[inline]
    pub(crate) fn pop<T>(&mut self, slab: &Slab<T>) -> Option<NodeId> {
        if self.left == 0 {
            return None;
        }
        let ahead = self.left & (u32::MAX << self.turn);
        let at = if ahead == 0 { self.left } else { ahead }.trailing_zeros();
        let id = self.heads[at as usize];
        // SAFETY: the node is linked in a chain that the advancer holds: it is in use.
        let (node, _) = unsafe { slab.owned(id) };
        // Ordering: Relaxed, the chain was detached with Acquire.
        self.set(at as usize, node.next().load(Ordering::Relaxed), slab);
        self.turn = (at + 1) % CHAINS as u32;
        Some(id)
    }

    /// The nodes, for invariant checks.
    pub(crate) fn ids<T>(&self, slab: &Slab<T>) -> Vec<NodeId> {
        let mut copy = self.clone();
        std::iter::from_fn(|| copy.pop(slab)).collect()
    }
}
