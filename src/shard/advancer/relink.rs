//! Placing a node that the advancer has in hand and does not yield.

use std::cmp::Reverse;

use crate::shard::advancer::Advancer;
use crate::shard::node::state::{Status, Word};
use crate::shard::node::{NIL, NodeId};
use crate::shard::wheel::geometry::Slot;
use crate::sync::Ordering;
use crate::tick::Tick;

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
        !self.hands.deferred.is_empty() || self.shared.has_inbox()
    }

    /// Takes in the newcomers.
    #[inline(never)]
    pub(super) fn take_in_newcomers(&mut self) {
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
        let (word, flushed) = (self.displaced_word(id), self.flushed);
        let deadline = word.is(Status::Pending).then(|| self.node(id).deadline(word));
        match deadline.filter(|&deadline| deadline <= flushed) {
            Some(deadline) => self.hands.overdue.push(Overdue { deadline, place: 0, id }),
            None => self.relink(id),
        }
    }

    /// The word of a node that is about to be placed for its deadline. If its timer is due later
    /// than `base`, this first marks the node as displaced. Lock-free: it repeats only if a
    /// producer has changed the timer.
    fn displaced_word(&self, id: NodeId) -> Word {
        let node = self.node(id);
        loop {
            let word = node.word();
            if !word.is(Status::Pending) || node.displace(word) {
                return word;
            }
        }
    }

    /// Places a node that is not to be yielded now: in a bucket, in `overdue` or in `deferred`.
    /// Frees a dead node. Looks a second time at a busy node (see
    /// [`protocol`](crate::shard::shared::protocol)).
    pub(super) fn relink(&mut self, id: NodeId) {
        if !self.place_at_once(id, false) {
            self.shared.clock.pass_fence();
            self.place_at_once(id, true);
        }
    }

    /// Places a node by what it holds now. At the first look, leaves a node for a second one, and
    /// returns false.
    fn place_at_once(&mut self, id: NodeId, is_second_look: bool) -> bool {
        let word = self.displaced_word(id);
        let node = self.node(id);
        match word.status() {
            Status::Pending => {
                let deadline = node.deadline(word);
                if deadline > self.flushed {
                    self.link_for(deadline, id);
                } else {
                    let at = self.hands.overdue.partition_point(|later| later.deadline > deadline);
                    self.hands.overdue.insert(at, Overdue { deadline, place: 0, id });
                }
            }
            Status::Cancelled if self.free_if_dead(id) => {}
            // A node in which a producer is at work. A timer whose payload is out is never in hand.
            _ if is_second_look => self.hands.deferred.push(id),
            _ => return false,
        }
        true
    }

    /// Links a node whose timer was armed for `base` just now, or defers it if that tick has been
    /// flushed.
    ///
    /// It does not read the word: the timer may have been cancelled since, or the node reused for a
    /// later tick, as may happen to any node that is linked for its `base`.
    pub(super) fn link_armed(&mut self, id: NodeId, base: Tick) {
        if base > self.flushed { self.link_for(base, id) } else { self.hands.deferred.push(id) }
    }

    /// Links a node into the bucket of the private wheels for `tick`, which is after `flushed`.
    fn link_for(&mut self, tick: Tick, id: NodeId) {
        self.link(self.shared.geometry.place_private(self.flushed + 1, tick), id);
    }

    /// Links a node into a bucket of the private wheels.
    pub(super) fn link(&mut self, slot: Slot, id: NodeId) {
        self.private.splice(self.shared.geometry, slot, id, self.shared.node(id).next());
    }

    /// Frees a node if its timer was cancelled; true if it did.
    pub(super) fn free_if_dead(&mut self, id: NodeId) -> bool {
        let hand = self.node(id);
        let Some(vacant) = hand.free_cancelled(hand.word()) else { return false };
        let node = hand.freed(vacant);
        self.retire_dead(node);
        true
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use super::*;

    #[test]
    fn newcomers_are_sorted_in_among_what_is_overdue() {
        let overdue = |&(deadline, id)| Overdue { deadline, place: 0, id };
        for (known, newcomers, sorted) in [
            (&[(9, 1), (5, 2)][..], &[(2, 3), (7, 4)][..], &[(9, 1), (7, 4), (5, 2), (2, 3)][..]),
            (&[(5, 1)], &[(8, 2), (8, 3)], &[(8, 2), (8, 3), (5, 1)]),
            (&[(5, 1)], &[], &[(5, 1)]),
        ] {
            let mut all: Vec<_> = known.iter().chain(newcomers).map(overdue).collect();
            sort_in(&mut all, known.len());
            assert_eq!(all.iter().map(|due| (due.deadline, due.id)).collect::<Vec<_>>(), sorted);
        }
    }
}
