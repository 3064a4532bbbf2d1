//! Hints: which dead nodes a producer may reuse while they stay in their lists. Only the lane's
//! owner uses its hints.

use crate::shard::node::{NIL, NodeId};
use crate::tick::Tick;

/// How many hints a lane keeps, and how many of them a search for one looks at.
const HINTS: usize = if cfg!(shardwheel_loom) || crate::config::SMALL { 16 } else { 1024 };
const LOOKED_AT: usize = 4;

/// Nodes of timers that the owner of a lane has cancelled or moved, with the tick that each node is
/// linked for: candidates for reuse in place. A hint may be stale; the node's word decides. The
/// youngest hint comes first, and the oldest is forgotten first.
///
/// A producer that cancels some hundred timers and schedules as many gets the same nodes again,
/// which are in its cache. The first hint requests the memory for all; if there is none, hints are
/// forgotten at once.
pub(crate) struct Hints {
    /// Whether any hints are kept; false in a lane that is lent.
    are_kept: bool,
    /// Empty, or [`HINTS`] of each.
    nodes: Box<[NodeId]>,
    linked_for: Box<[Tick]>,
    next: usize,
}

impl Hints {
    pub(crate) fn new(are_kept: bool) -> Self {
        Self { are_kept, nodes: Box::default(), linked_for: Box::default(), next: 0 }
    }

    /// Forgets all hints and frees the memory.
    pub(crate) fn forget(&mut self) {
        *self = Self::new(self.are_kept);
    }

    #[inline]
    pub(crate) fn push(&mut self, node: NodeId, linked_for: Tick) {
        if self.nodes.is_empty() && !self.make_room() {
            return;
        }
        self.nodes[self.next] = node;
        self.linked_for[self.next] = linked_for;
        self.next = (self.next + 1) % HINTS;
    }

    /// Requests the memory; false if there is none, or if the lane keeps no hints.
    #[cold]
    fn make_room(&mut self) -> bool {
        let (mut nodes, mut linked_for) = (Vec::new(), Vec::new());
        if !self.are_kept {
            return false;
        }
        if nodes.try_reserve_exact(HINTS).is_err() || linked_for.try_reserve_exact(HINTS).is_err() {
            return false;
        }
        nodes.resize(HINTS, NIL);
        linked_for.resize(HINTS, 0);
        (self.nodes, self.linked_for) = (nodes.into(), linked_for.into());
        true
    }

    /// Takes the hint of a node that is linked for `deadline` or an earlier tick.
    #[inline]
    pub(crate) fn pop(&mut self, deadline: Tick) -> Option<NodeId> {
        let top = (self.next + HINTS - 1) % HINTS;
        if *self.nodes.get(top)? == NIL {
            return None;
        }
        let at = (0..LOOKED_AT)
            .map(|back| (top + HINTS - back) % HINTS)
            .find(|&at| self.nodes[at] != NIL && self.linked_for[at] <= deadline)?;
        let node = self.nodes[at];
        (self.nodes[at], self.linked_for[at]) = (self.nodes[top], self.linked_for[top]);
        self.nodes[top] = NIL;
        self.next = top;
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_yield_the_youngest_that_is_due_in_time() {
        let mut hints = Hints::new(true);
        hints.push(1, 10);
        hints.push(2, 30);
        hints.push(3, 20);
        assert_eq!(hints.pop(25), Some(3));
        assert_eq!(hints.pop(25), Some(1));
        assert_eq!(hints.pop(25), None);
        assert_eq!(hints.pop(30), Some(2));
        assert_eq!(hints.pop(Tick::MAX), None);
    }

    #[test]
    fn hints_forget_the_oldest() {
        let mut hints = Hints::new(true);
        for node in 1..=2 * HINTS as NodeId {
            hints.push(node, 0);
        }
        let kept = std::iter::from_fn(|| hints.pop(0)).collect::<Vec<_>>();
        assert_eq!(kept, (HINTS as NodeId + 1..=2 * HINTS as NodeId).rev().collect::<Vec<_>>());
    }
}
