//! The sweep: dead nodes are freed before the bucket in which they are linked is due.
//!
//! A cancelled timer's node stays linked. When a shard has more such nodes than three quarters of what
//! promise 5 allows, a canceller asks for a sweep, and the advancer goes through all lists in steps: it
//! detaches a bucket's lists (leaving bits and rounds of shared ones as they are), frees the dead, and links
//! the living into its own half of the same bucket. Its own half comes first, so that it meets no node twice, but for
//! those that are moved meanwhile.
//!
//! Nothing is lost: between detaching and linking the living are in the advancer's hands, an adder goes on
//! pushing to the same list, and a canceller finds its node by its key. A flush of the bucket takes what the
//! sweep has detached of it as well; the bit, which stays, still says where to look.
//!
//! A pass looks at `live + dead` nodes and begins when `dead` is three quarters of what is tolerated, so at
//! sixteen nodes a cancel it ends before the bound is reached: with `live` at 1 when it begins, it takes 1.75
//! / 16 = 0.11 cancels, by the end of which 0.86 are dead and 0.89 live. Amortised O(1) a cancel, in steps of four
//! thousand nodes and sixteen for each cancel since the step before. While a pass is under way and there is too much,
//! cancellers wake the advancer for the next step, as they do for the first; and so does the advancer itself when it
//! says until when it will sleep, for there may be no further cancel. What was cancelled before a pass began, all at
//! once perhaps, is above the bound until the pass comes to it.

use crate::shard::advancer::Advancer;
use crate::shard::advancer::chains::{Chains, InHand};
use crate::shard::node::{NIL, NodeId, Observed};
use crate::shard::wheel::STRIPES;
use crate::shard::wheel::geometry::{Geometry, Slot};
use crate::sync::Ordering;
use crate::tick::Tick;

/// Nodes looked at in an advance for each cancel since the one before, and at least.
const NODES_PER_CANCEL: u64 = 16;
const LEAST_NODES: u64 = if crate::config::SMALL { 4 } else { 4096 };

pub(super) struct Sweep {
    /// The next bucket to look at, while a pass is under way.
    next: Option<SweepPosition>,
    detached: Option<Detached>,
    /// How many dead nodes had been made when the last step ended.
    made: u64,
    /// Nodes freed in this pass.
    freed: u64,
    /// Whether nodes that the pass has yet to meet were put where it has been.
    has_missed: bool,
}

/// Half a bucket, in the order in which a pass goes.
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
    /// How many buckets its wheels have.
    fn size(self, geometry: Geometry) -> usize {
        match self {
            Self::Own => geometry.private_wheel_size(),
            Self::Shared => geometry.wheel_size(),
        }
    }
}

/// A chain of the living of one stripe, in the order in which they were linked: most links stay as they are,
/// and a link that stays is not written, as that would take the node's line from its producer's cache.
#[derive(Clone, Copy)]
struct Chain {
    first: NodeId,
    last: NodeId,
    /// What the last node links to still.
    link: NodeId,
}

/// The lists of half a bucket, or what is left of them to look at.
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

    /// What is detached of that bucket; for a flush.
    #[inline]
    pub(super) fn take(&mut self, geometry: Geometry, slot: Slot) -> Option<[NodeId; STRIPES]> {
        let is_meant = |Detached { at, .. }: &mut Detached| {
            let index =
                if at.half == Half::Own { geometry.private_index(slot) } else { geometry.index(slot) };
            (at.level, at.index) == (slot.level, index)
        };
        self.detached.take_if(is_meant).map(|detached| detached.chains.lists())
    }

    /// Notes that nodes have gone from the producers' half to the advancer's, where a pass may have been.
    pub(super) fn note_transfer(&mut self) {
        self.has_missed = self.is_under_way();
    }

    /// Whether it has the lists of that bucket of the advancer's own half in hand.
    pub(super) fn has_private(&self, level: usize, index: usize) -> bool {
        let private =
            |Detached { at, .. }: &Detached| (at.half, at.level, at.index) == (Half::Own, level, index);
        self.detached.as_ref().is_some_and(private)
    }

    /// What is detached: the bucket, and the nodes; for invariant checks.
    pub(super) fn in_hand(&self, geometry: Geometry, flushed: Tick) -> Option<(Slot, &Chains)> {
        self.detached.as_ref().map(|Detached { at, chains }| (at.slot(geometry, flushed), chains))
    }
}

