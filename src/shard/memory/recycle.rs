//! Recycling: how a node that the advancer has freed is handed out again, and how an empty segment
//! goes back to the system.
//!
//! 1. The advancer sets the bit of a freed node in a bitmap of its own. When they are enough for a
//!    batch, it goes through the bitmap once and gives its words to the slab, three
//!    read-modify-writes for up to 64 nodes. So nodes are handed out in memory order.
//! 2. The thread whose nodes complete a segment, the advancer or a producer that gives back what
//!    it took, marks the segment as empty (`Slab::mark_empty`).
//! 3. The rule: while more is mapped than twice what is pending and one segment more, the advancer
//!    takes a marked segment out of the table ([`Slab::retire_one`]). A step either takes one out or
//!    unmaps one, so while there is work a segment goes at every second move of the clock; before,
//!    a step is every 64th.
//! 4. When the readers of that segment have unpinned, it is unmapped.
//!
//! The one segment goes too when nothing is pending, once half of its nodes have been used. Until
//! then an idle shard keeps it for an occasional timer.
//!
//! Invariant: a segment whose nodes are all free has its mark, or the thread that completed it is
//! between its two steps. A mark says that the advancer looks there, no more: it takes all nodes of
//! the segment, or puts back those that it has taken. Both outcomes of the race with a producer:
//!
//! - The producer takes a word first. The advancer finds a word that is not full, puts back what it
//!   has, and the segment stays. The thread that completes it next marks it again; that may be the
//!   advancer, which puts nodes back.
//! - The advancer takes the word first. The producer finds no node there, and looks elsewhere; if it
//!   finds none, it adds a segment.
//!
//! A freed node needs no grace period: a thread that does not own a node may read an old value of
//! it, but then swaps or loads the word, finds another version, and ignores what it has read (see
//! [`state`](crate::shard::node::state)). Only a segment's memory needs one.
//!
//! The rule cannot map and unmap without end: when a segment goes, twice what is pending and one
//! segment have memory. That has room for the dead nodes that are tolerated as well, so the next
//! segment is added after about as many further timers as a segment has nodes. The last one goes
//! after half as many.
//!
//! The work is done in steps, one for each advance: giving the bits of a batch of half a million
//! nodes takes milliseconds, and so does giving a hundred segments to the system. Steps are longer
//! where nodes are freed faster than steps would give them. The system takes as long for the 512
//! pages of a segment as the advancer for firing a thousand timers, so a step unmaps one segment at
//! most, or one part of a segment of ordinary pages ([`Nodes::give_part`]).
//!
//! Only the advancer uses a recycler.

use crate::shard::memory::epochs::Reclaimer;
use crate::shard::memory::pages::Nodes;
use crate::shard::memory::segment::Segment;
use crate::shard::memory::slab::{Freed, FreedNodes, KEEPS_FIRST_SEGMENT, Slab};
use crate::shard::memory::table::{Keep, Retired};
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

/// [`Recycler::shed`] gives back 1 / `SHARE` of the excess in one call, on the advancer's thread
/// when it has nothing else to do.
const SHARE: usize = 16;

pub(crate) struct Recycler<T> {
    /// Freed, and not yet given to the slab.
    nodes: FreedNodes,
    /// While a batch is being given: how many words it has at most.
    words: Option<usize>,
    /// Segments that are out of the table.
    retired: Retired<Segment<T>>,
    /// The rest of the segment that is going back to the system.
    parting: Option<Nodes<T>>,
    /// Nodes freed since the last step.
    freed: usize,
    /// Nodes freed since the slab was last empty, without those of `freed`.
    used: usize,
    /// The nodes that make a batch ripe.
    worth: usize,
}

