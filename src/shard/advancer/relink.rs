//! Where a node goes that the advancer has in hand and does not yield.

use std::cmp::Reverse;

use crate::shard::advancer::Advancer;
use crate::shard::advancer::idle_wheels::Closed;
use crate::shard::node::{NIL, NodeId, Observed};
use crate::shard::wheel::geometry::Slot;
use crate::sync::Ordering;
use crate::tick::Tick;

/// Where a node that the advancer has in hand is to go.
enum Destination {
    /// Into this bucket.
    Bucket(Slot),
    /// Nowhere: its timer is due already, at this tick.
    Overdue(Tick),
    /// Nowhere: it has been freed.
    Dead,
    /// Nowhere yet: it is looked at again at the next advance.
    Aside,
}

/// A timer in hand that is due.
pub(super) struct Overdue {
    pub(super) deadline: Tick,
    /// Where it stood before it was sorted in.
    place: u32,
    pub(super) id: NodeId,
}

/// Sorts those from `known` on in among the others: latest first, because it is emptied from its end. The inbox yields the
/// youngest first, and equal deadlines fire in the order in which they were scheduled. As it asks for no memory, a stable
/// sort is not for it.
fn sort_in(overdue: &mut [Overdue], known: usize) {
    let newcomers = overdue.len() - known;
    if newcomers == 0 {
        return;
    }
    sort(&mut overdue[known..]);
    overdue.rotate_right(newcomers);
    if !overdue.is_sorted_by_key(|due| Reverse(due.deadline)) {
        sort(overdue);
    }
}

fn sort(overdue: &mut [Overdue]) {
    overdue.iter_mut().zip(0..).for_each(|(due, place)| due.place = place);
    overdue.sort_unstable_by_key(|due| (Reverse(due.deadline), due.place));
}

impl<T> Advancer<T> {
    /// Looks at the inbox, at what was deferred, and at what wheels that were closed hold: what is due to `overdue`, the
    /// rest to its bucket.
    pub(super) fn admit_newcomers(&mut self, closed: Vec<Closed>) {
        let known = self.overdue.len();
        // What is to be deferred further goes to another buffer, which is used again by turns.
        let mut deferred = std::mem::replace(&mut self.deferred, std::mem::take(&mut self.deferred_before));
        deferred.drain(..).for_each(|id| self.admit(id));
        self.deferred_before = deferred;
        self.drain_wheels(closed, Self::admit_list);
        self.admit_list(self.shared.take_inbox());
        sort_in(&mut self.overdue, known);
    }

    fn admit_list(&mut self, first: NodeId) {
        let mut next = first;
        while next != NIL {
            let id = next;
            // Ordering: Relaxed, who took the list has acquired it.
            next = self.node(id).0.next().load(Ordering::Relaxed);
            self.admit(id);
        }
    }

    fn admit(&mut self, id: NodeId) {
        match self.observe_displaced(id) {
            Observed::Pending(deadline, _) if deadline <= self.flushed => {
                self.put_overdue(self.overdue.len(), deadline, id)
            }
            _ => self.relink(id),
        }
    }

    /// Puts a timer that is due among those, at that place; where there is no memory, in front of the bucket that is being
    /// drained, out of turn.
    fn put_overdue(&mut self, at: usize, deadline: Tick, id: NodeId) {
        if self.overdue.try_reserve(1).is_ok() {
            self.overdue.insert(at, Overdue { deadline, place: 0, id });
        } else {
            let Self { shared, due, .. } = self;
            due.push(id, shared.node(id).0.next());
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
    fn observe_displaced(&self, id: NodeId) -> Observed {
        let (node, _) = self.node(id);
        loop {
            match node.observe() {
                Observed::Pending(_, word) if !node.displace(word) => {}
                met => return met,
            }
        }
    }

    /// Puts a node that is not to be yielded now where it belongs: a bucket, the dead, or aside until the
    /// next advance.
    pub(super) fn relink(&mut self, id: NodeId) {
        match self.find_destination(id) {
            Destination::Bucket(slot) => self.link(slot, id, id),
            Destination::Overdue(deadline) => {
                let at = self.overdue.partition_point(|later| later.deadline > deadline);
                self.put_overdue(at, deadline, id);
            }
            Destination::Dead => self.retire_dead(id),
            Destination::Aside => self.defer(id),
        }
    }

    /// Links a node whose timer was armed for `base` just now, or sets it aside where that has been flushed already.
    ///
    /// No look at the word: the timer may have been cancelled since, or the node reused for a later tick, as may
    /// happen to any node that is linked for its `base`.
    pub(super) fn link_armed(&mut self, id: NodeId, base: Tick) {
        if base > self.flushed {
            let slot = self.shared.geometry.place_private(self.flushed + 1, base);
            self.link(slot, id, id);
        } else {
            self.defer(id);
        }
    }

    fn find_destination(&self, id: NodeId) -> Destination {
        match self.observe_displaced(id) {
            Observed::Pending(deadline, _) if deadline > self.flushed => {
                Destination::Bucket(self.shared.geometry.place_private(self.flushed + 1, deadline))
            }
            Observed::Pending(deadline, _) => Destination::Overdue(deadline),
            Observed::Cancelled(word) if self.node(id).0.free_cancelled(word) => Destination::Dead,
            // A producer is at work; a timer whose payload is out is not in hand.
            _ => Destination::Aside,
        }
    }

    /// Links the chain from `first` to `last`, all of one stripe, into a bucket of the advancer's own wheels.
    pub(super) fn link(&mut self, slot: Slot, first: NodeId, last: NodeId) {
        let (node, _) = self.shared.node(last);
        if !self.private.splice(self.shared.geometry, slot, first, node.next()) {
            self.shared.push_to_inbox(first, last);
        }
    }
}
