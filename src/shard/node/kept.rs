//! A timer that is kept in its node for the shard's end.
//!
//! The end wins the node's word as a canceller would that holds the node (see [`state`](super::state)), and leaves
//! the payload in place. The node is in no lane, so nobody else changes the word from then on, and no key finds it. Its
//! version has no meaning any more: its place in the word names the next node that is kept.

use super::{Node, NodeId};
use crate::shard::node::state::{Status, Word};
use crate::sync::Ordering;
use crate::tick::Tick;

/// Where the version stands in a word.
const NAME_SHIFT: u32 = 32;

impl<T> Node<T> {
    /// Keeps the timer that [`observe`](Self::observe) found, unless it has changed since; returns the word for
    /// [`link_kept`](Self::link_kept).
    ///
    /// Against a cancel or a move: one of the two compare-and-swaps fails, and that caller gets nothing.
    pub(crate) fn keep(&self, word: Word) -> Option<Word> {
        let kept = word.with_status(Status::Held);
        self.replace(word, kept).then_some(kept)
    }

    /// Looks at the payload of a timer that the caller keeps.
    pub(crate) fn look_at_kept<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        self.payload.with_mut(|cell| {
            // SAFETY: the caller won the transition out of `Pending`: nobody else touches the cell.
            let cell = unsafe { &*cell };
            // SAFETY: it was written before the timer was pending, and nobody has taken it out.
            look(unsafe { cell.assume_init_ref() })
        })
    }

    /// Names the node that is kept next after this one, which the caller keeps.
    pub(crate) fn link_kept(&self, kept: Word, next: NodeId) {
        let linked = u64::from(next) << NAME_SHIFT | kept.raw() & u64::from(u32::MAX);
        // Ordering: Relaxed, the caller alone reads and writes the word of a node that it keeps.
        self.word.store(linked, Ordering::Relaxed);
    }

    /// Takes a timer out that the caller keeps and has linked: the next node, the deadline and the payload.
    pub(crate) fn take_kept(&self) -> (NodeId, Tick, T) {
        // Ordering: Relaxed, as in `link_kept`.
        let word = Word::from_raw(self.word.load(Ordering::Relaxed));
        let (next, deadline, payload) = (word.version(), self.deadline(word), self.take_payload());
        // Ordering: Relaxed, the shard has ended: a node that is free is not handed out any more.
        self.word.store(word.with_status(Status::Free).raw(), Ordering::Relaxed);
        (next, deadline, payload)
    }
}
