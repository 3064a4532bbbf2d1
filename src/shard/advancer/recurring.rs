//! How a `Timer` fires. Its timers may recur: one node and one key serve all occurrences.
//!
//! An occurrence takes the payload out and keeps the node, in status `Running` and linked nowhere.
//! A [`RearmTicket`] is the only right to that node. The thread that runs the payload gives payload
//! and ticket back to the advancer, which arms the timer again or frees the node. Any thread with
//! the key may stop the timer meanwhile. The transitions and their races are in
//! [`state`](crate::shard::node::state).
//!
//! Counting: a timer whose payload is out is pending, in `len` and under the bound, until it ends
//! or is stopped. It counts as fired once, when it ends; each rearming counts as a recurrence. A
//! stopped timer counts as cancelled, in the lane of the thread that stopped it. Its node is not
//! dead: no sweep could free it before the payload is back.
//!
//! A `RearmTicket` that is dropped leaves its node to the end of the shard, where the timer counts
//! as fired.

use crate::shard::advancer::Advancer;
use crate::shard::key::Key;
use crate::shard::memory::slab::Freed;
use crate::shard::node::{NodeId, Unborrowed};
use crate::tick::Tick;

/// A timer that is due, and has been taken out of its node.
#[derive(Debug)]
pub(crate) struct Due<T> {
    pub(crate) key: Key,
    /// The tick at which it was due.
    pub(crate) deadline: Tick,
    pub(crate) payload: T,
    /// Of a timer that recurs: its node is kept until it is armed again, or ended. `None` of any
    /// other, which has fired, and whose node is retired.
    pub(crate) ticket: Option<RearmTicket>,
}

/// The right to a recurring timer's node while the payload is out: for [`Advancer::rearm`] or
/// [`Advancer::end_running`] of the same shard.
#[derive(Debug)]
#[must_use = "the timer's node is kept until the timer is armed anew or ended"]
pub(crate) struct RearmTicket {
    key: Key,
    running: Unborrowed,
}

impl<T> Advancer<T> {
    /// Takes out the next timer that is due. If `recurs` is true of its payload, the node is kept.
    pub(crate) fn take_due(&mut self, recurs: impl Fn(&T) -> bool) -> Option<Due<T>> {
        let (key, deadline, (after, payload)) = self.next_taken(|hand, word| {
            let (after, payload) = hand.run(word, &recurs)?;
            Some((after.map_err(|(vacant, has_fired)| (hand.freed(vacant), has_fired)), payload))
        })?;
        let ticket = match after {
            Ok(running) => Some(RearmTicket { key, running }),
            Err((node, has_fired)) => {
                self.retire_run(node, has_fired);
                None
            }
        };
        Some(Due { key, deadline, payload, ticket })
    }

    /// Arms a recurring timer again, under its key. A deadline that has been flushed is due at the
    /// next advance, so that a drain comes to an end.
    ///
    /// # Errors
    ///
    /// The payload, if the timer was stopped meanwhile.
    pub(crate) fn rearm(&mut self, ticket: RearmTicket, deadline: Tick, payload: T) -> Result<(), T> {
        let id = self.node_of(&ticket);
        let hand = self.shared.node(id);
        let rearmed = hand.rearm(ticket.running, deadline, payload);
        if let Err((node, payload)) = rearmed.map_err(|(vacant, payload)| (hand.freed(vacant), payload)) {
            self.retire(node);
            return Err(payload);
        }
        self.shared.tally.recurred.add(1);
        // The word is not read again: the timer may have been cancelled since, or the node reused
        // for a later tick, as may happen to any node that is linked for its `base`.
        if deadline > self.flushed {
            self.link_or_overdue(deadline, id);
        } else {
            self.hands.deferred.push(id);
        }
        Ok(())
    }

    /// Ends a recurring timer whose payload does not come back.
    pub(crate) fn end_running(&mut self, ticket: RearmTicket) {
        let hand = self.shared.node(self.node_of(&ticket));
        let (vacant, has_fired) = hand.end_run(ticket.running);
        let node = hand.freed(vacant);
        self.retire_run(node, has_fired);
    }

    /// Retires the node of a timer whose payload is out, and counts the timer unless it was
    /// stopped: it then counts as cancelled.
    fn retire_run(&mut self, node: Freed, has_fired: bool) {
        if has_fired {
            self.retire_fired(node);
        } else {
            self.retire(node);
        }
    }

    /// The node of a running timer of this shard.
    fn node_of(&self, ticket: &RearmTicket) -> NodeId {
        assert!(ticket.key.is_of(self.shared.id), "a recurring timer belongs to another shard");
        ticket.key.node()
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
