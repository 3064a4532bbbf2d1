//! How a node that the advancer has freed comes to be handed out again, and an empty segment or an idle
//! overflow wheel goes back to the system.
//!
//! Freed nodes are collected in a bitmap of the advancer's own. When there are enough of them, the batch
//! waits for one grace period while the next batch is collected; then its bits are given to the slab, one
//! read-modify-write for up to 64 nodes. No node's memory is touched on the way. Segments and wheels wait with
//! the batch during whose collection they were taken out of reach.
//!
//! Memory that is not needed goes back little by little, a sixteenth of what is too much at a time: who cancels a
//! million timers often schedules the next million soon, and would have the system clear all that memory again. Only at
//! the end of a long drain, after which there may be no further advance for long, all of it goes at once.

use super::node::NodeId;
use super::reclaim::{Grace, IS_STAND_IN, Unlinked};
use super::segment::{Segment, WORD_NODES};
use super::slab::Slab;
use super::wheel::Wheel;

/// A smaller batch does not start a grace period of its own, unless it has waited for many polls: so many
/// nodes, or this share of those that there is memory for, so that a word is given once for several nodes also
/// where timers end in no order. In the middle of a drain a batch is `RIPE` times as large.
const LEAST_WORTH: usize = if cfg!(fuzzing) { 4 } else { 64 };
const WORTH_SHARE: usize = 256;
const RIPE: usize = 16;
const PATIENCE: u32 = if cfg!(any(shardwheel_loom, fuzzing)) { 1 } else { 64 };

/// Nodes freed per segment that may be given back at once, so that the work stays O(1) a timer.
const NODES_PER_SEGMENT_GIVEN_BACK: usize = if cfg!(fuzzing) { 1 << 4 } else { 1 << 14 };

/// How often a long drain tries, at its end, to see its grace periods through.
const ATTEMPTS: usize = 8;

/// Moves of the clock from one time that memory goes back to the next, and the share of what is too much.
const MOVES_PER_SHARE: u32 = if cfg!(any(shardwheel_loom, fuzzing)) { 1 } else { 16 };
const SHARE: usize = 16;

pub(crate) struct Recycler<T> {
    collecting: Batch<T>,
    waiting: Option<(Batch<T>, Grace)>,
    /// A batch's memory, to be used again.
    spare: Batch<T>,
    polls: u32,
    /// Moves of the clock since memory last went back.
    moves: u32,
    /// How large a batch is worth a grace period.
    worth: usize,
    /// Nodes freed that have not yet paid for giving a segment back.
    credit: usize,
    /// What a model keeps to its end.
    kept: Remains<T>,
}

struct Batch<T> {
    /// A bit per node, for the words in `touched`.
    bits: Vec<u64>,
    touched: Vec<u32>,
    /// How many of the nodes are in each segment; counted when they are given.
    in_segment: Vec<u32>,
    nodes: usize,
    remains: Remains<T>,
}

/// What has been taken out of reach, and is freed when this is dropped.
pub(crate) struct Remains<T> {
    segments: Vec<Unlinked<Segment<T>>>,
    wheels: Vec<Unlinked<Wheel>>,
}

impl<T> Recycler<T> {
    pub(crate) fn new() -> Self {
        let (collecting, spare) = (Batch::new(), Batch::new());
        let kept = Remains::default();
        Self { collecting, waiting: None, spare, polls: 0, worth: LEAST_WORTH, credit: 0, moves: 0, kept }
    }

    /// Takes a node that the advancer has freed and unlinked.
    #[inline]
    pub(crate) fn retire(&mut self, id: NodeId) {
        self.collecting.add(id);
    }

    /// Takes a wheel that the advancer has emptied and taken out of reach.
    pub(crate) fn retire_wheel(&mut self, wheel: Unlinked<Wheel>) {
        self.collecting.remains.wheels.push(wheel);
    }

    /// Whether enough has been collected for [`poll`](Self::poll) to be worth a call.
    #[inline]
    pub(crate) fn is_ripe(&self) -> bool {
        self.collecting.nodes >= RIPE * self.worth
    }

    /// Moves batches on. Never waits.
    pub(crate) fn poll(&mut self, slab: &Slab<T>) {
        self.finish_waiting(slab);
        self.polls += 1;
        let worth_it = self.collecting.nodes >= self.worth || self.polls >= PATIENCE;
        if self.waiting.is_none() && !self.collecting.is_empty() && worth_it {
            let batch = std::mem::replace(&mut self.collecting, std::mem::take(&mut self.spare));
            self.credit += batch.nodes;
            self.waiting = Some((batch, Grace::begin()));
            self.polls = 0;
        }
    }

    /// Notes that the clock has moved, which has memory go back now and then; `live` tells how many timers are
    /// pending.
    #[inline]
    pub(crate) fn note_move(&mut self, slab: &Slab<T>, live: impl Fn() -> usize) {
        self.moves += 1;
        if self.moves >= MOVES_PER_SHARE {
            self.moves = 0;
            self.shed(slab, live());
        }
    }

    /// Gives a share of the memory back that `live` timers do not need.
    pub(crate) fn shed(&mut self, slab: &Slab<T>, live: usize) {
        let share = self.excess(slab, live).div_ceil(SHARE);
        self.give_back(slab, share);
    }

