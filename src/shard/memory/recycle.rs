//! How a node that the advancer has freed comes to be handed out again, and an empty segment or an idle
//! overflow wheel goes back to the system.
//!
//! Freed nodes are collected in a bitmap of the advancer's own. When there are enough of them, the batch
//! waits for one grace period while the next batch is collected; then its bits are given to the slab, one
//! read-modify-write for up to 64 nodes. No node's memory is touched on the way. Segments and wheels wait with
//! the batch during whose collection they were taken out of reach.
//!
//! All of that goes in steps, one for each advance: giving the bits of a batch of half a million nodes takes
//! milliseconds, and so does giving a hundred segments to the system. Steps are longer where nodes are freed faster than
//! steps would give them, and at the end of a long drain.
//!
//! Memory that is not needed is taken out of use little by little, as the clock moves, and goes back a grace period
//! later: who has a million timers end often schedules the next million soon, and would have the system clear all that
//! memory again. Where nothing is scheduled from one move to the next, it goes faster. The last segment goes like the
//! others where nothing is pending, but not before many timers have used it.

use crate::shard::memory::batch::{Batch, Retired};
use crate::shard::memory::epochs::{Grace, IS_STAND_IN, Participant, Unlinked};
use crate::shard::memory::segment::Segment;
use crate::shard::memory::slab::{Slab, staying};
use crate::shard::node::{NIL, NodeId};
use crate::shard::wheel::Wheel;

/// A smaller batch does not start a grace period of its own, unless it has waited for many polls: so many
/// nodes, or this share of those that there is memory for, so that a word is given once for several nodes also
/// where timers end in no order.
const LEAST_WORTH: usize = if crate::config::SMALL { 4 } else { 64 };
const WORTH_SHARE: usize = 16;
const PATIENCE: u32 = if cfg!(shardwheel_loom) || crate::config::SMALL { 1 } else { 64 };

/// How many nodes wait for their words of the bitmap, which is as large as a cache where there are millions of timers.
const QUEUE: usize = 8;

/// How often a long drain tries, at its end, to see its grace periods through.
const ATTEMPTS: usize = 8;

/// A segment goes back for so many moves of the clock divided by the segments that are too many, but not more often than
/// at each move, nor less often than at this many; at each move where nothing has been scheduled since the last.
const MOVES_PER_SEGMENT: usize = 256;
const MOST_MOVES: usize = if cfg!(shardwheel_loom) || crate::config::SMALL { 1 } else { 16 };

/// The share of what is too much that goes in a step of its own, on the advancer's thread when it has nothing to do.
const SHARE: usize = 16;

/// The last segment of an idle shard goes once this share of its nodes has been used.
const USED_SHARE: usize = 2;

/// How many words of the bitmap are given to the slab in a step, beside one for each node that has been freed since the
/// last: so a batch is given before the next one is as large.
const WORDS_PER_STEP: usize = if crate::config::SMALL { 2 } else { 1024 };

pub(crate) struct Recycler<T> {
    /// Nodes freed last, whose words of the bitmap are on their way from memory; `NIL` where there is none.
    queue: [NodeId; QUEUE],
    /// Where the oldest of them is.
    oldest: usize,
    collecting: Batch<T>,
    waiting: Option<(Batch<T>, Grace)>,
    /// Has waited long enough, and is on its way to the slab; its segments and wheels are in `leaving`.
    releasing: Batch<T>,
    /// What has waited long enough and goes back to the system.
    leaving: Retired<T>,
    /// A batch's memory, to be used again.
    spare: Batch<T>,
    polls: u32,
    /// Nodes freed since the last step.
    freed: usize,
    /// Nodes freed, up to the last step, since there was no segment.
    ended: usize,
    /// How many of them there were when lanes were last asked for what they keep.
    asked: usize,
    /// Moves of the clock since a segment last went back, and how many there are from one to the next.
    moves: usize,
    moves_per_segment: usize,
    /// How many timers had been scheduled at the last move.
    scheduled: u64,
    /// All segments above this one have been looked at in the search for one that is empty.
    looked_above: usize,
    /// Whether a node has been given to the slab since the search began.
    have_changed: bool,
    /// Whether a search has found no empty segment, and no node has been given to the slab since it began.
    none_is_empty: bool,
    /// How large a batch is worth a grace period.
    worth: usize,
    /// How often producers had given nodes back when a search began.
    given_back: u64,
    /// What a model keeps to its end.
    kept: Retired<T>,
}

