//! The sweep: dead nodes are freed before the bucket in which they are linked is due.
//!
//! A cancelled timer's node stays linked. When a shard has more such nodes than half of what promise 5
//! allows, a canceller asks for a sweep, and the advancer goes through all lists in steps: it detaches a
//! bucket's lists (leaving bits and rounds as they are), frees the dead, and splices the living back.
//!
//! Nothing is lost: between detaching and splicing the living are in the advancer's hands, an adder goes
//! on pushing to the same list, and a canceller finds its node by its key. A flush of the bucket takes what
//! the sweep has detached of it as well; the bit, which only a flush clears, still says where to look.
//!
//! A pass looks at `live + dead` nodes and begins when `dead` is at least half of what is tolerated, so at
//! eight nodes a cancel it ends before the bound is reached: amortised O(1) a cancel, in bounded steps.

use super::advancer::Advancer;
use super::chains::Chains;
use super::node::{Met, NIL, NodeId};
use super::wheel::{Place, STRIPES};
use crate::sync::Ordering;

/// Nodes looked at in an advance for each cancel since the one before, and at least.
const NODES_PER_CANCEL: u64 = 8;
const LEAST_NODES: u64 = 1024;

pub(super) struct Sweep {
    /// The next bucket to look at (level, index), while a pass is under way.
    next: Option<(usize, usize)>,
    detached: Option<Detached>,
    /// How many dead nodes had been made when the last step ended.
    made: u64,
    /// Nodes freed in this pass.
    freed: u64,
}

/// The lists of a bucket, or what is left of them to look at.
struct Detached {
    level: usize,
    place: Place,
    chains: Chains,
}

/// Chains of living nodes, to be spliced back: first and last of each stripe.
type Living = [(NodeId, NodeId); STRIPES];

impl Sweep {
    pub(super) fn new() -> Self {
        Self { next: None, detached: None, made: 0, freed: 0 }
    }

    /// What is detached of that bucket; for a flush.
    #[inline]
    pub(super) fn take(&mut self, level: usize, index: usize) -> Option<Chains> {
        let is_meant = |detached: &mut Detached| detached.level == level && detached.place.index == index;
        self.detached.take_if(is_meant).map(|detached| detached.chains)
    }

    /// What is detached: the bucket's level and index, and the nodes; for invariant checks.
    pub(super) fn in_hand(&self) -> Option<(usize, usize, &Chains)> {
        self.detached.as_ref().map(|detached| (detached.level, detached.place.index, &detached.chains))
    }
}

impl<T> Advancer<T> {
    /// Goes on with the pass under way, or begins one if it is owed.
    pub(super) fn sweep_in_steps(&mut self) {
        if self.sweep.next.is_none() {
            if !self.shared.take_sweep_owed() {
                return;
            }
            self.sweep.next = Some((0, 0));
        }
        let made = self.shared.dead_made();
        let mut budget = LEAST_NODES + NODES_PER_CANCEL * (made - self.sweep.made);
        self.sweep.made = made;
        while budget > 0 && (self.sweep.detached.is_some() || self.detach_next()) {
            budget = budget.saturating_sub(1 + self.sweep_detached(budget));
        }
    }

    /// Detaches the next bucket of the pass that may hold something; false when the pass is over.
    fn detach_next(&mut self) -> bool {
        let Some((level, index)) = self.sweep.next else { return false };
        let Some((level, index)) = self.occupied_from(level, index) else {
            self.end_pass();
            return self.sweep.next.is_some();
        };
        self.sweep.next = Some((level, index + 1));
        self.sweep.detached = self.detach(level, index);
        true
    }

    /// The first bucket from there on, level by level, that may hold something.
    fn occupied_from(&self, level: usize, index: usize) -> Option<(usize, usize)> {
        (level..self.shared.geometry.levels()).find_map(|at| {
            let from = if at == level { index } else { 0 };
            let wheel = self.shared.wheel(at).filter(|wheel| from < wheel.size())?;
            let found = from + wheel.next_occupied(from)?;
            (found < wheel.size()).then_some((at, found))
        })
    }

    fn detach(&self, level: usize, index: usize) -> Option<Detached> {
        let wheel = self.shared.wheel(level)?;
        let mut lists = [NIL; STRIPES];
        let mut found = None;
        for (stripe, list) in lists.iter_mut().enumerate() {
            if let Some((place, first)) = wheel.detach(index, stripe) {
                *list = first;
                found = Some(place);
            }
        }
        let mut chains = Chains::new();
        chains.add(lists, &self.shared.slab);
        found.map(|place| Detached { level, place, chains })
    }

    /// A pass is over. If it freed something and there is too much still, the next begins.
    fn end_pass(&mut self) {
        let freed = std::mem::take(&mut self.sweep.freed);
        let again = freed > 0 && self.shared.dead() > self.shared.tolerated_dead() / 2;
        self.sweep.next = again.then_some((0, 0));
    }

    /// Frees the dead among the next `budget` nodes detached, and splices the living back. Returns how
    /// many nodes it looked at.
    fn sweep_detached(&mut self, budget: u64) -> u64 {
        let Some(mut detached) = self.sweep.detached.take() else { return 0 };
        let mut living = [(NIL, NIL); STRIPES];
        let mut seen = 0;
        while seen < budget
            && let Some(id) = detached.chains.pop(&self.shared.slab)
        {
            seen += 1;
            if !self.free_if_dead(id) {
                self.keep(&mut living[id as usize % STRIPES], id);
            }
        }
        self.splice(&detached, &living);
        if !detached.chains.is_empty() {
            self.sweep.detached = Some(detached);
        }
        seen
    }

    fn free_if_dead(&mut self, id: NodeId) -> bool {
        // SAFETY: the node is linked in a chain that the advancer holds: it is in use.
        let (node, _) = unsafe { self.shared.slab.owned(id) };
        let Met::Cancelled(word) = node.meet() else { return false };
        if !node.bury(word) {
            return false;
        }
        self.shared.tally.swept.add(1);
        self.sweep.freed += 1;
        self.retire_dead(id);
        true
    }

    fn keep(&self, (first, last): &mut (NodeId, NodeId), id: NodeId) {
        // SAFETY: as above.
        let (node, _) = unsafe { self.shared.slab.owned(id) };
        // Ordering: Relaxed, published by the splice.
        node.next().store(*first, Ordering::Relaxed);
        *first = id;
        if *last == NIL {
            *last = id;
        }
    }

    fn splice(&self, detached: &Detached, living: &Living) {
        let Some(wheel) = self.shared.wheel(detached.level) else { return };
        for (stripe, &(first, last)) in living.iter().enumerate().filter(|(_, ends)| ends.0 != NIL) {
            // SAFETY: as above.
            let (node, _) = unsafe { self.shared.slab.owned(last) };
            wheel.splice(Place { stripe, ..detached.place }, first, node.next());
        }
    }
}
