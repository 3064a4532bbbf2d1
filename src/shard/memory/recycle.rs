//! Recycling: how a node that the advancer has freed is handed out again, and how an empty segment
//! goes back to the system.
//!
//! The advancer collects freed nodes in a bitmap of its own. When a batch is large enough, its bits
//! are given to the slab, one read-modify-write for up to 64 nodes, while the next batch is
//! collected. No node's memory is touched on the way. A freed node needs no grace period: every
//! access of a thread to a node that it does not own ends in a swap of the node's word, which fails
//! because the word's version never comes again (see [`state`](crate::shard::node::state)), and
//! what it has read before is then of no account. Only a segment's memory needs one.
//!
//! The work is done in steps, one for each advance: giving the bits of a batch of half a million
//! nodes takes milliseconds, and so does giving a hundred segments to the system. Steps are longer
//! where nodes are freed faster than steps would give them, and at the end of a long drain.
//!
//! [`excess`] decides which memory goes back, and when. [`leaving`](crate::shard::memory::leaving)
//! gives it to the system in steps.
//!
//! Only the advancer uses a recycler.

mod excess;

use self::excess::Trim;
use crate::shard::memory::epochs::Reclaimer;
use crate::shard::memory::leaving::Leaving;
use crate::shard::memory::segment::Segment;
use crate::shard::memory::slab::{Freed, FreedNodes, Slab};
use crate::shard::memory::slot::Keep;
use crate::shard::node::NodeId;

/// A batch is ripe, and is given to the slab, when it has `LEAST_WORTH` nodes, or 1 / `WORTH_SHARE`
/// of all nodes if that is more. Where a segment has few nodes, a quarter of a segment is enough.
const LEAST_WORTH: usize = if crate::config::SMALL { 4 } else { 64 };
const WORTH_SHARE: usize = 16;

/// How many nodes wait for the prefetch of their words of the bitmap. With millions of timers the
/// bitmap is as large as a cache.
const QUEUE: usize = 8;

/// A batch that is not ripe is given after this many steps, if there is more memory than the
/// pending timers need; at the next step, if none is pending.
const STEPS: usize = if cfg!(shardwheel_loom) || crate::config::SMALL { 1 } else { 16 };

/// How many words of the bitmap a step gives to the slab. It gives further words in proportion to
/// the nodes freed since the last step: the whole batch has been given when the next batch has half
/// of the nodes that make it ripe.
const WORDS_PER_STEP: usize = if crate::config::SMALL { 2 } else { 512 };

/// A drain that has freed this many nodes since the last step does another one, if the batch is
/// ripe.
const STRIDE: usize = if cfg!(shardwheel_loom) || crate::config::SMALL { 1 } else { 64 };

pub(crate) struct Recycler<T> {
    /// The nodes freed last, whose words of the bitmap are being prefetched.
    queue: [Option<Freed>; QUEUE],
    oldest: usize,
    collecting: FreedNodes,
    /// Being given to the slab.
    giving: FreedNodes,
    /// How many words `giving` had at first.
    words: usize,
    leaving: Leaving<T>,
    /// Steps since a batch was last given, and after how many a batch that is not ripe is given.
    steps: usize,
    most_steps: usize,
    /// Nodes freed since the last step.
    freed: usize,
    /// The nodes that make a batch ripe.
    worth: usize,
    trim: Trim,
}

/// A bitmap of up to this many words (8 KiB) keeps its memory.
const KEPT_WORDS: usize = 1024;

impl<T> Recycler<T> {
    /// Frees a bitmap that is empty and far larger than the segments need.
    fn shrink(bitmap: &mut FreedNodes, slab: &Slab<T>) {
        let is_large = |segments: usize| bitmap.words() > 8 * segments * Segment::<T>::WORDS;
        if bitmap.count() == 0
            && bitmap.words() > KEPT_WORDS
            && is_large(slab.size())
            && is_large(slab.extent())
        {
            bitmap.forget();
        }
    }

