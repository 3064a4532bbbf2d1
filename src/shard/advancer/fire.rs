//! What an advance yields.

use std::fmt;
use std::iter::FusedIterator;

use crate::shard::advancer::Advancer;
use crate::shard::advancer::chains::InHand;
use crate::shard::advancer::relink::Overdue;
use crate::shard::key::Key;
use crate::shard::node::state::Word;
use crate::shard::node::{Node, NodeId, Observed, join};
use crate::shard::shared::Shared;
use crate::tick::Tick;

/// A drain that fired this many sees to it at its end that the nodes can be used again.
pub(super) const LONG_DRAIN: usize = 1 << 14;

/// A buffer larger than this is given back when it is empty.
pub(super) const KEPT_BUFFER: usize = 1 << 12;

/// A timer that has fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired<T> {
    /// The key that the timer had. It finds nothing any more.
    pub key: Key,
    /// The tick that the timer was scheduled, or last rescheduled, for.
    pub deadline: Tick,
    /// What was scheduled.
    pub payload: T,
}

/// Yields the timers that are due, made by [`Advancer::advance`].
///
/// Deadlines never decrease. A timer is fired when it is yielded: until then it is pending, counts in
/// `len` and can be cancelled or rescheduled. What is not taken stays due and comes first at the next
/// advance, so a budget is `take(n)`, and a caller's loop that panics loses the item in hand only.
///
/// A timer scheduled meanwhile for a tick that has been reached comes in this advance or the next.
#[must_use = "timers fire as they are taken from the iterator"]
pub struct Expired<'a, T> {
    advancer: &'a mut Advancer<T>,
}

impl<'a, T> Expired<'a, T> {
    pub(super) fn new(advancer: &'a mut Advancer<T>) -> Self {
        Self { advancer }
    }
}

impl<T> Iterator for Expired<'_, T> {
    type Item = Fired<T>;

    #[inline]
    fn next(&mut self) -> Option<Fired<T>> {
        self.advancer.next_fired()
    }
}

impl<T> FusedIterator for Expired<'_, T> {}

impl<T> Drop for Expired<'_, T> {
    fn drop(&mut self) {
        self.advancer.end_drain();
    }
}

impl<T> fmt::Debug for Expired<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expired").field("advancer", &self.advancer).finish()
    }
}

impl<T> Advancer<T> {
    /// The next timer that is due, if there is one up to the clock.
    #[inline(always)]
    pub(super) fn next_fired(&mut self) -> Option<Fired<T>> {
        let (key, deadline, payload) = self.next_taken(Node::fire)?;
        self.retire_fired(key.node());
        Some(Fired { key, deadline, payload })
    }

    /// The next timer that is due, as `take` takes it out of its node, if that has not changed since.
    #[inline]
    pub(super) fn next_taken<O>(
        &mut self,
        take: impl Fn(&Node<T>, Word) -> Option<O>,
    ) -> Option<(Key, Tick, O)> {
        loop {
            let Self { shared, overdue, due, .. } = self;
            let (deadline, hand) = if let Some(Overdue { deadline, id, .. }) = overdue.pop() {
                let (node, era) = shared.node(id);
                (deadline, InHand { id, node, era })
            } else if let Some(hand) = due.pop(shared) {
                (self.flushed.saturating_add(1), hand)
            } else if self.step() {
                continue;
            } else {
                return None;
            };
            let id = hand.id;
            if let Some(taken) = shared.settle(hand, deadline, &take) {
                return Some(taken);
            }
            self.relink(id);
        }
    }

    /// Counts a timer that has fired for the last time, its node freed.
    #[inline]
    pub(super) fn retire_fired(&mut self, id: NodeId) {
        self.shared.tally.fired.add(1);
        self.shared.bound.release();
        self.drained += 1;
        self.has_ended_some = true;
        self.recycler.retire(id);
        if self.recycler.is_ripe() {
            self.poll_recycler();
        }
    }

    /// Frees the node of a timer that was stopped while its payload was out, and that its canceller has counted.
    pub(super) fn retire_stopped(&mut self, id: NodeId) {
        self.has_ended_some = true;
        self.recycler.retire(id);
    }

    /// Counts a dead node that has been unlinked and freed.
    pub(super) fn retire_dead(&mut self, id: NodeId) {
        self.shared.tally.dead_freed.add(1);
        self.has_ended_some = true;
        self.recycler.retire(id);
    }

    pub(super) fn poll_recycler(&mut self) {
        let shared = &self.shared;
        self.recycler.poll(&shared.slab, &self.participant);
    }

    /// Ends a drain: after a long one its nodes become free at once.
    pub(crate) fn end_drain(&mut self) {
        self.ensure_due();
        let drained = std::mem::take(&mut self.drained);
        if std::mem::take(&mut self.has_ended_some) {
            // What is tolerated falls with what is pending; and where dead nodes were freed, the check is to be near.
            self.shared.check_dead();
        }
        if drained >= LONG_DRAIN {
            let shared = &self.shared;
            self.recycler.poll_to_the_end(&shared.slab, &self.participant);
        }
        if self.overdue.is_empty() && self.overdue.capacity() > KEPT_BUFFER {
            self.overdue = Vec::new();
        }
    }
}

impl<T> Shared<T> {
    /// Takes the timer out of a node that was due at `deadline` when it was last looked at, unless it has been
    /// cancelled or put off since.
    #[inline]
    fn settle<O>(
        &self,
        InHand { id, node, era }: InHand<'_, T>,
        deadline: Tick,
        take: impl Fn(&Node<T>, Word) -> Option<O>,
    ) -> Option<(Key, Tick, O)> {
        while let Observed::Pending(found, word) = node.observe() {
            if found > deadline {
                self.tally.cascaded.add(1);
                return None;
            }
            self.firing.note_change();
            if let Some(taken) = take(node, word) {
                return Some((Key::new(self.id, id, join(era, word.version())), found, taken));
            }
        }
        None
    }
}
