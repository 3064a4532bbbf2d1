//! Recycling: how a node that the advancer has freed is handed out again, and how an empty segment
//! goes back to the system.
//!
//! The advancer collects freed nodes in bitmaps of its own. When they are enough for a batch, it
//! goes through the bitmaps once and gives their bits to the slab, one read-modify-write for up to
//! 64 nodes. No node's memory is touched on the way. A freed node needs no grace period: a
//! thread that does not own a node may read an old value of it, but then swaps or loads the word,
//! finds another version, and ignores what it has read (see [`state`](crate::shard::node::state)).
//! Only a segment's memory needs one.
//!
//! The work is done in steps, one for each advance: giving the bits of a batch of half a million
//! nodes takes milliseconds, and so does giving a hundred segments to the system. Steps are longer
//! where nodes are freed faster than steps would give them.
//!
//! [`excess`] decides which memory goes back, and when. The system takes as long for the 512 pages
//! of a segment as the advancer for firing a thousand timers. So no advance gives back more than
//! one segment, or one part of a segment of ordinary pages ([`Nodes::give_part`]).
//!
//! Only the advancer uses a recycler.

mod excess;

use self::excess::Trim;
use crate::shard::memory::epochs::Reclaimer;
use crate::shard::memory::pages::Nodes;
use crate::shard::memory::segment::Segment;
use crate::shard::memory::slab::{Freed, FreedNodes, Slab};
use crate::shard::memory::slot::{Keep, Retired};
#[cfg(any(test, debug_assertions, fuzzing, shardwheel_loom))]
use crate::shard::node::NodeId;
use crate::size::size;

/// Freed nodes that are worth being given to the slab, at least.
pub(crate) const RIPE_BATCH: usize = size(64, 4, 64);

/// Words of freed nodes that a step gives to the slab, at least.
pub(crate) const WORDS_PER_STEP: usize = size(512, 2, 512);

/// A drain that has freed fewer nodes leaves the work for them to the next upkeep.
pub(crate) const FREED_IN_A_DRAIN: usize = size(64, 1, 1);

/// A batch is ripe, and is given to the slab, when it has `RIPE_BATCH` nodes, or 1 /
/// `WORTH_SHARE` of all nodes if that is more. Where a segment has few nodes, a quarter of a
/// segment is enough.
const WORTH_SHARE: usize = 16;

pub(crate) struct Recycler<T> {
    /// Freed, and not yet given to the slab.
    nodes: FreedNodes,
    /// While a batch is being given: how many words it has at most.
    words: Option<usize>,
    /// Segments that are out of the table.
    retired: Retired<Segment<T>>,
    /// The rest of the segment that is going back to the system.
    parting: Option<Nodes<T>>,
    /// Steps since a batch was last given.
    steps: usize,
    /// Whether the next step gives a batch that is not ripe.
    hurries: bool,
    /// Nodes freed since the last step.
    freed: usize,
    /// The nodes that make a batch ripe.
    worth: usize,
    trim: Trim,
}

impl<T> Recycler<T> {
    pub(crate) fn new(slab: &Slab<T>) -> Self {
        Self {
            nodes: FreedNodes::new(),
            words: None,
            retired: slab.retired(),
            parting: None,
            steps: 0,
            hurries: true,
            freed: 0,
            worth: Self::least_worth(),
            trim: Trim::new(),
        }
    }

    fn least_worth() -> usize {
        RIPE_BATCH.min(Segment::<T>::NODES / 4)
    }

    /// Takes a node that the advancer has freed and unlinked.
    #[inline]
    pub(crate) fn retire(&mut self, node: Freed) {
        self.freed += 1;
        self.nodes.add::<T>(node);
    }

    #[inline]
    pub(crate) fn is_ripe(&self) -> bool {
        self.nodes.count() >= self.worth
    }

    /// Whether a drain does a step: it has freed some nodes since the last one.
    #[inline]
    pub(crate) fn is_step_due(&self) -> bool {
        self.freed >= FREED_IN_A_DRAIN && self.is_ripe()
    }

    /// Whether a batch is being given to the slab, or memory to the system.
    pub(crate) fn is_giving(&self) -> bool {
        self.words.is_some() || self.leaving() > 0
    }

    /// Does a step for the slab and one for the system; true if memory went back to the system.
    pub(crate) fn poll(&mut self, slab: &Slab<T>, reclaimer: &mut Reclaimer) -> bool {
        self.step(WORDS_PER_STEP, slab, reclaimer);
        self.give_memory(false, reclaimer)
    }

    /// Gives at least that many words of the batch to the slab, and further words in proportion to
    /// the nodes freed since the last step: the whole batch has been given when the next batch has
    /// half of the nodes that make it ripe. A drain gives these alone.
    pub(crate) fn step(&mut self, least: usize, slab: &Slab<T>, reclaimer: &mut Reclaimer) {
        let freed = std::mem::take(&mut self.freed);
        self.trim.ended = self.trim.ended.saturating_add(freed);
        self.steps = self.steps.saturating_add(1);
        let mut words = least;
        if let Some(of_batch) = self.words {
            words = words.saturating_add(freed.saturating_mul(2 * of_batch).div_ceil(self.worth));
        } else if self.is_ripe() || self.hurries && self.nodes.count() > 0 {
            self.steps = 0;
            self.nodes.rewind();
            self.words = Some(self.nodes.count().min(slab.words()));
            self.worth = Self::least_worth().max(slab.size() * Segment::<T>::NODES / WORTH_SHARE);
        }
        if self.words.is_some() && words > 0 {
            let nodes = &mut self.nodes;
            let batch = (0..words).map_while(|_| nodes.take_word::<T>());
            slab.give_words(batch, Keep::by(reclaimer));
            self.words = self.words.filter(|_| nodes.count() > 0 && !nodes.is_at_end());
        }
    }

    /// The number of segments that are on their way to the system.
    pub(super) fn leaving(&self) -> usize {
        self.retired.count() + usize::from(self.parting.is_some())
    }

    /// Gives a part of a segment to the system, or the whole; true if it did.
    fn give_memory(&mut self, whole: bool, reclaimer: &Reclaimer) -> bool {
        let next = || self.retired.take(reclaimer).map(|segment| segment.into_nodes());
        let Some(nodes) = self.parting.take().or_else(next) else { return false };
        self.parting = if whole { None } else { nodes.give_part() };
        true
    }

    /// The nodes on their way to the slab; for invariant checks.
    #[cfg(any(test, debug_assertions, fuzzing, shardwheel_loom))]
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.ids::<T>()
    }

    #[cfg(any(test, debug_assertions, fuzzing, shardwheel_loom))]
    pub(crate) fn len(&self) -> usize {
        self.nodes.count()
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing, miri))))]
mod tests;
