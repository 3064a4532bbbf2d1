//! Recycling: how a node that the advancer has freed is handed out again, and how an empty segment
//! or an idle overflow wheel goes back to the system.
//!
//! The advancer collects freed nodes in a bitmap of its own. When a batch is large enough, it waits
//! for one grace period while the next batch is collected. Then its bits are given to the slab, one
//! read-modify-write for up to 64 nodes. No node's memory is touched on the way. Segments and
//! wheels wait with the batch that was being collected when they were unlinked.
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

use self::excess::MOST_MOVES;
use crate::shard::memory::batch::{Batch, Retired};
use crate::shard::memory::epochs::{Grace, IS_STAND_IN, Reclaimer};
use crate::shard::memory::leaving::Leaving;
use crate::shard::memory::patience::Patience;
use crate::shard::memory::segment::Segment;
use crate::shard::memory::slab::{Freed, Slab};
use crate::shard::memory::slot::{Keep, Unlinked};
use crate::shard::node::NodeId;
use crate::shard::wheel::Wheel;

/// A smaller batch starts no grace period before its [`Patience`] is over. `LEAST_WORTH` nodes, or
/// 1 / `WORTH_SHARE` of all nodes if that is more, are enough.
const LEAST_WORTH: usize = if crate::config::SMALL { 4 } else { 64 };
const WORTH_SHARE: usize = 16;

/// How many nodes wait for the prefetch of their words of the bitmap. With millions of timers the
/// bitmap is as large as a cache.
const QUEUE: usize = 8;

/// How often, at most, the end of a long drain polls to complete its grace periods.
const ATTEMPTS: usize = 8;

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
    /// The place of the oldest of them.
    oldest: usize,
    collecting: Batch<T>,
    waiting: Option<(Batch<T>, Grace)>,
    /// Its grace period has passed, and its nodes are being given to the slab. Its segments and
    /// wheels are in `leaving`.
    releasing: Batch<T>,
    /// How many words `releasing` had at first.
    words: usize,
    /// Segments and wheels whose grace period has passed; they go back to the system.
    leaving: Leaving<T>,
    /// A batch's memory, kept for reuse.
    spare: Batch<T>,
    patience: Patience,
    /// Nodes freed since the last step.
    freed: usize,
    /// Nodes freed up to the last step, counted since the slab last had no segment.
    ended: usize,
    /// The value of `ended` when the lanes were last asked for the nodes that they keep.
    asked: usize,
    /// Moves of the clock since a segment last went back, and the number of moves between two
    /// segments.
    moves: usize,
    moves_per_segment: usize,
    /// How many timers had been scheduled at the last move.
    scheduled: u64,
    /// The search for an empty segment has looked at all places from this one on.
    looked_above: usize,
    /// Whether a node has been given to the slab since the search began.
    have_changed: bool,
    /// Whether a search has found no empty segment, and no node has been given to the slab since it
    /// began.
    none_is_empty: bool,
    /// How many nodes make a batch worth a grace period.
    worth: usize,
    /// How often producers had given nodes back at the last call of `give_back`.
    given_back: u64,
    /// What a model keeps until its end.
    kept: Retired<T>,
}

