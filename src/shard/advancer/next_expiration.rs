//! The earliest tick at which anything that the advancer knows of may be due.

use crate::shard::advancer::Advancer;
use crate::shard::node::{NIL, NodeId, Observed};
use crate::sync::Ordering;
use crate::tick::Tick;

/// How many nodes of the inbox `next_expiration` visits before it answers `flushed`.
pub(super) const INBOX_LOOK: usize = 64;

/// With at most this many pending timers, no cascade takes long, and the advancer need not wake for
/// the early cascade.
const FEW: usize = if crate::config::SMALL { 8 } else { 4096 };

impl<T> Advancer<T> {
    /// The earliest tick at which anything may be due that producers have not added since the last
    /// advance, or a later one.
    pub(super) fn earliest_in_hand(&self) -> Option<Tick> {
        let overdue = self.overdue.last().map(|due| due.deadline);
        let due = (!self.due.is_empty()).then(|| self.flushed.saturating_add(1));
        let deferred = self.deferred.iter().filter_map(|&id| self.deadline(id)).min();
        [overdue, due, deferred, self.private.none_before()].into_iter().flatten().min()
    }

    /// The earliest tick at which anything known may be due; after the fence.
    pub(super) fn earliest(&self) -> Option<Tick> {
        let known = [self.earliest_in_hand(), self.earliest_in_inbox()].into_iter().flatten().min();
        // If something known is due soon, few bits of the shared wheels show whether anything is
        // due before.
        let to = known.unwrap_or(Tick::MAX);
        let from = self.flushed.checked_add(1);
        let shared = from.filter(|&from| from <= to).and_then(|from| self.shared.next_occupied(from, to));
        let earliest = shared.or(known)?;
        match self.pending() {
            0 => None,
            // No step of the early cascade is due before.
            pending if pending <= FEW || earliest <= self.early_cascade.next() => Some(earliest),
            _ => Some(earliest.min(self.next_lead())),
        }
    }

    /// The tick at which the early cascade next has something to do, or a later one if it has
    /// nothing for now: `Tick::MAX` if no overflow bucket holds anything.
    #[cold]
    fn next_lead(&self) -> Tick {
        let Some(from) = self.flushed.checked_add(1) else { return Tick::MAX };
        let leads = (1..self.shared.geometry.levels()).filter_map(|level| self.next_lead_at(level, from));
        leads.min().map_or(Tick::MAX, |lead| lead.max(self.early_cascade.next()).max(from))
    }

    fn next_lead_at(&self, level: usize, from: Tick) -> Option<Tick> {
        let (geometry, span) = (self.shared.geometry, self.shared.geometry.span(level));
        let private = self.private.next_occupied_at(level, geometry, from);
        let private = private.map(|expiration| expiration.saturating_sub(span));
        // The bits of a shared bucket stay set when the early cascade has emptied it, so within the
        // lead the lists count. What a producer is about to push there waits for the expiration.
        let shared = self.shared.next_occupied_at(level, from, Tick::MAX);
        let is_ahead = |&expiration: &Tick| {
            expiration.saturating_sub(span) >= from || self.shared.holds_nodes(level, expiration)
        };
        let shared = shared.filter(is_ahead).map(|expiration| expiration.saturating_sub(span));
        private.into_iter().chain(shared).min()
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
