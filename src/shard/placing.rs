//! Where a node goes that the advancer has in hand and does not yield.

use super::advancer::Advancer;
use super::level::Slot;
use super::node::{Met, NIL, NodeId};
use crate::Tick;
use crate::sync::Ordering;

/// Where a node that the advancer has in hand is to go.
enum Place {
    /// Into this bucket.
    Bucket(Slot),
    /// Nowhere: its timer is due already, at this tick.
    Overdue(Tick),
    /// Nowhere: it has been freed.
    Dead,
    /// Nowhere yet: it is looked at again at the next advance.
    Aside,
}

impl<T> Advancer<T> {
    /// Looks at the inbox, at what was deferred, and at further lists: what is due to `overdue`, the rest to
    /// its bucket.
    pub(super) fn admit_newcomers(&mut self, lists: Vec<NodeId>) {
        let known = self.overdue.len();
        // What is to be deferred further goes to another buffer, which is used again by turns.
        let mut deferred = std::mem::replace(&mut self.deferred, std::mem::take(&mut self.deferred_before));
        deferred.drain(..).for_each(|id| self.admit(id));
        self.deferred_before = deferred;
        for first in lists.into_iter().chain([self.shared.take_inbox()]) {
            let mut next = first;
            while next != NIL {
                let id = next;
                // Ordering: Relaxed, who took the list has acquired it.
                next = self.node(id).0.next().load(Ordering::Relaxed);
                self.admit(id);
            }
        }
        if self.overdue.len() > known {
            // Latest first, because it is emptied from its end. Stable: the inbox yields the youngest first,
            // so equal deadlines fire in the order in which they were scheduled.
            self.overdue.sort_by_key(|&(deadline, _)| std::cmp::Reverse(deadline));
        }
    }

    fn admit(&mut self, id: NodeId) {
        match self.meet_to_place(id) {
            Met::Pending(deadline, _) if deadline <= self.flushed => {
                self.put_overdue(self.overdue.len(), deadline, id)
            }
            _ => self.put_back(id),
        }
    }

    /// Puts a timer that is due among those, at that place.
    fn put_overdue(&mut self, at: usize, deadline: Tick, id: NodeId) {
        if self.overdue.try_reserve(1).is_ok() {
            self.overdue.insert(at, (deadline, id));
        } else {
            self.shared.push_to_inbox(id, id);
        }
    }

    /// Sets a node aside until the next advance.
    fn defer(&mut self, id: NodeId) {
        if self.deferred.try_reserve(1).is_ok() {
            self.deferred.push(id);
        } else {
            self.shared.push_to_inbox(id, id);
        }
    }

    /// What a node holds that is about to be placed for its deadline; one that is due later than at its `base`
    /// says by then that it is displaced. Lock-free: it looks again only where a producer has changed the
    /// timer.
    fn meet_to_place(&self, id: NodeId) -> Met {
        let (node, _) = self.node(id);
        loop {
            match node.meet() {
                Met::Pending(_, word) if !node.displace(word) => {}
                met => return met,
            }
        }
    }

    /// Puts a node that is not to be yielded now where it belongs: a bucket, the dead, or aside until the
    /// next advance.
    pub(super) fn put_back(&mut self, id: NodeId) {
        match self.find_place(id) {
            Place::Bucket(slot) => self.link(slot, id, id),
            Place::Overdue(deadline) => {
                let at = self.overdue.partition_point(|&(later, _)| later > deadline);
                self.put_overdue(at, deadline, id);
            }
            Place::Dead => self.retire_dead(id),
            Place::Aside => self.defer(id),
        }
    }

    /// Links a node whose timer was armed for `base` just now, or sets it aside where that has been flushed already.
    ///
    /// No look at the word: the timer may have been cancelled since, or the node reused for a later tick, as may
    /// happen to any node that is linked for its `base`.
    pub(super) fn link_armed(&mut self, id: NodeId, base: Tick) {
        if base > self.flushed {
            let slot = self.shared.geometry.place_own(self.flushed + 1, base);
            self.link(slot, id, id);
        } else {
            self.defer(id);
        }
    }

    fn find_place(&self, id: NodeId) -> Place {
        match self.meet_to_place(id) {
            Met::Pending(deadline, _) if deadline > self.flushed => {
                Place::Bucket(self.shared.geometry.place_own(self.flushed + 1, deadline))
            }
            Met::Pending(deadline, _) => Place::Overdue(deadline),
            Met::Cancelled(word) if self.node(id).0.bury(word) => Place::Dead,
            // A producer is at work; a timer whose payload is out is not in hand.
            _ => Place::Aside,
        }
    }

    /// Links the chain from `first` to `last`, all of one stripe, into a bucket of the advancer's own wheels.
    pub(super) fn link(&mut self, slot: Slot, first: NodeId, last: NodeId) {
        // SAFETY: it is in use, or it would not be in hand.
        let (node, _) = unsafe { self.shared.slab.owned(last) };
        if !self.own.splice(self.shared.geometry, slot, first, node.next()) {
            self.shared.push_to_inbox(first, last);
        }
    }
}
