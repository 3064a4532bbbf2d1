//! The sweep: frees dead nodes before the bucket in which they are linked is due.
//!
//! The node of a cancelled timer stays linked. When a shard has more dead nodes than three quarters
//! of what promise 5 allows, a canceller asks for a sweep. The advancer then goes through all lists
//! in steps: it detaches a bucket's lists (the bits and rounds of shared lists stay), frees the
//! dead nodes, and links the living into the private lists of the same bucket. A pass visits the
//! private wheels first, so it meets no node twice, except nodes that are moved meanwhile.
//!
//! **No timer is lost.** Between detaching and linking, the living nodes are in the advancer's
//! hand. A producer goes on pushing to the same list, and a canceller finds its node by its key. A
//! flush of the bucket also takes what the sweep has detached from it; the bit, which stays set,
//! still says where to look.
//!
//! **Cost.** A pass begins when the dead nodes are three quarters of what is tolerated. With `live`
//! timers pending at that moment it visits 1.75 x `live` nodes. At 16 nodes per cancel it ends
//! after 0.11 x `live` cancels; then 0.86 x `live` nodes are dead and 0.89 x `live` timers pending,
//! so it ends before the bound is reached. That is amortised O(1) per cancel, in steps of 4,096
//! nodes plus 16 for each cancel since the step before.
//!
//! **Progress.** While a pass is under way and a sweep is still due, cancellers wake the advancer
//! for the next step, as for the first. The advancer also wakes itself when it announces its sleep,
//! because there may be no further cancel.
//!
//! **Limit.** Nodes of timers that were cancelled before a pass begins, perhaps all at once, are
//! above the bound until the pass reaches them.

use crate::shard::advancer::Advancer;
use crate::shard::advancer::chains::Chains;
use crate::shard::node::{NIL, NodeId, Observed};
use crate::shard::wheel::STRIPES;
use crate::shard::wheel::geometry::{Geometry, Slot};
use crate::sync::Ordering;
use crate::tick::Tick;

/// Nodes that a step visits for each cancel since the step before, and at least.
const NODES_PER_CANCEL: u64 = 16;
const LEAST_NODES: u64 = if crate::config::SMALL { 4 } else { 4096 };

pub(super) struct Sweep {
    /// The next half bucket to visit, while a pass is under way.
    next: Option<SweepPosition>,
    detached: Option<Detached>,
    /// How many dead nodes had been made when the last step began; never falls within a pass.
    made: u64,
    /// Nodes freed in this pass.
    freed: u64,
    /// Whether nodes that the pass had not yet met were put where it has already been.
    has_missed: bool,
}

/// A half bucket: the private or the shared lists of one bucket. A pass visits them in this order.
#[derive(Clone, Copy)]
struct SweepPosition {
    half: Half,
    level: usize,
    index: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Own,
    Shared,
}

impl SweepPosition {
    const FIRST: Self = Self { half: Half::Own, level: 0, index: 0 };

    fn slot(self, geometry: Geometry, flushed: Tick) -> Slot {
        geometry.slot_ahead(self.level, self.index, self.half.size(geometry), flushed)
    }
}

impl Half {
    /// How many buckets a wheel of this half has.
    fn size(self, geometry: Geometry) -> usize {
        match self {
            Self::Own => geometry.private_wheel_size(),
            Self::Shared => geometry.wheel_size(),
        }
    }
}

/// A chain of the living nodes of one stripe, in their former order. Most links then stay as they
/// are, and such a link is not written: a write would take the node's cache line from its producer.
#[derive(Clone, Copy)]
struct Chain {
    first: NodeId,
    last: NodeId,
    /// What the last node still links to.
    link: NodeId,
}

/// What is left to visit of a half bucket's detached lists.
struct Detached {
    at: SweepPosition,
    chains: Chains,
}

impl Sweep {
    pub(super) fn new() -> Self {
        Self { next: None, detached: None, made: 0, freed: 0, has_missed: false }
    }

    /// Whether a pass is under way.
    pub(super) fn is_under_way(&self) -> bool {
        self.next.is_some()
    }

    /// Takes what is detached from that bucket; for a flush.
    #[inline]
    pub(super) fn take(&mut self, geometry: Geometry, slot: Slot) -> Option<[NodeId; STRIPES]> {
        let is_meant = |Detached { at, .. }: &mut Detached| {
            let index =
                if at.half == Half::Own { geometry.private_index(slot) } else { geometry.index(slot) };
            (at.level, at.index) == (slot.level, index)
        };
        self.detached.take_if(is_meant).map(|detached| detached.chains.lists())
    }

    /// Notes that nodes have moved from shared lists to private lists, which a pass may already
    /// have visited.
    pub(super) fn note_transfer(&mut self) {
        self.has_missed = self.is_under_way();
    }

    /// Whether the sweep has detached the private lists of that bucket.
    pub(super) fn has_private(&self, level: usize, index: usize) -> bool {
        let private =
            |Detached { at, .. }: &Detached| (at.half, at.level, at.index) == (Half::Own, level, index);
        self.detached.as_ref().is_some_and(private)
    }

    /// The bucket and the nodes that are detached; for invariant checks.
    pub(super) fn in_hand(&self, geometry: Geometry, flushed: Tick) -> Option<(Slot, &Chains)> {
        self.detached.as_ref().map(|Detached { at, chains }| (at.slot(geometry, flushed), chains))
    }
}