    pub(crate) fn new(slab: &Slab<T>) -> Self {
        Self {
            queue: [const { None }; QUEUE],
            oldest: 0,
            collecting: FreedNodes::new(),
            giving: FreedNodes::new(),
            words: 0,
            leaving: Leaving::new(slab.retired()),
            steps: 0,
            most_steps: 0,
            freed: 0,
            worth: Self::least_worth(),
            trim: Trim::new(),
        }
    }

    fn least_worth() -> usize {
        LEAST_WORTH.min(Segment::<T>::NODES / 4)
    }

    /// Takes a node that the advancer has freed and unlinked.
    #[inline]
    pub(crate) fn retire(&mut self, node: Freed) {
        self.freed += 1;
        self.collecting.prefetch(&node);
        let oldest = self.queue[self.oldest].replace(node);
        self.oldest = (self.oldest + 1) % QUEUE;
        if let Some(oldest) = oldest {
            self.collecting.add(oldest);
        }
    }

    fn empty_queue(&mut self) {
        let queue = self.queue.iter_mut().filter_map(Option::take);
        queue.for_each(|node| self.collecting.add(node));
    }

    #[inline]
    pub(crate) fn is_ripe(&self) -> bool {
        self.collecting.count() >= self.worth
    }

    #[inline]
    pub(crate) fn is_step_due(&self) -> bool {
        self.freed >= STRIDE && self.is_ripe()
    }

    /// Whether a batch is being given to the slab, or memory to the system.
    pub(crate) fn is_giving(&self) -> bool {
        self.giving.count() > 0 || !self.leaving.is_empty()
    }

    pub(crate) fn poll(&mut self, slab: &Slab<T>, reclaimer: &mut Reclaimer) -> bool {
        self.step(WORDS_PER_STEP, slab, reclaimer);
        self.leaving.step(reclaimer)
    }

    pub(crate) fn step_of_a_drain(&mut self, slab: &Slab<T>, reclaimer: &mut Reclaimer) {
        self.step(0, slab, reclaimer);
    }

    fn step(&mut self, least: usize, slab: &Slab<T>, reclaimer: &mut Reclaimer) {
        self.empty_queue();
        let freed = std::mem::take(&mut self.freed);
        self.trim.ended = self.trim.ended.saturating_add(freed);
        self.steps = self.steps.saturating_add(1);
        let mut words = least;
        if self.giving.count() > 0 {
            words = words.saturating_add(freed.saturating_mul(2 * self.words).div_ceil(self.worth));
        } else if self.is_ripe() || self.collecting.count() > 0 && self.steps >= self.most_steps {
            self.steps = 0;
            std::mem::swap(&mut self.collecting, &mut self.giving);
            self.words = self.giving.words_in_use();
            self.worth = Self::least_worth().max(slab.size() * Segment::<T>::NODES / WORTH_SHARE);
        }
        self.give(slab, words, reclaimer);
    }

    /// Notes that a lane's leftover free nodes have been given to the slab.
    pub(crate) fn note_given(&mut self) {
        self.trim.none_is_empty = false;
        self.trim.have_changed = true;
    }

    /// Gives all nodes to the slab. For the end of a long drain.
    pub(crate) fn poll_to_the_end(&mut self, slab: &Slab<T>, reclaimer: &mut Reclaimer) {
        for _ in 0..2 {
            self.steps = usize::MAX;
            self.step(usize::MAX, slab, reclaimer);
        }
        self.leaving.step(reclaimer);
    }

    #[inline]
    fn give(&mut self, slab: &Slab<T>, words: usize, reclaimer: &Reclaimer) {
        if self.giving.count() > 0 {
            slab.give_words((0..words).map_while(|_| self.giving.take_word()), Keep::by(reclaimer));
            self.note_given();
        }
    }

    /// The nodes on their way to the slab; for invariant checks.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        let queue = self.queue.iter().flatten().map(Freed::id);
        [&self.collecting, &self.giving].into_iter().flat_map(FreedNodes::ids).chain(queue)
    }

    #[cfg(any(test, debug_assertions, fuzzing, shardwheel_loom))]
    pub(crate) fn len(&self) -> usize {
        self.queue.iter().flatten().count() + self.collecting.count() + self.giving.count()
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing, miri))))]
mod tests;
