//! Placing a node that the advancer has in hand and does not yield.

use std::cmp::Reverse;

use crate::shard::advancer::Advancer;
use crate::shard::memory::slab::Freed;
use crate::shard::node::{NIL, NodeId, Observed};
use crate::shard::wheel::geometry::Slot;
use crate::sync::Ordering;
use crate::tick::Tick;

/// Where a node in hand goes.
enum Destination {
    /// Into this bucket.
    Bucket(Slot),
    /// To `overdue`: its timer is due already, at this tick.
    Overdue(Tick),
    /// Nowhere: it has been freed.
    Dead(Freed),
    /// To `deferred`: the next advance visits it again.
    Deferred,
    /// To `aside`: its producer holds it, and the tick that it is linked for has come.
    Aside,
}

/// A timer in hand that is due.
pub(super) struct Overdue {
    pub(super) deadline: Tick,
    /// Its position before the sort, which keeps timers of equal deadlines in order.
    place: u32,
    pub(super) id: NodeId,
}

/// Sorts the newcomers, from index `known` on, in among the others: latest first, because `overdue`
/// is emptied from its end. The inbox yields the youngest first, and equal deadlines fire in the
/// order in which they were scheduled. A stable sort would allocate; `place` makes an unstable one
/// stable.
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
    /// Whether nodes wait for the next advance to take them in.
    #[inline]
    pub(super) fn has_newcomers(&self) -> bool {
        !self.hands.deferred.is_empty() || self.shared.has_inbox() || self.shared.is_aside_used()
    }

    /// Takes in the newcomers.
    #[inline(never)]
    pub(super) fn take_in_newcomers(&mut self) {
        if self.shared.take_aside_used() {
            self.visit_aside();
        }
        let inbox = self.shared.take_inbox();
        if self.hands.deferred.is_empty() && inbox == NIL {
            return;
        }
        let known = self.hands.overdue.len();
        // Nodes that are deferred again come after these.
        let deferred = self.hands.deferred.len();
        (0..deferred).for_each(|at| self.admit(self.hands.deferred[at]));
        self.hands.deferred.drain(..deferred);
        self.admit_list(inbox);
        sort_in(&mut self.hands.overdue, known);
    }

    fn admit_list(&mut self, first: NodeId) {
        let mut next = first;
        while next != NIL {
            let id = next;
            // Ordering: Relaxed, the advancer acquired the list when it took it.
            next = self.node(id).next().load(Ordering::Relaxed);
            self.admit(id);
        }
    }

    fn admit(&mut self, id: NodeId) {
        match self.observe_displaced(id) {
            Observed::Pending(deadline, _) if deadline <= self.flushed => {
                self.hands.overdue.push(Overdue { deadline, place: 0, id });
            }
            _ => self.relink(id),
        }
    }

    /// Places the nodes of `aside` that are no longer held, or that have been armed and cancelled
    /// once more.
    pub(super) fn visit_aside(&mut self) {
        let mut at = 0;
        while let Some(&id) = self.hands.aside.get(at) {
            let node = self.node(id);
            if matches!(node.observe(), Observed::Held(word) if node.linked_for(word) <= self.now) {
                at += 1;
            } else {
                self.hands.aside.swap_remove(at);
                self.relink(id);
            }
        }
    }

    /// What a node holds that is about to be placed for its deadline. If its timer is due later
    /// than `base`, this first marks the node as displaced. Lock-free: it repeats only if a
    /// producer has changed the timer.
    fn observe_displaced(&self, id: NodeId) -> Observed {
        let node = self.node(id);
        loop {
            match node.observe() {
                Observed::Pending(_, word) if !node.displace(word) => {}
                met => return met,
            }
        }
    }

    /// Places a node that is not to be yielded now: in a bucket, in `overdue`, in `deferred` or in
    /// `aside`. Frees a dead node.
    pub(super) fn relink(&mut self, id: NodeId) {
        match self.find_destination(id) {
            Destination::Bucket(slot) => self.link(slot, id, id),
            Destination::Overdue(deadline) => {
                let at = self.hands.overdue.partition_point(|later| later.deadline > deadline);
                self.hands.overdue.insert(at, Overdue { deadline, place: 0, id });
            }
            Destination::Dead(node) => self.retire_dead(node),
            Destination::Aside => self.hands.aside.push(id),
            Destination::Deferred => self.hands.deferred.push(id),
        }
    }

    /// Links a node whose timer was armed for `base` just now, or defers it if that tick has been
    /// flushed.
    ///
    /// It does not read the word: the timer may have been cancelled since, or the node reused for a
    /// later tick, as may happen to any node that is linked for its `base`.
    pub(super) fn link_armed(&mut self, id: NodeId, base: Tick) {
        if base > self.flushed {
            let slot = self.shared.geometry.place_private(self.flushed + 1, base);
            self.link(slot, id, id);
        } else {
            self.hands.deferred.push(id);
        }
    }

    /// Looks a second time at a node that is busy or held (see
    /// [`protocol`](crate::shard::shared::protocol)).
    fn find_destination(&self, id: NodeId) -> Destination {
        match self.destination_now(id) {
            Destination::Deferred | Destination::Aside => {
                self.shared.clock.pass_fence();
                self.destination_now(id)
            }
            found => found,
        }
    }

    fn destination_now(&self, id: NodeId) -> Destination {
        match self.observe_displaced(id) {
            Observed::Pending(deadline, _) if deadline > self.flushed => {
                Destination::Bucket(self.shared.geometry.place_private(self.flushed + 1, deadline))
            }
            Observed::Pending(deadline, _) => Destination::Overdue(deadline),
            Observed::Cancelled(word) => {
                let hand = self.node(id);
                let freed = hand.free_cancelled(word).map(|vacant| hand.freed(vacant));
                freed.map_or(Destination::Deferred, Destination::Dead)
            }
            // The bucket is in time for the next timer, which is due no earlier.
            Observed::Held(word) if self.node(id).linked_for(word) > self.now => {
                let linked_for = self.node(id).linked_for(word);
                Destination::Bucket(self.shared.geometry.place_private(self.flushed + 1, linked_for))
            }
            Observed::Held(_) => Destination::Aside,
            // A busy node. A timer whose payload is out is never in hand.
            _ => Destination::Deferred,
        }
    }

    /// Links the chain from `first` to `last`, all of one stripe, into a bucket of the private
    /// wheels.
    pub(super) fn link(&mut self, slot: Slot, first: NodeId, last: NodeId) {
        self.private.splice(self.shared.geometry, slot, first, self.shared.node(last).next());
    }
}
