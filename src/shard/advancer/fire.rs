//! Yielding the timers that are due.

use std::fmt;
use std::iter::FusedIterator;

use crate::shard::advancer::relink::Overdue;
use crate::shard::advancer::{Advancer, Hands};
use crate::shard::key::Key;
use crate::shard::memory::recycle::FREED_IN_A_DRAIN;
use crate::shard::memory::slab::{Freed, InHand};
use crate::shard::node::join;
use crate::shard::node::state::Word;
use crate::shard::shared::Shared;
use crate::tick::Tick;

/// A buffer with room for more entries than this is freed when it is empty.
pub(super) const KEPT_BUFFER: usize = 1 << 12;

/// A timer that has fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired<T> {
    /// The timer's former key. It finds nothing any more.
    pub key: Key,
    /// The tick for which the timer was scheduled or last rescheduled.
    pub deadline: Tick,
    /// The payload that was scheduled.
    pub payload: T,
}

/// Yields the timers that are due; made by [`Advancer::advance`]. (What a delay queue yields is
/// another type, `delay_queue::Expired`.)
///
/// Deadlines never decrease. A timer fires when it is yielded: until then it is pending, counts in
/// `len`, and can be cancelled or rescheduled. A timer that is not taken stays due and comes first
/// at the next advance. So a budget is `take(n)`, and a caller's loop that panics loses only the
/// timer that it has taken.
///
/// A timer that is scheduled during the drain, for a tick that the clock has reached, comes in this
/// advance or the next.
#[must_use = "timers fire as they are taken from the iterator"]
pub struct Expired<'a, T> {
    pub(super) advancer: &'a mut Advancer<T>,
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
    /// Fires the next timer that is due, if there is one up to the clock.
    #[inline(always)]
    pub(super) fn next_fired(&mut self) -> Option<Fired<T>> {
        if self.flushed >= self.now && !self.holds_due() {
            return None;
        }
        let (key, deadline, (node, payload)) = self.next_taken(|hand, word| {
            let (vacant, payload) = hand.fire(word)?;
            Some((hand.freed(vacant), payload))
        })?;
        self.retire_fired(node);
        Some(Fired { key, deadline, payload })
    }

    /// Lets `take` take out the next timer that is due; skips timers that have changed meanwhile.
    #[inline]
    pub(super) fn next_taken<O>(
        &mut self,
        take: impl Fn(&InHand<'_, T>, Word) -> Option<O>,
    ) -> Option<(Key, Tick, O)> {
        loop {
            let Self { shared, hands: Hands { overdue, due, .. }, .. } = self;
            let (deadline, hand) = if let Some(Overdue { deadline, id, .. }) = overdue.pop() {
                (deadline, shared.node(id))
            } else if let Some(hand) = due.pop(shared) {
                (self.flushed.saturating_add(1), hand)
            } else if self.step() {
                continue;
            } else {
                return None;
            };
            let id = hand.id();
            if let Some(taken) = shared.settle(&hand, deadline, &take) {
                return Some(taken);
            }
            self.relink(id);
        }
    }

    /// Counts a timer that has fired for the last time, and retires its node.
    #[inline]
    pub(super) fn retire_fired(&mut self, node: Freed) {
        self.shared.tally.fired.add(1);
        self.shared.bound.release();
        self.retire(node);
        if self.recycler.is_step_due() {
            self.step_recycler();
        }
    }

    /// Counts and retires a node that was dead.
    pub(super) fn retire_dead(&mut self, node: Freed) {
        self.shared.tally.dead_freed.add(1);
        self.retire(node);
    }

    /// Retires a node whose timer has been counted.
    #[inline(always)]
    pub(super) fn retire(&mut self, node: Freed) {
        self.upkeep.ended += 1;
        self.recycler.retire(node);
    }

    #[cold]
    fn step_recycler(&mut self) {
        let (shared, reclaimer) = self.shared.parts();
        self.recycler.step(0, &shared.slab, reclaimer);
        if self.recycler.is_giving() {
            // The rest of the batch is due from the next tick on. At the end of a rest, a single
            // step would give what many ticks have freed.
            self.upkeep.due_in = self.upkeep.due_in.min(1);
        }
    }

    /// Ends a drain. If it has freed some nodes, it checks the number of dead nodes; otherwise the
    /// check waits for the next upkeep.
    #[inline]
    pub(crate) fn end_drain(&mut self) {
        self.ensure_due();
        if self.upkeep.ended >= FREED_IN_A_DRAIN {
            self.note_ended();
        }
    }

    /// Does what is due when some timers have ended.
    #[inline(never)]
    pub(super) fn note_ended(&mut self) {
        // Fewer pending timers tolerate fewer dead nodes; and freed dead nodes require the next
        // check to be near.
        self.shared.check_dead();
        self.upkeep.ended = 0;
        if self.hands.overdue.is_empty() && self.hands.overdue.capacity() > KEPT_BUFFER {
            self.hands.overdue = Vec::new();
        }
    }
}

impl<T> Shared<T> {
    /// Takes the timer out of a node if it is due at or before `deadline`. `None` if it has been
    /// cancelled or put off.
    #[inline]
    fn settle<O>(
        &self,
        hand: &InHand<'_, T>,
        deadline: Tick,
        take: impl Fn(&InHand<'_, T>, Word) -> Option<O>,
    ) -> Option<(Key, Tick, O)> {
        while let Some((found, word)) = hand.pending() {
            if found > deadline {
                self.tally.cascaded.add(1);
                return None;
            }
            self.slab.firing.note_change();
            if let Some(taken) = take(hand, word) {
                let key = Key::new(self.id, hand.id(), join(hand.era(), word.version()));
                return Some((key, found, taken));
            }
        }
        None
    }
}