impl<T> Recycler<T> {
    pub(crate) fn new(slab: &Slab<T>) -> Self {
        Self {
            nodes: FreedNodes::new(),
            words: None,
            retired: slab.retired(),
            parting: None,
            freed: 0,
            used: 0,
            worth: Self::least_worth(),
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

    /// The number of segments that are on their way to the system.
    fn leaving(&self) -> usize {
        self.retired.count() + usize::from(self.parting.is_some())
    }

    /// Gives at least that many words of the batch to the slab, and further words in proportion to
    /// the nodes freed since the last step: the whole batch has been given when the next batch has
    /// half of the nodes that make it ripe. Begins a batch that is ripe.
    pub(crate) fn step(&mut self, least: usize, slab: &Slab<T>, reclaimer: &mut Reclaimer) {
        let freed = std::mem::take(&mut self.freed);
        self.used = self.used.saturating_add(freed);
        let mut words = least;
        if let Some(of_batch) = self.words {
            words = words.saturating_add(freed.saturating_mul(2 * of_batch).div_ceil(self.worth));
        } else if self.is_ripe() {
            self.hurry(slab);
        }
        if self.words.is_some() && words > 0 {
            let nodes = &mut self.nodes;
            let batch = (0..words).map_while(|_| nodes.take_word::<T>());
            slab.give_words(batch, Keep::by(reclaimer));
            self.words = self.words.filter(|_| nodes.count() > 0 && !nodes.is_at_end());
        }
    }

    /// Begins a batch, also of few nodes, unless one is under way: they wait for no further ones.
    /// Without them no segment may be empty.
    pub(crate) fn hurry(&mut self, slab: &Slab<T>) {
        if self.words.is_some() || self.nodes.count() == 0 {
            return;
        }
        self.nodes.rewind();
        self.words = Some(self.nodes.count().min(slab.words()));
        self.worth = Self::least_worth().max(slab.size() * Segment::<T>::NODES / WORTH_SHARE);
    }

    /// The number of segments beyond those that twice `live` timers fill (rounded up) and one to
    /// spare. With none pending there is none to spare once half a segment has been used.
    pub(crate) fn excess(&self, slab: &Slab<T>, live: usize) -> usize {
        let has_spare = live > 0 || self.used < Segment::<T>::NODES / 2 || KEEPS_FIRST_SEGMENT;
        slab.size().saturating_sub((2 * live).div_ceil(Segment::<T>::NODES) + usize::from(has_spare))
    }

    /// Takes an empty segment out of the table; true if there was one.
    pub(crate) fn retire_segment(&mut self, slab: &Slab<T>, reclaimer: &mut Reclaimer) -> bool {
        let Some(index) = slab.retire_one(&mut self.retired, reclaimer) else { return false };
        self.nodes.forget(index);
        if slab.size() == 0 {
            self.used = 0;
        }
        true
    }

    /// Gives a part of a segment whose readers have unpinned to the system, or the whole; true if it
    /// did.
    pub(crate) fn give_memory(&mut self, whole: bool, reclaimer: &Reclaimer) -> bool {
        let next = || self.retired.take(reclaimer).map(|segment| segment.nodes);
        let Some(nodes) = self.parting.take().or_else(next) else { return false };
        self.parting = if whole { None } else { nodes.give_part() };
        true
    }

    /// Gives back a share of the memory that `live` timers do not need, and does a step so that
    /// nodes freed so far count at the next call.
    pub(crate) fn shed(&mut self, slab: &Slab<T>, live: usize, reclaimer: &mut Reclaimer) {
        let excess = self.excess(slab, live);
        let share = (excess + self.leaving()).div_ceil(SHARE);
        self.hurry(slab);
        self.step(WORDS_PER_STEP, slab, reclaimer);
        for _ in 0..share {
            self.give_memory(true, reclaimer);
        }
        for _ in 0..share.min(excess) {
            self.retire_segment(slab, reclaimer);
        }
    }

    /// Whether [`shed`](Self::shed) may have something to give back, with `live` timers pending.
    /// One timer is enough to keep a segment.
    pub(crate) fn owes_memory(&self, slab: &Slab<T>, live: usize) -> bool {
        let may_retire = self.nodes.count() > 0 || slab.may_retire();
        self.leaving() > 0 || may_retire && self.excess(slab, live) > 0
    }

    /// The nodes on their way to the slab; for invariant checks.
    #[cfg(any(test, debug_assertions, fuzzing, shardwheel_loom))]
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.ids::<T>()
    }

    /// The number of freed nodes that the slab does not have yet.
    pub(crate) fn len(&self) -> usize {
        self.nodes.count()
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing, miri))))]
mod tests;
