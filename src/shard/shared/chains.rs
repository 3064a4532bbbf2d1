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

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::shard::key::ShardId;
    use crate::shard::memory::epochs::Epochs;
    use crate::shard::memory::slab::FreeWord;
    use crate::shard::shared::Shared;
    use crate::shard::shared::bound::Bound;

    const COUNT: NodeId = 4 * STRIPES as NodeId;

    /// A shard's nodes, with those up to `last` taken.
    fn taken(last: NodeId) -> Consumer<u64> {
        let shared = Shared::new(&Config::default(), &Bound::new(usize::MAX), ShardId::block(1))
            .expect("there is memory");
        let nodes = Consumer::new(shared);
        let mut free = FreeWord::default();
        let who = Epochs::new().join();
        let mut take = || nodes.slab.take(&mut free, &who, 0).map(|owned| owned.id());
        (1..=last).for_each(|id| assert_eq!(take(), Ok(id)));
        nodes
    }

    /// A list for each stripe of the given nodes; the last of them is the first of its list.
    fn lists(nodes: &Consumer<u64>, ids: impl Iterator<Item = NodeId>) -> [NodeId; STRIPES] {
        let mut lists = [NIL; STRIPES];
        for id in ids {
            let node = nodes.node(id);
            // Ordering: Relaxed, there is one thread.
            node.next().store(std::mem::replace(&mut lists[id as usize % STRIPES], id), Ordering::Relaxed);
        }
        lists
    }

    fn drain(chains: &mut Chains, nodes: &Consumer<u64>) -> Vec<NodeId> {
        std::iter::from_fn(|| chains.pop(nodes)).map(|hand| hand.id()).collect()
    }

    /// Chains take turns, from stripe to stripe and from source to source.
    #[test]
    fn chains_are_walked_in_turn() {
        let nodes = taken(COUNT);
        let mut chains = Chains::default();
        assert!(chains.is_empty() && chains.pop(&nodes).is_none());
        // Rows of sixteen nodes, a row for each source; each row has a node of each stripe.
        let of = |row: NodeId| row * STRIPES as NodeId + 1..=(row + 1) * STRIPES as NodeId;
        for (source, row) in [(SHARED, 0), (0, 1)] {
            chains.add(source, lists(&nodes, of(row)), &nodes);
        }
        assert!(!chains.is_empty());
        let by_stripe = |row| {
            let mut nodes: Vec<_> = of(row).collect();
            nodes.sort_by_key(|&id| id as usize % STRIPES);
            nodes
        };
        let expected = [by_stripe(1), by_stripe(0)].concat();
        assert_eq!(chains.ids(&nodes), expected);
        assert_eq!(drain(&mut chains, &nodes), expected);
        assert!(chains.is_empty());
    }

    /// A long chain goes on when the others are empty, and a node that is pushed in front of it
    /// comes next.
    #[test]
    fn one_chain_is_walked_to_its_end() {
        let nodes = taken(COUNT);
        let mut chains = Chains::of(lists(&nodes, [3, 3 + STRIPES as NodeId, 4].into_iter()), &nodes);
        assert_eq!(chains.lists()[3..5], [3 + STRIPES as NodeId, 4]);
        assert_eq!(chains.pop(&nodes).map(|hand| hand.id()), Some(3 + STRIPES as NodeId));
        let id = 3 + 2 * STRIPES as NodeId;
        let node = nodes.node(id);
        chains.push(id, node.next());
        assert_eq!(drain(&mut chains, &nodes), [4, id, 3]);
        chains.push(id, node.next());
        assert_eq!((chains.is_empty(), drain(&mut chains, &nodes)), (false, vec![id]));
    }

    /// A loop can keep the turn itself.
    #[test]
    fn the_turn_can_be_kept_outside() {
        let nodes = taken(COUNT);
        let mut chains = Chains::of(lists(&nodes, 1..=COUNT), &nodes);
        let (mut seen, mut turn) = (Vec::new(), 0);
        while let Some((hand, next)) = chains.pop_from(turn, &nodes) {
            let id = hand.id();
            assert_eq!(next, id % STRIPES as NodeId + 1);
            turn = next;
            seen.push(id);
        }
        let mut sorted = seen.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(1..=COUNT));
        assert!(seen.chunks(STRIPES).all(|round| round.is_sorted_by_key(|id| id % STRIPES as NodeId)));
    }
}