impl<T> Advancer<T> {
    /// Goes on with the pass under way, or begins one if it is owed.
    pub(super) fn sweep_in_steps(&mut self) {
        // Also while a pass is under way: cancellers then ask, and wake, for the next step.
        let owed = self.shared.take_sweep_request();
        if self.sweep.next.is_none() {
            if !owed {
                return;
            }
            self.sweep.next = Some(SweepPosition::FIRST);
            // What was cancelled before has been reckoned with: the step that begins a pass is as short as the others.
            self.sweep.made = self.shared.dead_made();
        }
        let made = self.shared.dead_made();
        let mut budget = LEAST_NODES + NODES_PER_CANCEL * made.saturating_sub(self.sweep.made);
        // The sum falls for a moment's surplus: a timer that is stopped while its payload is out is first counted as
        // cancelled, then as stopped.
        self.sweep.made = self.sweep.made.max(made);
        while budget > 0 && (self.sweep.detached.is_some() || self.detach_next()) {
            budget = budget.saturating_sub(1 + self.sweep_detached(budget));
        }
    }

    /// Detaches the next half bucket of the pass that may hold something; false when the pass is over.
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

    /// The first half bucket from there on that may hold something.
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

    /// The index of the first bucket that may hold something, of that half and level, from there on.
    fn occupied_index(&self, SweepPosition { half, level, index }: SweepPosition) -> Option<usize> {
        let ahead = half.size(self.shared.geometry).checked_sub(index).filter(|&ahead| ahead > 0)?;
        let found = match half {
            Half::Shared => self.wheel(level)?.next_occupied(index, ahead),
            Half::Own => self.private.level(level)?.next_occupied(index).filter(|&found| found < ahead),
        };
        Some(index + found?)
    }

    /// A pass is over. If it freed something, or missed some, and there is too much still, the next begins.
    fn end_pass(&mut self) {
        self.shared.bring_check_near();
        let freed = std::mem::take(&mut self.sweep.freed);
        let has_missed = std::mem::take(&mut self.sweep.has_missed);
        let again = (freed > 0 || has_missed) && self.shared.is_sweep_due();
        self.sweep.next = again.then_some(SweepPosition::FIRST);
    }

    /// Frees the dead among the next `budget` nodes detached, and links the living again. Returns how many
    /// nodes it looked at.
    fn sweep_detached(&mut self, budget: u64) -> u64 {
        let Some(Detached { at, mut chains }) = self.sweep.detached.take() else { return 0 };
        let mut living = [None; STRIPES];
        let mut seen = 0;
        while seen < budget
            && let Some(InHand { id, .. }) = chains.pop(&self.shared)
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
        let (node, _) = self.node(id);
        let Observed::Cancelled(word) = node.observe() else { return false };
        if !node.free_cancelled(word) {
            return false;
        }
        self.shared.tally.swept.add(1);
        self.sweep.freed += 1;
        self.retire_dead(id);
        true
    }

    /// Adds a node to the end of a chain of the living.
    fn keep(&self, chain: &mut Option<Chain>, id: NodeId) {
        // Ordering: Relaxed, nobody else looks at the links of what is detached.
        let link = self.node(id).0.next().load(Ordering::Relaxed);
        let first = chain.map_or(id, |Chain { first, last, link }| {
            if link != id {
                // Ordering: Relaxed, as above.
                self.node(last).0.next().store(id, Ordering::Relaxed);
            }
            first
        });
        *chain = Some(Chain { first, last: id, link });
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
