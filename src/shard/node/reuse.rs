//! Using a cancelled node again where it stands in a list: claimed by any producer, or held by its
//! canceller.
//!
//! The transitions and their races are in [`state`](super::state).

use super::state::{MAX_EXTENSION, Status, Word};
use super::{Node, PayloadSlot, Vacant};
use crate::sync::Ordering;
use crate::tick::Tick;

impl<T> Node<T> {
    /// Claims a cancelled node in place for a timer due at `deadline`. The caller arms it next.
    /// `None` if the node is not cancelled, is worn out, or is linked for a later tick than
    /// `deadline`: only a list for that tick or an earlier one is flushed in time. `None` also if
    /// `deadline` is more than [`MAX_EXTENSION`] ticks after `base`, or another thread comes first.
    ///
    /// Against a flush or a sweep that frees the node, and against another claim: one of the two
    /// compare-and-swaps fails, and its caller leaves the node alone.
    pub(crate) fn claim(&self, deadline: Tick) -> Option<Vacant<'_, T>> {
        // The canceller's reads of the payload come before our writes, and `base` is that of this
        // version.
        let word = self.word();
        if !word.is(Status::Cancelled) || word.is_last_version() {
            return None;
        }
        // Ordering: Relaxed, published by the word. The node may already hold a later timer with
        // another `base`; then the compare-and-swap fails. Loaded once, because a second load may
        // return another value.
        let base = self.base.load(Ordering::Relaxed);
        let extension = deadline.checked_sub(base)?;
        let is_linked_later = word.is_displaced() && word.extension() > extension;
        if is_linked_later || extension > MAX_EXTENSION {
            return None;
        }
        self.win_cancelled(word, word.next_version_in_place(Status::Claimed))
    }

    /// As [`cancel_into`](Self::cancel_into), and the node stays with the winner. Also returns the
    /// tick that the node is linked for.
    #[inline(always)]
    pub(crate) fn hold<R>(
        &self,
        era: u32,
        generation: u64,
        place: &mut Option<R>,
        harvest: impl FnOnce(PayloadSlot<'_, T>) -> Option<R>,
    ) -> Option<(Vacant<'_, T>, Tick)> {
        let (vacant, harvested) = self.win_of(era, generation, Status::Held)?.harvest(harvest);
        *place = harvested;
        let linked_for = self.linked_for(vacant.word());
        Some((vacant, linked_for))
    }
}

impl<T> Vacant<'_, T> {
    /// Puts a timer into a node that [`Node::claim`] took; returns the timer's version.
    pub(crate) fn arm_claimed(self, deadline: Tick, payload: T) -> u32 {
        let claimed = self.word();
        self.arm_in_place(claimed, deadline, payload)
    }

    /// Puts a timer into a node that the caller holds; returns the timer's version. `deadline` is
    /// no earlier than the tick that the node is linked for, and the node [can](Self::can_be_armed)
    /// be armed.
    #[inline]
    pub(crate) fn arm_held(self, deadline: Tick, payload: T) -> u32 {
        let next = self.word().next_version_in_place(Status::Claimed);
        self.arm_in_place(next, deadline, payload)
    }

    #[inline]
    fn arm_in_place(self, word: Word, deadline: Tick, payload: T) -> u32 {
        // Ordering: Relaxed, the claim or the hold acquired the word that published it.
        let extension = deadline - self.node().base.load(Ordering::Relaxed);
        self.fill(word.with_extension(extension), payload);
        word.version()
    }

    /// Returns whether a held node can take a timer due at `deadline`, which is no earlier than the
    /// tick that the node is linked for.
    #[inline]
    pub(crate) fn can_be_armed(&self, deadline: Tick) -> bool {
        // Ordering: Relaxed, the caller acquired the word that published it.
        let base = self.node().base.load(Ordering::Relaxed);
        !self.word().is_last_version() && deadline - base <= MAX_EXTENSION
    }
}