impl<T> Recycler<T> {
    pub(crate) fn new() -> Self {
        let (collecting, spare) = (Batch::new(), Batch::new());
        let kept = Retired::default();
        let queue = [NIL; QUEUE];
        Self {
            queue,
            oldest: 0,
            collecting,
            waiting: None,
            releasing: Batch::new(),
            leaving: Retired::default(),
            spare,
            polls: 0,
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
    pub(crate) fn retire(&mut self, id: NodeId) {
        self.freed += 1;
        self.collecting.prefetch(id);
        let oldest = std::mem::replace(&mut self.queue[self.oldest], id);
        self.oldest = (self.oldest + 1) % QUEUE;
        if oldest != NIL {
            self.collecting.add(oldest);
        }
    }

    fn empty_queue(&mut self) {
        let queue = std::mem::replace(&mut self.queue, [NIL; QUEUE]);
        queue.into_iter().filter(|&id| id != NIL).for_each(|id| self.collecting.add(id));
    }

    /// Takes a wheel that the advancer has emptied and taken out of reach.
    ///
    /// There is [room](Self::has_room) for it.
    pub(crate) fn retire_wheel(&mut self, wheel: Unlinked<Wheel>) {
        self.collecting.remains.push_wheel(wheel);
    }

    /// Whether there is memory to take so many wheels.
    pub(crate) fn has_room(&mut self, wheels: usize) -> bool {
        self.collecting.remains.has_room(0, wheels)
    }

    /// Whether enough has been collected for [`poll`](Self::poll) to be worth a call.
    #[inline]
    pub(crate) fn is_ripe(&self) -> bool {
        self.collecting.nodes() >= self.worth
    }

    /// Moves batches on by a step. Never waits.
    pub(crate) fn poll(&mut self, slab: &Slab<T>, advancer: &Participant) {
        self.empty_queue();
        let freed = std::mem::take(&mut self.freed);
        self.ended = self.ended.saturating_add(freed);
        let step = WORDS_PER_STEP + freed;
        if self.releasing.is_empty() {
            self.finish_waiting(slab, advancer);
        }
        self.release(slab, step);
        self.let_go();
        self.polls += 1;
        let worth_it = self.collecting.nodes() >= self.worth || self.polls >= PATIENCE;
        if self.waiting.is_none() && !self.collecting.is_empty() && worth_it {
            self.begin_waiting(advancer);
        }
    }

    /// Notes that the clock has moved, which has memory go back; so many timers have been `scheduled` so far, and so
    /// many are pending.
    /// True if nothing has been scheduled since the last move, and there is memory that they do not need.
    #[inline]
    pub(crate) fn note_move(&mut self, slab: &Slab<T>, scheduled: u64, live: usize) -> bool {
        self.moves += 1;
        let is_idle = std::mem::replace(&mut self.scheduled, scheduled) == scheduled;
        if is_idle || self.moves >= self.moves_per_segment {
            self.moves = 0;
            let excess = self.excess(slab, live);
            self.moves_per_segment = (MOVES_PER_SEGMENT / excess.max(1)).clamp(1, MOST_MOVES);
            self.give_back(slab, excess.min(1));
            return is_idle && excess > 0;
        }
        false
    }

    /// Gives a share of the memory back that `live` timers do not need, and sees to it that what has been freed counts
    /// the next time.
    pub(crate) fn shed(&mut self, slab: &Slab<T>, live: usize, advancer: &Participant) {
        let excess = self.excess(slab, live);
        let share = (excess + self.leaving.segments()).div_ceil(SHARE);
        self.polls = PATIENCE;
        self.poll(slab, advancer);
        (1..share).for_each(|_| self.let_go());
        self.give_back(slab, share.min(excess));
    }

    /// Whether [`shed`](Self::shed) may have something to give back, with `live` timers pending. Not so where all that
    /// has been freed is known to the slab, and no segment was empty then: one timer is enough to keep it.
    pub(crate) fn owes_memory(&self, slab: &Slab<T>, live: usize) -> bool {
        let under_way = self.batches().any(|batch| !batch.remains.is_empty());
        if under_way || !self.leaving.is_empty() {
            return true;
        }
        let is_settled = self.waiting.is_none() && self.nodes().next().is_none();
        let may_be_empty = !self.none_is_empty || slab.given_back() != self.given_back;
        (!is_settled || may_be_empty) && self.excess(slab, live) > 0
    }

    /// Whether there is a segment more than `live` timers need, so that lanes may be asked for the nodes that they keep.
    /// Not again for the last segment before a good part of it has been used again.
    pub(crate) fn is_worth_asking(&self, slab: &Slab<T>, live: usize) -> bool {
        Self::excess_used(slab, live, self.ended - self.asked) > 0
    }

    /// Notes that lanes are asked.
    pub(crate) fn note_asked(&mut self) {
        self.asked = self.ended;
    }

    /// Notes that free nodes which a lane had left over have been given to the slab.
    pub(crate) fn note_given(&mut self) {
        self.none_is_empty = false;
        self.have_changed = true;
    }

    /// Polls until nothing is left to do or a reader holds things up; after a long drain, whose nodes should not
    /// wait for the next.
    pub(crate) fn poll_to_the_end(&mut self, slab: &Slab<T>, advancer: &Participant) {
        for _ in 0..ATTEMPTS {
            self.polls = PATIENCE;
            self.poll(slab, advancer);
            self.release(slab, usize::MAX);
            if self.waiting.is_none() {
                break;
            }
        }
    }

    /// Begins a grace period for what has been collected; later, where there is no memory for it.
    fn begin_waiting(&mut self, advancer: &Participant) {
        if let Some(grace) = Grace::begin(advancer) {
            let batch = std::mem::replace(&mut self.collecting, std::mem::take(&mut self.spare));
            self.waiting = Some((batch, grace));
            self.polls = 0;
        }
    }

    fn finish_waiting(&mut self, slab: &Slab<T>, advancer: &Participant) {
        if let Some((_, grace)) = &self.waiting
            && !grace.has_passed()
        {
            Grace::help(advancer);
        }
        let leaving = &mut self.leaving;
        let goes_on = |(batch, grace): &mut (Batch<T>, Grace)| {
            grace.has_passed() && leaving.make_room_for(&batch.remains)
        };
        if let Some((mut batch, _)) = self.waiting.take_if(goes_on) {
            self.leaving.add(std::mem::take(&mut batch.remains));
            batch.trim(slab);
            self.spare = std::mem::replace(&mut self.releasing, batch);
            self.worth = LEAST_WORTH.max(slab.size() * Segment::<T>::NODES / WORTH_SHARE);
        }
    }

    /// Gives the nodes of so many words to the slab.
    #[inline]
    fn release(&mut self, slab: &Slab<T>, words: usize) {
        if !self.releasing.is_empty() {
            self.releasing.release(slab, words);
            self.note_given();
        }
    }

    /// Gives a segment and a wheel to the system.
    #[inline]
    fn let_go(&mut self) {
        if self.leaving.is_empty() {
            return;
        }
        if IS_STAND_IN {
            self.kept.add(std::mem::take(&mut self.leaving));
        } else {
            self.leaving.drop_one();
        }
    }

    /// How many segments there are beyond twice what `live` timers fill, and one or two to spare while there are any. An idle
    /// shard keeps its last one until a good part of it has been used, for the sake of a timer now and then.
    fn excess(&self, slab: &Slab<T>, live: usize) -> usize {
        Self::excess_used(slab, live, self.ended)
    }

    fn excess_used(slab: &Slab<T>, live: usize, used: usize) -> usize {
        let segments = slab.size();
        if live > 0 {
            return segments.saturating_sub((2 * live).div_ceil(Segment::<T>::NODES) + 1);
        }
        let is_last_kept = segments == 1 && used < Segment::<T>::NODES / USED_SHARE;
        segments.saturating_sub(staying().max(usize::from(is_last_kept)))
    }

    /// Takes that many segments out of the table, or those of them that are empty, the highest first.
    fn give_back(&mut self, slab: &Slab<T>, segments: usize) {
        let given_back = slab.given_back();
        if std::mem::replace(&mut self.given_back, given_back) != given_back {
            self.note_given();
        }
        for _ in 0..segments {
            if !self.collecting.remains.has_room(1, 0) {
                break;
            }
            match slab.unlink_one(self.looked_above) {
                Ok(segment) => self.collecting.remains.push_segment(segment),
                Err(looked_above) if looked_above > staying() => self.looked_above = looked_above,
                Err(_) => {
                    self.looked_above = usize::MAX;
                    self.none_is_empty = !std::mem::take(&mut self.have_changed);
                    break;
                }
            }
        }
        if slab.size() == 0 {
            (self.ended, self.asked) = (0, 0);
        }
        for batch in [&mut self.collecting, &mut self.releasing, &mut self.spare] {
            batch.trim(slab);
        }
    }

    /// What is out of reach and has not waited long enough; for the advancer's end.
    pub(crate) fn end(&mut self) -> Retired<T> {
        let waiting = self.waiting.take().map(|(batch, _)| batch.remains);
        let all =
            [std::mem::take(&mut self.kept), std::mem::take(&mut self.leaving), waiting.unwrap_or_default()];
        let mut remains = std::mem::take(&mut self.collecting.remains);
        for more in all {
            if remains.make_room_for(&more) {
                remains.add(more);
            } else {
                // Others may be looking at it, and there is no memory to remember it by: it is never freed.
                std::mem::forget(more);
            }
        }
        remains
    }

    /// The nodes under way, for invariant checks.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        let queue = self.queue.into_iter().filter(|&id| id != NIL);
        self.batches().flat_map(Batch::ids).chain(queue)
    }

    /// How many there are, by the batches' own count; for invariant checks.
    pub(crate) fn len(&self) -> usize {
        let queued = self.queue.into_iter().filter(|&id| id != NIL).count();
        queued + self.batches().map(Batch::nodes).sum::<usize>()
    }

    fn batches(&self) -> impl Iterator<Item = &Batch<T>> {
        let waiting = self.waiting.iter().map(|(batch, _)| batch);
        waiting.chain([&self.collecting, &self.releasing])
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing, miri))))]
mod tests;
