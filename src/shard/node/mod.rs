//! A node: the memory of one timer.
//!
//! A node ([`cell`]) has an atomic [`Word`] (status, version, extension), a `base` tick, a link and
//! a payload cell. Every operation on a timer is a transition of the word; [`state`] has the table.
//! The list that a node is linked in does not decide its fate.
//!
//! # Invariants
//!
//! - The thread that wins a transition of the word has exclusive access to the payload.
//! - `base` does not change while the timer is pending.
//! - `next` is written by the thread that links the node: its owner before the push, the advancer
//!   after it has detached the list.

mod cell;
mod recurring;
pub(crate) mod state;

pub(crate) use cell::{Filled, Node, PayloadSlot, Tag, Unborrowed, Vacant};
pub(crate) use recurring::Stopped;

use crate::shard::node::state::{MAX_EXTENSION, Status, Word};
use crate::sync::{Ordering, fence};
use crate::tick::Tick;

/// Names a node: its segment in the slab and its place in that segment. 0 names no node.
pub(crate) type NodeId = u32;

/// Ends a list.
pub(crate) const NIL: NodeId = 0;

/// The result of [`Node::extend`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Extended {
    /// The timer has the requested deadline, and the node stays in its list.
    Done,
    /// The requested deadline is earlier, or too far in the future: the timer needs another node.
    NeedsMove,
    /// The timer is not pending any more.
    Gone,
}

impl<T> Node<T> {
    /// Returns whether the unused node is worn out, or would be found worn out by
    /// [`prepare`](Self::prepare).
    #[cfg(any(test, debug_assertions, fuzzing, shardwheel_loom))]
    pub(crate) fn is_worn_out(&self) -> bool {
        self.peek().is_last_version()
    }

    /// Cancels the timer of that generation (`era` is the segment's). The winner gets the payload.
    /// A thread that comes second finds another status or version and gets `None`.
    pub(crate) fn cancel(&self, era: u32, generation: u64) -> Option<T> {
        let (vacant, payload) = self.take(era, generation)?;
        let _ = vacant.cancelled();
        Some(payload)
    }

    /// Does the first half of a cancel: the payload is out, and the node is
    /// [`Busy`](Status::Busy) until the caller [puts it back](Vacant::restore) or calls
    /// [`Vacant::cancelled`].
    pub(crate) fn take(&self, era: u32, generation: u64) -> Option<(Vacant<'_, T>, T)> {
        Some(self.win_of(era, generation, Status::Busy)?.read())
    }

    /// Cancels the timer of that generation, and writes the result of `harvest` directly to
    /// `place`, without an intermediate copy. Returns the word of the dead node.
    #[inline(always)]
    pub(crate) fn cancel_into<R>(
        &self,
        (era, generation): (u32, u64),
        place: &mut Option<R>,
        harvest: impl FnOnce(PayloadSlot<'_, T>) -> Option<R>,
    ) -> Option<Word> {
        let (vacant, harvested) = self.win_of(era, generation, Status::Busy)?.harvest(harvest);
        *place = harvested;
        Some(vacant.cancelled())
    }

    /// Takes the node, dead with that word, for a timer due at `deadline`. `None` if the advancer
    /// has freed the node, if it is worn out or linked for a later tick, or if `deadline` is too
    /// far from `base`.
    #[inline]
    pub(crate) fn reuse(&self, dead: Word, deadline: Tick) -> Option<Vacant<'_, T>> {
        // Ordering: Relaxed, the caller acquired the word that published it. It is written only
        // after the word has changed, and then the swap fails.
        let base = self.base.load(Ordering::Relaxed);
        let is_in_time = linked_for(base, dead) <= deadline && deadline - base <= MAX_EXTENSION;
        if is_in_time && !dead.is_last_version() { self.take_cancelled(dead) } else { None }
    }