    /// Whether memory waits to go back, with `live` timers pending.
    pub(crate) fn owes_memory(&self, slab: &Slab<T>, live: usize) -> bool {
        let waiting = self.waiting.as_ref().is_some_and(|(batch, _)| !batch.remains.is_empty());
        waiting || !self.collecting.remains.is_empty() || self.excess(slab, live) > 0
    }

    /// Polls until nothing is left to do or a reader holds things up; after a long drain, whose memory
    /// should not wait for the next. `live` tells how many timers are pending.
    pub(crate) fn poll_to_the_end(&mut self, slab: &Slab<T>, live: impl Fn() -> usize) {
        for _ in 0..ATTEMPTS {
            self.polls = PATIENCE;
            self.poll(slab);
            let allowed = self.excess(slab, live()).min(1 + self.credit / NODES_PER_SEGMENT_GIVEN_BACK);
            self.give_back(slab, allowed);
            if self.waiting.is_none() {
                break;
            }
        }
    }

    fn finish_waiting(&mut self, slab: &Slab<T>) {
        if let Some((_, grace)) = &self.waiting
            && !grace.has_passed()
        {
            Grace::help();
        }
        if let Some((mut batch, _)) = self.waiting.take_if(|(_, grace)| grace.has_passed()) {
            batch.release(slab);
            let remains = std::mem::take(&mut batch.remains);
            if IS_STAND_IN {
                self.kept.add(remains);
            }
            self.spare = batch;
            let capacity = slab.capacity();
            self.worth = LEAST_WORTH.max(capacity / WORTH_SHARE);
            // What has been freed cannot pay for more segments than there are.
            self.credit = self.credit.min(capacity);
        }
    }

    /// How many segments there are beyond one and twice what `live` timers fill.
    fn excess(&self, slab: &Slab<T>, live: usize) -> usize {
        let needed = 2 * live + Segment::<T>::NODES;
        slab.capacity().saturating_sub(needed) / Segment::<T>::NODES
    }

    /// Takes that many segments out of the table, or those that are empty.
    fn give_back(&mut self, slab: &Slab<T>, segments: usize) {
        for _ in 0..segments {
            let Some(segment) = slab.unlink_one() else { break };
            self.credit = self.credit.saturating_sub(NODES_PER_SEGMENT_GIVEN_BACK);
            self.collecting.remains.segments.push(segment);
        }
    }

    /// What is out of reach and has not waited long enough; for the advancer's end.
    pub(crate) fn end(&mut self) -> Remains<T> {
        let mut remains = std::mem::take(&mut self.collecting.remains);
        remains.add(std::mem::take(&mut self.kept));
        if let Some((batch, _)) = self.waiting.take() {
            remains.add(batch.remains);
        }
        remains
    }

    /// The nodes under way, for invariant checks.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        let waiting = self.waiting.iter().map(|(batch, _)| batch);
        waiting.chain([&self.collecting]).flat_map(Batch::ids)
    }
}

impl<T> Batch<T> {
    fn new() -> Self {
        let (bits, touched, in_segment) = (Vec::new(), Vec::new(), Vec::new());
        Self { bits, touched, in_segment, nodes: 0, remains: Remains::default() }
    }

    #[inline]
    fn add(&mut self, id: NodeId) {
        let word = id as usize / WORD_NODES;
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        if self.bits[word] == 0 {
            self.touched.push(word as u32);
        }
        self.bits[word] |= 1 << (id as usize % WORD_NODES);
        self.nodes += 1;
    }

    fn is_empty(&self) -> bool {
        self.nodes == 0 && self.remains.is_empty()
    }

    /// Gives the nodes to the slab.
    fn release(&mut self, slab: &Slab<T>) {
        self.in_segment.resize(self.bits.len().div_ceil(Segment::<T>::WORDS), 0);
        for &word in &self.touched {
            self.in_segment[word as usize / Segment::<T>::WORDS] += self.bits[word as usize].count_ones();
        }
        let segments = self.in_segment.iter().enumerate().filter(|&(_, &nodes)| nodes > 0);
        segments.clone().for_each(|(segment, &nodes)| slab.begin_to_give(segment, nodes));
        for word in self.touched.drain(..) {
            slab.give(word as usize, std::mem::take(&mut self.bits[word as usize]));
        }
        segments.for_each(|(segment, _)| slab.reopen(segment));
        self.in_segment.fill(0);
        self.nodes = 0;
    }

    fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.touched.iter().flat_map(move |&word| {
            let set = move |bit: &u32| (self.bits[word as usize] >> bit) & 1 == 1;
            (0..WORD_NODES as u32).filter(set).map(move |bit| word * WORD_NODES as u32 + bit)
        })
    }
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Remains<T> {
    fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.wheels.is_empty()
    }

    fn add(&mut self, more: Self) {
        self.segments.extend(more.segments);
        self.wheels.extend(more.wheels);
    }
}

impl<T> Default for Remains<T> {
    fn default() -> Self {
        Self { segments: Vec::new(), wheels: Vec::new() }
    }
}
