//! Detached lists, which no other thread can reach, walked in turn.
//!
//! A linked list is one cache miss after another. Walking several chains in turn, each with its
//! next node prefetched, keeps as many misses in flight as there are chains. A producer picks its
//! list by its node's place in memory, so the walk meets neighbouring nodes one after the other.
//!
//! Who writes what: only the advancer reads or writes chains and the links of their nodes.

use crate::shard::memory::slab::InHand;
use crate::shard::node::{NIL, NodeId};
use crate::shard::shared::consumer::Consumer;
use crate::shard::wheel::STRIPES;
use crate::shard::wheel::geometry::Slot;
use crate::sync::{AtomicU32, Ordering};

/// Room for the private and the shared lists of a bucket. Each half has its own chains, so lists
/// are added as they are: the private ones first.
const CHAINS: usize = 2 * STRIPES;

// `Chains` has a bit for each.
const _: () = assert!(CHAINS <= u64::BITS as usize);

/// The chain of the first shared list.
pub(crate) const SHARED: usize = STRIPES;

#[derive(Clone, Debug, Default)]
pub(crate) struct Chains {
    /// `NIL` where a chain is empty.
    heads: [NodeId; CHAINS],
    /// A bit for each chain that is not empty.
    left: u64,
    /// The chain to take from next.
    turn: u32,
}

impl Chains {
    /// Chains of the lists of one half of a bucket.
    pub(crate) fn of(lists: [NodeId; STRIPES], nodes: &Consumer<impl Sized>) -> Self {
        let mut chains = Self::default();
        chains.add(0, lists, nodes);
        chains
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Adds the lists of one half of a bucket from the chain `at` on. Its former chains must be
    /// empty.
    #[inline]
    pub(crate) fn add(&mut self, at: usize, lists: [NodeId; STRIPES], nodes: &Consumer<impl Sized>) {
        debug_assert_eq!(self.heads[at..at + STRIPES], [NIL; STRIPES]);
        self.heads[at..at + STRIPES].copy_from_slice(&lists);
        // No branch for each list: where timers are sparse, a branch predictor cannot know which
        // lists are empty.
        let set = lists.iter().rev().fold(0, |set, &first| set << 1 | u64::from(first != NIL));
        self.left |= set << at;
        let mut ahead = set;
        while ahead != 0 {
            nodes.slab.prefetch(lists[ahead.trailing_zeros() as usize % STRIPES]);
            ahead &= ahead - 1;
        }
    }

    /// Adds a list, which is not empty, as the chain `at`, which must be empty.
    #[inline(always)]
    pub(crate) fn add_list(&mut self, at: usize, first: NodeId, nodes: &Consumer<impl Sized>) {
        debug_assert_eq!(self.heads[at], NIL);
        self.heads[at] = first;
        self.left |= 1 << at;
        nodes.slab.prefetch(first);
    }

    /// Takes the shared lists of a bucket, and moves the bucket to the next round.
    pub(crate) fn take_shared(&mut self, slot: Slot, nodes: &Consumer<impl Sized>) {
        let (geometry, index) = (nodes.geometry, nodes.geometry.index(slot));
        let Some(wheel) = nodes.wheel(slot.level).filter(|wheel| wheel.is_occupied(index)) else { return };
        // Timers that are scheduled one after the other for an overflow bucket lie side by side in
        // memory, the youngest at the head of its list. A walk from the last list to the first goes
        // from the end of that memory to its beginning, which a processor predicts; and the oldest
        // timer becomes the first of its new list.
        let place = |stripe| if slot.level > 0 { STRIPES - 1 - stripe } else { stripe };
        let add = |stripe, first| self.add_list(SHARED + place(stripe), first, nodes);
        wheel.flush(index, geometry.round(slot), add);
    }

    /// What is left of the lists of one half bucket, if no others were added.
    pub(crate) fn lists(&self) -> [NodeId; STRIPES] {
        debug_assert!(self.heads[STRIPES..].iter().all(|&head| head == NIL));
        std::array::from_fn(|stripe| self.heads[stripe])
    }

    /// Puts a node, whose link is `next`, in front of its stripe's chain.
    #[inline]
    pub(crate) fn push(&mut self, id: NodeId, next: &AtomicU32) {
        let stripe = id as usize % STRIPES;
        // Ordering: Relaxed, only the advancer reads the link.
        next.store(self.heads[stripe], Ordering::Relaxed);
        self.heads[stripe] = id;
        self.left |= 1 << stripe;
    }

    /// Takes the next node off.
    #[inline]
    pub(crate) fn pop<'s, T>(&mut self, nodes: &'s Consumer<T>) -> Option<InHand<'s, T>> {
        let (hand, turn) = self.pop_from(self.turn, nodes)?;
        self.turn = turn;
        Some(hand)
    }

    /// Takes a node off the chain whose turn it is, or off the next one that has a node. Also
    /// returns the next turn. For a loop, which keeps the turn in a register: otherwise each node
    /// would wait for a store and a load of it.
    #[inline]
    pub(crate) fn pop_from<'s, T>(
        &mut self,
        turn: u32,
        nodes: &'s Consumer<T>,
    ) -> Option<(InHand<'s, T>, u32)> {
        if self.left == 0 {
            return None;
        }
        let ahead = self.left & (u64::MAX << turn);
        let at = if ahead == 0 { self.left } else { ahead }.trailing_zeros();
        let head = &mut self.heads[at as usize];
        let id = *head;
        let hand = nodes.node(id);
        // Ordering: Relaxed, the chain was detached with Acquire.
        *head = hand.next().load(Ordering::Relaxed);
        if *head == NIL {
            self.left &= !(1 << at);
        } else {
            nodes.slab.prefetch(*head);
        }
        Some((hand, (at + 1) % CHAINS as u32))
    }

    /// The nodes that are left, for invariant checks.
    #[cfg(any(test, debug_assertions, fuzzing, shardwheel_loom))]
    pub(crate) fn ids<T>(&self, nodes: &Consumer<T>) -> Vec<NodeId> {
        let mut copy = self.clone();
        std::iter::from_fn(|| copy.pop(nodes)).map(|hand| hand.id()).collect()
    }
}
