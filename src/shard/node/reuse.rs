//! Using a cancelled node again where it stands in a list: its canceller holds it.
//!
//! The transitions and their races are in [`state`](super::state).

use super::state::{MAX_EXTENSION, Status};
use super::{Node, PayloadSlot, Vacant};
use crate::sync::Ordering;
use crate::tick::Tick;

impl<T> Node<T> {
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
    /// Puts a timer into a node that the caller holds; returns the timer's version. `deadline` is
    /// no earlier than the tick that the node is linked for, and the node [can](Self::can_be_armed)
    /// be armed.
    #[inline]
    pub(crate) fn arm_held(self, deadline: Tick, payload: T) -> u32 {
        // Ordering: Relaxed, the hold acquired the word that published it.
        let extension = deadline - self.node().base.load(Ordering::Relaxed);
        let word = self.word().next_version_in_place(extension);
        self.fill(word, payload);
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
