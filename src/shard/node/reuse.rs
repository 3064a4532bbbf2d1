//! Using a cancelled node again where it stands in a list: claimed by any producer, or held by its
//! canceller.
//!
//! The transitions and their races are in [`state`](super::state).

use super::Node;
use super::payload::{IntoPayload, PayloadSlot};
use super::state::{MAX_EXTENSION, Status, Word};
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
    pub(crate) fn claim(&self, deadline: Tick) -> Option<Word> {
        // Ordering: Acquire, pairs with the canceller's Release in `finish_cancel`: the canceller's
        // reads of the payload come before our writes, and `base` is that of this version.
        let word = Word::from_raw(self.word.load(Ordering::Acquire));
        if !word.is(Status::Cancelled) || word.is_last_version() {
            return None;
        }
        // Ordering: Relaxed, published by the word. The node may already hold a later timer with
        // another `base`; then the compare-and-swap fails. Loaded once, because a second load may
        // return another value.
        let base = self.base.load(Ordering::Relaxed);
        let extension = deadline.checked_sub(base)?;
        let is_linked_later = word.is_displaced() && word.extension() > extension;
        let claimed = word.next_version_in_place(Status::Claimed);
        (!is_linked_later && extension <= MAX_EXTENSION && self.replace(word, claimed)).then_some(claimed)
    }

    /// Gives back, unused, what [`claim`](Self::claim) took.
    pub(crate) fn unclaim(&self, claimed: Word) {
        // Ordering: Release, pairs with the Acquire in the next `claim`, and in `observe` by the
        // advancer.
        self.word.store(claimed.with_status(Status::Cancelled).raw(), Ordering::Release);
    }

    /// Puts a timer into a node that [`claim`](Self::claim) took; returns the timer's version.
    pub(crate) fn arm_claimed(&self, claimed: Word, deadline: Tick, seed: impl IntoPayload<T>) -> u32 {
        // Ordering: Relaxed, the claim or the hold acquired the word that published it.
        let extension = deadline - self.base.load(Ordering::Relaxed);
        self.fill(claimed.with_status(Status::Pending).with_extension(extension), seed);
        claimed.version()
    }

    /// Puts a timer into a node that the caller holds; returns the timer's version. `held` is the
    /// word that [`hold`](Self::hold) returned, and `deadline` is no earlier than the tick that the
    /// node is linked for.
    #[inline]
    pub(crate) fn arm_held(&self, held: Word, deadline: Tick, seed: impl IntoPayload<T>) -> u32 {
        let next = held.next_version_in_place(Status::Claimed);
        self.arm_claimed(next, deadline, seed)
    }

    /// As [`cancel_into`](Self::cancel_into), and the node stays with the winner, until the winner
    /// calls [`arm_held`](Self::arm_held) or [`finish_cancel`](Self::finish_cancel) with the
    /// returned word.
    #[inline(always)]
    pub(crate) fn hold<R>(
        &self,
        era: u32,
        generation: u64,
        place: &mut Option<R>,
        harvest: impl FnOnce(PayloadSlot<'_, T>) -> Option<R>,
    ) -> Option<(Word, Tick)> {
        let word = self.win(era, generation, Status::Held)?;
        *place = self.with_payload(harvest);
        Some((word, self.linked_for(word)))
    }

    /// Returns whether a held node, whose word was `held`, can take a timer due at `deadline`.
    #[inline]
    pub(crate) fn can_be_armed(&self, held: Word, deadline: Tick) -> bool {
        // Ordering: Relaxed, the caller acquired the word that published it.
        let base = self.base.load(Ordering::Relaxed);
        !held.is_last_version() && deadline - base <= MAX_EXTENSION
    }
}
