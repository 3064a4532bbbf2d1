//! Timers in hand that are due, by their deadlines: those that come too late for a bucket.

use std::cmp::Reverse;

use crate::shard::node::NodeId;
use crate::tick::Tick;

/// A buffer with room for more entries than this is freed when it is empty.
pub(super) const KEPT_BUFFER: usize = 1 << 12;

struct Entry {
    deadline: Tick,
    /// Its position before a sort, which keeps timers of equal deadlines in order.
    order: u32,
    id: NodeId,
}

/// The timers, latest first, because they are taken from the end. What has come since the last
/// sort is behind them.
#[derive(Default)]
pub(in crate::shard) struct Overdue {
    list: Vec<Entry>,
    sorted: usize,
}

impl Overdue {
    pub(in crate::shard) fn push(&mut self, deadline: Tick, id: NodeId) {
        self.list.push(Entry { deadline, order: 0, id });
    }

    #[inline]
    pub(in crate::shard) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Takes the earliest timer. Of equal deadlines, one that was here at the last call; of those
    /// that have come since, the last pushed, because the inbox yields the youngest first.
    #[inline]
    pub(in crate::shard) fn pop(&mut self) -> Option<(Tick, NodeId)> {
        if self.sorted < self.list.len() {
            self.sort_in();
        }
        let Entry { deadline, id, .. } = self.list.pop()?;
        self.sorted = self.list.len();
        Some((deadline, id))
    }

    /// The earliest deadline. O(1), but for what has come since the last [`pop`](Self::pop).
    pub(in crate::shard) fn earliest(&self) -> Option<Tick> {
        let known = self.sorted.saturating_sub(1);
        self.list[known..].iter().map(|due| due.deadline).min()
    }

    /// Gives back a large buffer that is empty.
    pub(super) fn shrink(&mut self) {
        if self.list.is_empty() && self.list.capacity() > KEPT_BUFFER {
            self.list = Vec::new();
        }
    }

    /// Sorts the newcomers in among the others. The inbox yields the youngest first, and equal
    /// deadlines fire in the order in which they were scheduled. A stable sort would allocate;
    /// `order` makes an unstable one stable.
    #[cold]
    fn sort_in(&mut self) {
        let newcomers = self.list.len() - self.sorted;
        sort(&mut self.list[self.sorted..]);
        self.list.rotate_right(newcomers);
        if !self.list.is_sorted_by_key(|due| Reverse(due.deadline)) {
            sort(&mut self.list);
        }
    }

    /// The deadlines and nodes, in no particular order; for invariant checks.
    #[cfg(any(test, debug_assertions, fuzzing, shardwheel_loom))]
    pub(super) fn iter(&self) -> impl Iterator<Item = (Tick, NodeId)> + '_ {
        self.list.iter().map(|due| (due.deadline, due.id))
    }

    #[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
    pub(super) fn capacity(&self) -> usize {
        self.list.capacity()
    }
}

fn sort(due: &mut [Entry]) {
    due.iter_mut().zip(0..).for_each(|(due, order)| due.order = order);
    due.sort_unstable_by_key(|due| (Reverse(due.deadline), due.order));
}
