//! The earliest tick at which anything that the advancer knows of may be due.

use crate::shard::advancer::Advancer;
use crate::shard::node::{NIL, NodeId, Observed};
use crate::sync::Ordering;
use crate::tick::Tick;

/// How many nodes of the inbox `next_expiration` visits before it answers `flushed`.
pub(super) const INBOX_LOOK: usize = 64;

impl<T> Advancer<T> {
    /// The earliest tick at which anything known may be due.
    pub(super) fn earliest(&self) -> Option<Tick> {
        let overdue = self.overdue.last().map(|due| due.deadline);
        let due = (!self.due.is_empty()).then(|| self.flushed.saturating_add(1));
        let deferred = self.deferred.iter().filter_map(|&id| self.deadline(id)).min();
        let from = self.flushed.checked_add(1);
        let private = from.and_then(|from| self.private.next_occupied(self.shared.geometry, from));
        let known = [overdue, due, deferred, self.earliest_in_inbox(), private].into_iter().flatten().min();
        // If something known is due soon, few bits of the shared wheels show whether anything is
        // due before.
        let to = known.unwrap_or(Tick::MAX);
        let shared = from.filter(|&from| from <= to).and_then(|from| self.shared.next_occupied(from, to));
        let earliest = shared.or(known)?;
        (self.pending() > 0).then_some(earliest)
    }

    /// The earliest deadline in the inbox, or `flushed` if the inbox is too long to visit.
    fn earliest_in_inbox(&self) -> Option<Tick> {
        let mut next = self.shared.peek_inbox();
        let mut earliest = None;
        for _ in 0..INBOX_LOOK {
            if next == NIL {
                return earliest;
            }
            earliest = [earliest, self.deadline(next)].into_iter().flatten().min();
            // Ordering: Relaxed, `peek_inbox` acquired the list.
            next = self.node(next).next().load(Ordering::Relaxed);
        }
        Some(self.flushed)
    }

    /// The deadline of the timer in a node, if it is pending. A producer that is at work in the
    /// node reads `wake_below` when it is done.
    fn deadline(&self, id: NodeId) -> Option<Tick> {
        match self.node(id).observe() {
            Observed::Pending(deadline, _) => Some(deadline),
            _ => None,
        }
    }
}
