//! Parts of a shard by themselves: models of them are small enough to be explored to the end.

use crate::shard;
use crate::sync::{AtomicU32, Ordering};
use crate::tick::Tick;

/// A node by itself, for models of its word: in no list, of no segment.
pub struct Node<T>(shard::Node<T>);

// SAFETY: who wins a transition of the word has the payload to himself, as in a segment; who arms or buries the node
// keeps to what is said there.
unsafe impl<T: Send> Sync for Node<T> {}

impl<T> Node<T> {
    /// A free one.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "a model makes it where it says so")]
    pub fn new() -> Self {
        Self(shard::Node::new())
    }

    /// Puts a timer into the node, which is free and the caller's; its generation, or none if the node is worn out.
    pub fn arm(&self, deadline: Tick, payload: T) -> Option<u64> {
        let free = self.0.prepare(deadline)?;
        Some(self.0.arm_free(free, payload).into())
    }

    /// Cancels the timer of that generation.
    pub fn cancel(&self, generation: u64) -> Option<T> {
        self.0.cancel(0, generation).map(|(_, payload)| payload)
    }

    /// A move that begins and is given up: takes the payload out and puts it back. False if the timer is gone.
    pub fn take_in_vain(&self, generation: u64) -> bool {
        self.0.take(0, generation).map(|taken| self.0.restore(taken)).is_some()
    }

    /// Takes a cancelled node over for a timer, and gives it back unused. False if it cannot be taken over.
    pub fn claim_in_vain(&self, deadline: Tick) -> bool {
        self.0.claim(deadline).map(|claimed| self.0.unclaim(claimed)).is_some()
    }

    /// What the advancer does with a cancelled node that it meets; the node is free then, and its own.
    pub fn free_cancelled(&self) -> bool {
        matches!(self.0.observe(), shard::Observed::Cancelled(word) if self.0.free_cancelled(word))
    }

    /// What the advancer does with a timer that it meets and that is due; the node is free then, and its own.
    pub fn fire(&self) -> Option<T> {
        match self.0.observe() {
            shard::Observed::Pending(_, word) => self.0.fire(word),
            _ => None,
        }
    }
}

/// The free nodes of a segment by themselves; there is one word of them.
pub struct FreeNodes(shard::FreeBits);

impl FreeNodes {
    /// All are free.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "a model makes it where it says so")]
    pub fn new() -> Self {
        Self(shard::FreeBits::new(shard::WORD_NODES, 0).expect("there is memory"))
    }

    /// Takes those that are free, as bits.
    pub fn take(&self) -> Option<u64> {
        self.0.take_word(0).map(|(_, nodes)| nodes)
    }

    /// Makes nodes free; for the advancer.
    pub fn give(&self, nodes: u64) {
        self.0.give(0, nodes);
    }

    /// Says that a node which the caller has taken is worn out.
    pub fn wear_out(&self) {
        self.0.wear_out();
    }

    /// Gives the segment's memory back, if no node is in use; for the advancer.
    #[must_use]
    pub fn end(&self) -> bool {
        let is_over = self.0.take_all();
        if is_over {
            self.0.end();
        }
        is_over
    }
}

/// A shard's epochs by themselves.
pub struct Epochs(shard::Epochs);

/// One who may be pinned in them.
pub struct Participant(shard::Participant);

/// A period after which nobody holds what was unreachable at its start.
pub struct Grace(shard::Grace);

impl Epochs {
    /// With nobody in them.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "a model makes it where it says so")]
    pub fn new() -> Self {
        Self(shard::Epochs::new())
    }

    /// One more participant.
    #[must_use]
    pub fn join(&self) -> Participant {
        Participant(self.0.join().expect("there is memory"))
    }
}

impl Participant {
    /// Does something while pinned.
    pub fn pinned<R>(&self, act: impl FnOnce() -> R) -> R {
        let _pinned = self.0.pin();
        act()
    }

    /// Begins a grace period.
    #[must_use]
    pub fn begin_grace(&self) -> Grace {
        Grace(shard::Grace::begin(&self.0).expect("there is memory"))
    }

    /// Helps the epochs on.
    pub fn help(&self) {
        shard::Grace::help(&self.0);
    }
}

impl Grace {
    /// Whether it is over.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.0.has_passed()
    }
}

/// A list of an overflow wheel by itself, and nodes to push to it, which have numbers from 1 on.
pub struct List {
    clock: shard::ShardClock,
    wheel: shard::Wheel,
    links: Vec<AtomicU32>,
}

/// Where it stands.
const LIST: shard::ListSlot = shard::ListSlot { index: 0, stripe: 0, round: 0 };

impl List {
    /// Empty, with so many nodes beside it.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        let links = (0..=nodes).map(|_| AtomicU32::new(0)).collect();
        Self {
            clock: shard::ShardClock::new(0),
            wheel: shard::Wheel::new(4, LIST.round).expect("there is memory"),
            links,
        }
    }

    /// What an adder does. False if the wheel is given up.
    pub fn push(&self, node: u32) -> bool {
        self.wheel.mark(LIST.index, LIST.stripe);
        self.clock.read();
        !self.wheel.is_closed() && self.wheel.push(LIST, node, &self.links[node as usize])
    }

    /// Gives the wheel up, and returns what had been pushed.
    pub fn give_up(&self) -> Vec<u32> {
        self.wheel.close();
        self.clock.publish_now(1);
        let mut first = None;
        self.wheel.drain_closed(LIST.round, |list| first = first.or(Some(list)));
        // Ordering: Relaxed, as of who walks a list that it has swapped out.
        let next =
            |&node: &u32| Some(self.links[node as usize].load(Ordering::Relaxed)).filter(|&next| next != 0);
        std::iter::successors(first, next).collect()
    }
}