    /// Moves the pending timer of that generation to `status`.
    #[inline]
    fn win_of(&self, era: u32, generation: u64, status: Status) -> Option<Filled<'_, T>> {
        loop {
            // Another try if the timer was extended or displaced in between.
            let word = self.find(era, generation)?;
            if let Some(filled) = self.win(word, status) {
                return Some(filled);
            }
        }
    }

    /// Replaces the payload of the pending timer of that generation with the one in `payload`,
    /// which is then `None`. Returns the timer's deadline and the result of `harvest` on the former
    /// payload. The node is [`Busy`](Status::Busy) meanwhile. If the timer is not
    /// pending, returns `None` and leaves `payload` as it is.
    pub(crate) fn exchange<R>(
        &self,
        era: u32,
        generation: u64,
        payload: &mut Option<T>,
        harvest: impl FnOnce(PayloadSlot<'_, T>) -> R,
    ) -> Option<(Tick, R)> {
        if payload.is_none() {
            return None;
        }
        let (vacant, former) = self.win_of(era, generation, Status::Busy)?.harvest(harvest);
        // Read before `fill`: once the timer is reachable, the node may at any moment belong to
        // another thread.
        let (word, deadline) = (vacant.word(), self.deadline(vacant.word()));
        vacant.fill(word, payload.take()?);
        Some((deadline, former))
    }

    /// Extends the timer of that generation to `deadline`, if that is no earlier than its deadline
    /// and at most [`MAX_EXTENSION`] ticks after `base`. Not for a recurring timer: `base` may
    /// belong to another occurrence (see [`state`]).
    pub(crate) fn extend(&self, era: u32, generation: u64, deadline: Tick) -> Extended {
        loop {
            let Some(word) = self.find(era, generation) else { return Extended::Gone };
            // Ordering: Relaxed, `find` acquired the word that published this version's `base`. If
            // the version changes in between, the compare-and-swap fails.
            let base = self.base.load(Ordering::Relaxed);
            if deadline < base.saturating_add(word.extension()) || deadline - base > MAX_EXTENSION {
                return Extended::NeedsMove;
            }
            // The swap is made even if the word stays the same: its success proves that `base`
            // belonged to this timer.
            if self.replace_pending(word, word.with_extension(deadline - base)) {
                return Extended::Done;
            }
        }
    }

    /// The status of the timer of that generation; `None` if the node holds another one.
    #[inline]
    pub(crate) fn status_of(&self, era: u32, generation: u64) -> Option<Status> {
        let word = self.word();
        (generation == generation_of(era, word.version())).then(|| word.status())
    }

    /// Returns the deadline of the timer of that generation, if it is pending.
    ///
    /// The swap leaves the word as it is: as in [`extend`](Self::extend), its success proves that
    /// `base` belonged to this timer. Of a recurring timer, whose word may stand for two
    /// occurrences, the answer is the deadline of one of them, which was pending during the call.
    pub(crate) fn deadline_of(&self, era: u32, generation: u64) -> Option<Tick> {
        loop {
            let word = self.find(era, generation)?;
            let deadline = self.deadline(word);
            // Ordering: Release, pairs with the Acquire of the swap that takes the timer out of
            // `Pending`: the next owner writes `base` after that swap, so the load in `deadline`
            // came before.
            fence(Ordering::Release);
            if self.replace_pending(word, word) {
                return Some(deadline);
            }
        }
    }

    /// Returns the deadline and the tag of the timer that is pending here, if there is one.
    ///
    /// Both belong to one timer: the tag is read after the word. A later owner of the node writes
    /// its tag after the word has left `Pending` for good, so a thread that has read that tag finds
    /// the word changed, and [`deadline_of`](Self::deadline_of) fails.
    #[cfg(feature = "introspect")]
    pub(crate) fn look(&self, era: u32) -> Option<(Tick, Tag)> {
        let (_, word) = self.pending()?;
        self.look_at(era, generation_of(era, word.version()))
    }

    /// As [`look`](Self::look), if the timer is the one of that generation.
    #[cfg(feature = "introspect")]
    pub(crate) fn look_at(&self, era: u32, generation: u64) -> Option<(Tick, Tag)> {
        self.find(era, generation)?;
        let tag = self.tag();
        Some((self.deadline_of(era, generation)?, tag))
    }

    /// Returns the word if the timer of that generation is pending.
    fn find(&self, era: u32, generation: u64) -> Option<Word> {
        let word = self.word();
        (word.is(Status::Pending) && generation == generation_of(era, word.version())).then_some(word)
    }

    /// The deadline and the word of the timer, if it is pending.
    #[inline]
    pub(crate) fn pending(&self) -> Option<(Tick, Word)> {
        let word = self.word();
        word.is(Status::Pending).then(|| (self.deadline(word), word))
    }

    /// Fires the pending timer that the caller has found, or takes out one that the shard's end has
    /// kept; `None` if it has changed since. The node
    /// is free afterwards.
    pub(crate) fn fire(&self, word: Word) -> Option<(Vacant<'_, T>, T)> {
        self.win(word, Status::Free).map(Filled::read)
    }

    /// Wins the pending timer that the caller has found, for the shard's end, which takes it or
    /// leaves it in its node. `None` if the timer has changed since.
    ///
    /// Against a cancel or a move: one of the two compare-and-swaps fails, and its caller gets
    /// nothing.
    pub(crate) fn win_for_the_end(&self, word: Word) -> Option<Filled<'_, T>> {
        self.win(word, Status::Kept)
    }

    /// True if the node may be linked for the deadline of the pending timer that the caller has
    /// found, and no longer for `base`: it is marked as displaced then. A timer due at `base` needs
    /// no mark. False if the timer has changed since.
    pub(crate) fn displace(&self, word: Word) -> bool {
        word.extension() == 0 || word.is_displaced() || self.replace_pending(word, word.displaced())
    }

    /// The deadline of the timer of that word, which the caller has acquired.
    pub(crate) fn deadline(&self, word: Word) -> Tick {
        // Ordering: Relaxed, published by the word, which the caller acquired.
        self.base.load(Ordering::Relaxed).saturating_add(word.extension())
    }

    /// Returns the earliest deadline for which the node can be reused in place: the tick that the
    /// node is linked for, or a later one.
    #[cfg(any(test, debug_assertions, fuzzing, shardwheel_loom))]
    pub(crate) fn linked_for(&self, word: Word) -> Tick {
        // Ordering: Relaxed, the caller acquired the word that published it.
        linked_for(self.base.load(Ordering::Relaxed), word)
    }

    /// Takes the payload of a timer that is still pending or kept. For the last owner of the slab.
    pub(crate) fn take_pending(&self) -> Option<T> {
        self.fire(self.word()).map(|(_, payload)| payload)
    }
}

impl<'n, T> Vacant<'n, T> {
    /// Puts a timer into a free node; returns the timer's version, and the node, which
    /// the caller links.
    #[inline]
    pub(crate) fn arm_free(self, payload: T) -> (u32, &'n Node<T>) {
        let next = self.word().next_version(Status::Pending);
        (next.version(), self.fill(next, payload))
    }

    /// Puts a timer into a node that the caller has taken to [`reuse`](Node::reuse) it for that
    /// deadline; returns the timer's version.
    #[inline]
    pub(crate) fn arm_in_place(self, deadline: Tick, payload: T) -> u32 {
        // Ordering: Relaxed, the caller acquired the word that published it.
        let extension = deadline - self.node().base.load(Ordering::Relaxed);
        let word = self.word().next_version_in_place(extension);
        self.fill(word, payload);
        word.version()
    }
}

/// The tick that the node of that word is linked for, or a later one.
fn linked_for(base: Tick, word: Word) -> Tick {
    if word.is_displaced() { base.saturating_add(word.extension()) } else { base }
}

/// The generation of a timer. No two segments have the same era, and no node of a segment
/// has the same version twice.
pub(crate) fn generation_of(era: u32, version: u32) -> u64 {
    (u64::from(era) << 32) | u64::from(version)
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