impl<T> Advancer<T> {
    /// Continues the pass under way, or begins one if a sweep is asked for.
    pub(super) fn sweep_in_steps(&mut self) {
        // Also while a pass is under way: cancellers then ask, and wake, for the next step.
        let owed = self.shared.take_sweep_request();
        if self.sweep.next.is_none() {
            if !owed {
                return;
            }
            self.sweep.next = Some(SweepPosition::FIRST);
            self.visit_aside();
            // Earlier cancels do not count: the first step of a pass is as short as the others.
            self.sweep.made = self.shared.dead_made();
        }
        let made = self.shared.dead_made();
        let mut budget = LEAST_NODES + NODES_PER_CANCEL * made.saturating_sub(self.sweep.made);
        // The sum may fall for a moment: a timer that is stopped while its payload is out counts
        // first as cancelled, and as stopped only afterwards.
        self.sweep.made = self.sweep.made.max(made);
        while budget > 0 && (self.sweep.detached.is_some() || self.detach_next()) {
            budget = budget.saturating_sub(1 + self.sweep_detached(budget));
        }
    }

    /// Detaches the next half bucket of the pass that may hold something. False at the end of a
    /// pass, unless another pass begins.
    fn detach_next(&mut self) -> bool {
        let Some(next) = self.sweep.next else { return false };
        let Some(at) = self.occupied_from(next) else {
            self.end_pass();
            return self.sweep.next.is_some();
        };
        self.sweep.next = Some(SweepPosition { index: at.index + 1, ..at });
        let lists = match at.half {
            Half::Shared => self.wheel(at.level).map_or([NIL; STRIPES], |wheel| wheel.detach_all(at.index)),
            Half::Own => self.private.detach(at.level, at.index),
        };
        self.sweep.detached = Some(Detached { at, chains: Chains::of(lists, &self.shared) });
        true
    }

    /// The first half bucket at or after `next` that may hold something.
    fn occupied_from(&self, next: SweepPosition) -> Option<SweepPosition> {
        let levels = self.shared.geometry.levels();
        let this_half = (next.level..levels).map(|level| SweepPosition { level, ..next });
        let other_half = (0..levels).map(|level| SweepPosition { level, half: Half::Shared, ..next });
        let stops = this_half.chain(other_half.filter(|_| next.half == Half::Own));
        stops.enumerate().find_map(|(passed, stop)| {
            let from = if passed == 0 { stop.index } else { 0 };
            let index = self.occupied_index(SweepPosition { index: from, ..stop })?;
            Some(SweepPosition { index, ..stop })
        })
    }

    /// The index of the first bucket at or after `index` that may hold something, in that half and
    /// level.
    fn occupied_index(&self, SweepPosition { half, level, index }: SweepPosition) -> Option<usize> {
        let ahead = half.size(self.shared.geometry).checked_sub(index).filter(|&ahead| ahead > 0)?;
        let found = match half {
            Half::Shared => self.wheel(level)?.next_occupied(index, ahead),
            Half::Own => self.private.level(level)?.next_occupied(index).filter(|&found| found < ahead),
        };
        Some(index + found?)
    }

    /// Ends a pass. The next one begins if this one freed or missed nodes, and a sweep is still
    /// due.
    fn end_pass(&mut self) {
        self.shared.bring_check_near();
        let freed = std::mem::take(&mut self.sweep.freed);
        let has_missed = std::mem::take(&mut self.sweep.has_missed);
        let again = (freed > 0 || has_missed) && self.shared.is_sweep_due();
        self.sweep.next = again.then_some(SweepPosition::FIRST);
    }

    /// Frees the dead among the next `budget` detached nodes, and links the living again. Returns
    /// how many nodes it has visited.
    fn sweep_detached(&mut self, budget: u64) -> u64 {
        let Some(Detached { at, mut chains }) = self.sweep.detached.take() else { return 0 };
        let mut living = [None; STRIPES];
        let mut seen = 0;
        while seen < budget
            && let Some(id) = chains.pop(&self.shared).map(|hand| hand.id())
        {
            seen += 1;
            if !self.free_if_dead(id) {
                self.keep(&mut living[id as usize % STRIPES], id);
            }
        }
        let slot = at.slot(self.shared.geometry, self.flushed);
        living.into_iter().flatten().for_each(|Chain { first, last, .. }| self.link(slot, first, last));
        if !chains.is_empty() {
            self.sweep.detached = Some(Detached { at, chains });
        } else if at.half == Half::Own {
            self.private.settle(at.level, at.index);
        }
        seen
    }

    fn free_if_dead(&mut self, id: NodeId) -> bool {
        let hand = self.node(id);
        let Observed::Cancelled(word) = hand.observe() else { return false };
        let Some(vacant) = hand.free_cancelled(word) else { return false };
        let node = hand.freed(vacant);
        self.shared.tally.swept.add(1);
        self.sweep.freed += 1;
        self.retire_dead(node);
        true
    }

    /// Appends a node to a chain of living nodes.
    fn keep(&self, chain: &mut Option<Chain>, id: NodeId) {
        // Ordering: Relaxed, only the advancer reads or writes the links of detached nodes.
        let link = self.node(id).next().load(Ordering::Relaxed);
        let first = chain.map_or(id, |Chain { first, last, link }| {
            if link != id {
                // Ordering: Relaxed, as above.
                self.node(last).next().store(id, Ordering::Relaxed);
            }
            first
        });
        *chain = Some(Chain { first, last: id, link });
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
