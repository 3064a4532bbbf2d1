//! The earliest tick that an advancer has to wake for. Only reads.
//!
//! A sleep asks twice, before and after its fence (*Sleep* in [`machine`](crate::shard::machine)).
//! What the advancer has in hand or in its private wheels is known before. What producers have
//! added, and what they do in nodes that are deferred, is looked at after.

use crate::shard::advancer::Advancer;
use crate::shard::node::{NIL, NodeId};
use crate::shard::shared::FEW_PENDING;
use crate::sync::Ordering;
use crate::tick::{Tick, earlier};

/// How many nodes of the inbox a look visits before it takes it that one of them is due.
pub(super) const INBOX_LOOK: usize = 64;

impl<T> Advancer<T> {
    /// The earliest tick at which anything may be due, or an earlier one, without what producers
    /// have added since the last advance.
    #[inline]
    pub(in crate::shard) fn earliest_in_hand(&self) -> Option<Tick> {
        let private = self.private.none_before();
        if !self.hands.hold_due() && self.hands.deferred.is_empty() {
            return private;
        }
        let due = (!self.hands.due.is_empty()).then(|| self.flushed.saturating_add(1));
        let left = earlier(self.hands.overdue.earliest(), due);
        earlier(earlier(private, left), self.earliest_deferred())
    }

    /// The earliest tick at which anything known may be due; after the fence. `in_hand` is the
    /// answer of [`earliest_in_hand`](Self::earliest_in_hand) from before the fence. Of that,
    /// producers change only what is deferred: they finish what they do in these nodes. `pending`
    /// timers were pending before the fence; if it is none, they are counted again. A producer counts
    /// its timer before its own fence: so if none is pending now, none has to be looked for.
    #[inline]
    pub(in crate::shard) fn earliest(&self, in_hand: Option<Tick>, pending: usize) -> Option<Tick> {
        let pending = if pending == 0 { self.shared.len() } else { pending };
        if pending == 0 {
            return None;
        }
        let known = earlier(in_hand, earlier(self.earliest_deferred(), self.earliest_in_inbox()));
        // If something known is due soon, few bits of the shared wheels show whether anything is
        // due before.
        let to = known.unwrap_or(Tick::MAX);
        let from = self.flushed.checked_add(1);
        let shared = from.filter(|&from| from <= to).and_then(|from| self.shared.next_expiration(from, to));
        let earliest = shared.or(known)?;
        // Few are pending, or no lead begins before: there is no wake for the early cascade.
        if pending <= FEW_PENDING || earliest <= self.upkeep.next_cascade {
            return Some(earliest);
        }
        Some(earliest.min(self.next_lead(earliest)))
    }

    fn earliest_deferred(&self) -> Option<Tick> {
        self.hands.deferred.iter().filter_map(|&id| self.deadline(id)).min()
    }

    /// The earliest deadline in the inbox, or `flushed` if the inbox is too long to visit.
    fn earliest_in_inbox(&self) -> Option<Tick> {
        let mut next = self.shared.inbox.peek();
        let mut earliest = None;
        // Producers only push in front, and no link changes before the advancer takes the list.
        for _ in 0..INBOX_LOOK {
            if next == NIL {
                return earliest;
            }
            earliest = earlier(earliest, self.deadline(next));
            // Ordering: Relaxed, `peek` acquired the list.
            next = self.shared.node(next).next().load(Ordering::Relaxed);
        }
        Some(self.flushed)
    }

    /// The deadline of the timer in a node, if it is pending. A producer that is at work in the
    /// node reads `wake_up_to` when it is done.
    fn deadline(&self, id: NodeId) -> Option<Tick> {
        self.shared.node(id).pending().map(|(deadline, _)| deadline)
    }
}
