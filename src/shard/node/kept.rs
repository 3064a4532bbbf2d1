//! Pending timers that stay in their nodes when the shard ends.
//!
//! The end wins the node's word with the transition that a holding canceller makes (`Pending` to
//! `Held`, see [`state`](super::state)), and leaves the payload in the cell. No lane names the
//! node, so no other thread writes the word from then on, and no key finds a pending timer in it.
//! The version has no meaning any more: its place in the word holds the id of the next kept node.

use super::{Node, NodeId};
use crate::shard::node::state::{Status, Word};
use crate::sync::Ordering;
use crate::tick::Tick;

/// The position of the version in a word; here, of the next node's id.
const NAME_SHIFT: u32 = 32;

impl<T> Node<T> {
    /// Keeps the timer that [`observe`](Self::observe) found; returns the word for
    /// [`link_kept`](Self::link_kept). `None` if the timer has changed since.
    ///
    /// Against a cancel or a move: one of the two compare-and-swaps fails, and its caller gets
    /// nothing.
    pub(crate) fn keep(&self, word: Word) -> Option<Word> {
        let kept = word.with_status(Status::Held);
        self.replace(word, kept).then_some(kept)
    }

    /// Calls `look` with the payload of a timer that the caller keeps.
    pub(crate) fn look_at_kept<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        self.payload.with_mut(|cell| {
            // SAFETY: the caller won the transition out of `Pending`: no other thread accesses the
            // cell.
            let cell = unsafe { &*cell };
            // SAFETY: the payload was written before the timer was pending, and has not been taken
            // out.
            look(unsafe { cell.assume_init_ref() })
        })
    }

    /// Stores `next` as the kept node that follows this one, which the caller keeps.
    pub(crate) fn link_kept(&self, kept: Word, next: NodeId) {
        let linked = u64::from(next) << NAME_SHIFT | kept.raw() & u64::from(u32::MAX);
        // Ordering: Relaxed, the caller alone writes the word of a node that it keeps, and
        // publishes nothing by it: a canceller that loads the word finds `Held` and stops there.
        self.word.store(linked, Ordering::Relaxed);
    }

    /// Takes out a timer that the caller keeps and has linked: returns the next kept node, the
    /// deadline and the payload.
    pub(crate) fn take_kept(&self) -> (NodeId, Tick, T) {
        // Ordering: Relaxed, as in `link_kept`.
        let word = Word::from_raw(self.word.load(Ordering::Relaxed));
        let (next, deadline, payload) = (word.version(), self.deadline(word), self.take_payload());
        // Ordering: Relaxed, the shard has ended: free nodes are not handed out any more.
        self.word.store(word.with_status(Status::Free).raw(), Ordering::Relaxed);
        (next, deadline, payload)
    }
}