impl<T> Recycler<T> {
    pub(crate) fn new() -> Self {
        let (collecting, spare) = (Batch::new(), Batch::new());
        let kept = Retired::default();
        Self {
            queue: [const { None }; QUEUE],
            oldest: 0,
            collecting,
            waiting: None,
            releasing: Batch::new(),
            words: 0,
            leaving: Leaving::new(),
            spare,
            patience: Patience::default(),
            freed: 0,
            ended: 0,
            asked: 0,
            worth: LEAST_WORTH,
            moves: 0,
            moves_per_segment: MOST_MOVES,
            scheduled: 0,
            looked_above: usize::MAX,
            have_changed: true,
            none_is_empty: false,
            given_back: 0,
            kept,
        }
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

    /// Takes a wheel that the advancer has emptied and unlinked.
    ///
    /// The caller has checked that there is [room](Self::has_room).
    pub(crate) fn retire_wheel(&mut self, wheel: Unlinked<Wheel>) {
        self.collecting.remains.push_wheel(wheel);
    }

    /// Reserves memory to take that many wheels; false if there is none.
    pub(crate) fn has_room(&mut self, wheels: usize) -> bool {
        self.collecting.remains.has_room(0, wheels)
    }

    /// Whether the batch is large enough for a [`poll`](Self::poll).
    #[inline]
    pub(crate) fn is_ripe(&self) -> bool {
        self.collecting.nodes() >= self.worth
    }

    /// Whether a drain should do a [`step_of_a_drain`](Self::step_of_a_drain) now.
    #[inline]
    pub(crate) fn is_step_due(&self) -> bool {
        self.freed >= STRIDE && self.is_ripe()
    }

    /// Whether a batch is being given to the slab, or memory to the system.
    pub(crate) fn is_giving(&self) -> bool {
        !self.releasing.is_empty() || !self.leaving.is_empty()
    }

    /// Moves the batches on by one step. Never waits. Returns whether memory went back to the system,
    /// which costs as much as the rest of the step.
    pub(crate) fn poll(&mut self, slab: &Slab<T>, reclaimer: &mut Reclaimer) -> bool {
        self.step(WORDS_PER_STEP, slab, reclaimer);
        self.leaving.give_part()
    }

    /// As [`poll`](Self::poll), within a drain, which may do many: of a batch that is being given to
    /// the slab, only the share of the nodes freed since the last step, and no memory to the system.
    pub(crate) fn step_of_a_drain(&mut self, slab: &Slab<T>, reclaimer: &mut Reclaimer) {
        self.step(0, slab, reclaimer);
    }

    fn step(&mut self, least: usize, slab: &Slab<T>, reclaimer: &mut Reclaimer) {
        self.empty_queue();
        let freed = std::mem::take(&mut self.freed);
        self.ended = self.ended.saturating_add(freed);
        let mut words = least;
        if self.releasing.is_empty() {
            self.finish_waiting(slab, reclaimer);
        } else {
            words += freed.saturating_mul(2 * self.words).div_ceil(self.worth);
        }
        self.release(slab, words, reclaimer);
        self.patience.note_poll();
        let is_time = self.is_ripe() || self.patience.is_over();
        if self.waiting.is_none() && !self.collecting.is_empty() && is_time {
            self.begin_waiting(reclaimer);
        }
    }

    /// Notes that a lane's leftover free nodes have been given to the slab.
    pub(crate) fn note_given(&mut self) {
        self.none_is_empty = false;
        self.have_changed = true;
    }

    /// Polls until nothing is left to do or a reader delays a grace period, at most [`ATTEMPTS`]
    /// times. For the end of a long drain, whose nodes should not wait for the next drain.
    pub(crate) fn poll_to_the_end(&mut self, slab: &Slab<T>, reclaimer: &mut Reclaimer) {
        for _ in 0..ATTEMPTS {
            self.patience.end();
            self.poll(slab, reclaimer);
            self.release(slab, usize::MAX, reclaimer);
            if self.waiting.is_none() {
                break;
            }
        }
    }

    /// Begins a grace period for the collected batch. Without memory for it, a later poll tries
    /// again.
    fn begin_waiting(&mut self, reclaimer: &Reclaimer) {
        if let Some(grace) = Grace::begin(reclaimer.participant()) {
            let batch = std::mem::replace(&mut self.collecting, std::mem::take(&mut self.spare));
            self.waiting = Some((batch, grace));
            self.patience.begin();
        }
    }

    fn finish_waiting(&mut self, slab: &Slab<T>, reclaimer: &Reclaimer) {
        if let Some((_, grace)) = &self.waiting
            && !grace.has_passed()
        {
            Grace::help(reclaimer.participant());
        }
        let leaving = &mut self.leaving;
        let goes_on = |(batch, grace): &mut (Batch<T>, Grace)| {
            grace.has_passed() && leaving.make_room_for(&batch.remains)
        };
        if let Some((mut batch, grace)) = self.waiting.take_if(goes_on) {
            let remains = std::mem::take(&mut batch.remains);
            if IS_STAND_IN {
                self.kept.add(remains);
            } else {
                self.leaving.add(remains, grace);
            }
            batch.trim(slab);
            self.words = batch.words();
            self.spare = std::mem::replace(&mut self.releasing, batch);
            self.worth = LEAST_WORTH.max(slab.size() * Segment::<T>::NODES / WORTH_SHARE);
        }
    }

    /// Gives the nodes of up to `words` words to the slab.
    #[inline]
    fn release(&mut self, slab: &Slab<T>, words: usize, reclaimer: &Reclaimer) {
        if !self.releasing.is_empty() {
            self.releasing.release(slab, words, Keep::by(reclaimer));
            self.note_given();
        }
    }

    /// Returns what is unlinked and not yet reclaimed; for the advancer's end.
    pub(crate) fn end(&mut self) -> Retired<T> {
        let waiting = self.waiting.take().map(|(batch, _)| batch.remains).unwrap_or_default();
        let mut remains = std::mem::take(&mut self.collecting.remains);
        for more in [std::mem::take(&mut self.kept), waiting] {
            // If there is no memory to remember it by, it is never freed.
            if remains.make_room_for(&more) {
                remains.add(more);
            }
        }
        remains
    }

    /// The nodes on their way to the slab; for invariant checks.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        let queue = self.queue.iter().flatten().map(Freed::id);
        self.batches().flat_map(Batch::ids).chain(queue)
    }

    /// The number of those nodes, by the batches' own count; for invariant checks.
    pub(crate) fn len(&self) -> usize {
        let queued = self.queue.iter().flatten().count();
        queued + self.batches().map(Batch::nodes).sum::<usize>()
    }

    fn batches(&self) -> impl Iterator<Item = &Batch<T>> {
        let waiting = self.waiting.iter().map(|(batch, _)| batch);
        waiting.chain([&self.collecting, &self.releasing])
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing, miri))))]
mod tests;
