//! The earliest tick at which anything that the advancer knows of may be due.

use crate::shard::advancer::Advancer;
use crate::shard::node::{NIL, NodeId};
use crate::shard::shared::FEW_PENDING;
use crate::sync::Ordering;
use crate::tick::Tick;

/// How many nodes of the inbox `next_expiration` visits before it answers `flushed`.
pub(super) const INBOX_LOOK: usize = 64;

/// The earlier of two ticks, if there are any.
#[inline]
pub(super) fn earlier(a: Option<Tick>, b: Option<Tick>) -> Option<Tick> {
    a.map_or(b, |a| Some(b.map_or(a, |b| a.min(b))))
}

impl<T> Advancer<T> {
    /// The earliest tick at which anything may be due, or an earlier one, without what producers
    /// have added since the last advance.
    #[inline]
    pub(super) fn earliest_in_hand(&self) -> Option<Tick> {
        let private = self.private.none_before();
        let holds_any = self.holds_due() || !self.hands.deferred.is_empty();
        if holds_any { earlier(private, self.earliest_left()) } else { private }
    }

    /// The earliest tick of what is left of the last drain, and of what is deferred.
    #[cold]
    fn earliest_left(&self) -> Option<Tick> {
        let overdue = self.hands.overdue.last().map(|due| due.deadline);
        let due = (!self.hands.due.is_empty()).then(|| self.flushed.saturating_add(1));
        earlier(earlier(overdue, due), self.earliest_of(&self.hands.deferred))
    }

    fn earliest_of(&self, nodes: &[NodeId]) -> Option<Tick> {
        nodes.iter().filter_map(|&id| self.deadline(id)).min()
    }

    /// The earliest tick at which anything known may be due; after the fence. `in_hand` is the
    /// answer of [`earliest_in_hand`](Self::earliest_in_hand) from before the fence. Of that,
    /// producers change only what is deferred: they finish what they do in these nodes. `pending`
    /// timers were pending before the fence; if it is none, they are counted again.
    #[inline]
    pub(super) fn earliest(&self, in_hand: Option<Tick>, pending: usize) -> Option<Tick> {
        let known = earlier(in_hand, self.earliest_known_anew());
        // If something known is due soon, few bits of the shared wheels show whether anything is
        // due before.
        let to = known.unwrap_or(Tick::MAX);
        let from = self.flushed.checked_add(1);
        let shared = from.filter(|&from| from <= to).and_then(|from| self.shared.next_occupied(from, to));
        let earliest = shared.or(known)?;
        match if pending == 0 { self.shared.len() } else { pending } {
            0 => None,
            // No step of the early cascade is due before.
            pending if pending <= FEW_PENDING || earliest <= self.upkeep.next_cascade => Some(earliest),
            _ => Some(earliest.min(self.next_lead(earliest))),
        }
    }

    /// The earliest tick of what producers may have changed or added, other than in the wheels.
    #[inline]
    fn earliest_known_anew(&self) -> Option<Tick> {
        earlier(self.earliest_of(&self.hands.deferred), self.earliest_in_inbox())
    }

    /// The tick at which the early cascade next has something to do, or a later one if it has
    /// nothing to do up to `to`: `Tick::MAX` if no overflow bucket holds anything.
    fn next_lead(&self, to: Tick) -> Tick {
        let height = self.shared.height().max(self.private.height());
        let leads = (1..height).filter_map(|level| self.next_lead_at(level, to));
        leads.min().map_or(Tick::MAX, |lead| lead.max(self.upkeep.next_cascade).max(self.flushed + 1))
    }

    /// As [`next_lead`](Self::next_lead), of one level.
    #[inline]
    fn next_lead_at(&self, level: usize, to: Tick) -> Option<Tick> {
        let next = self.next_early_bucket(level)?;
        if self.may_place_early(next) {
            return Some(self.flushed);
        }
        let geometry = self.shared.geometry;
        // The lead of the bucket after that one begins here.
        let next_lead = geometry.expiration(next);
        if to <= next_lead {
            return None;
        }
        let after = next_lead.checked_add(1)?;
        let private = self.private.next_occupied_at(level, geometry, after);
        let shared = self.shared.next_occupied_at(level, after, Tick::MAX);
        earlier(private, shared).map(|expiration| expiration.saturating_sub(geometry.span(level)))
    }

    /// The earliest deadline in the inbox, or `flushed` if the inbox is too long to visit.
    fn earliest_in_inbox(&self) -> Option<Tick> {
        let mut next = self.shared.peek_inbox();
        let mut earliest = None;
        for _ in 0..INBOX_LOOK {
            if next == NIL {
                return earliest;
            }
            earliest = earlier(earliest, self.deadline(next));
            // Ordering: Relaxed, `peek_inbox` acquired the list.
            next = self.node(next).next().load(Ordering::Relaxed);
        }
        Some(self.flushed)
    }

    /// The deadline of the timer in a node, if it is pending. A producer that is at work in the
    /// node reads `wake_below` when it is done.
    fn deadline(&self, id: NodeId) -> Option<Tick> {
        self.node(id).pending().map(|(deadline, _)| deadline)
    }
}
