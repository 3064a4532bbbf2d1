//! Which nodes a producer may use again where they stand.

use super::node::{NIL, NodeId};
use crate::Tick;

/// How many hints a lane keeps, and how many of them a schedule looks at.
const HINTS: usize = if cfg!(any(shardwheel_loom, fuzzing)) { 16 } else { 1024 };
const LOOKED_AT: usize = 4;

/// Nodes that the owner of a lane has cancelled a timer of, with the tick that they are linked for: candidates for
/// reuse where they stand. A hint may be stale; the node's word decides. The youngest comes first, the oldest
/// is forgotten first.
///
/// Who cancels some hundred timers and schedules as many has the same nodes again, which are in his cache. The
/// system gives memory for a hint when it is first needed.
pub(crate) struct Hints {
    nodes: Box<[NodeId]>,
    linked_for: Box<[Tick]>,
    next: usize,
}

impl Hints {
    #[inline]
    pub(crate) fn push(&mut self, node: NodeId, linked_for: Tick) {
        self.nodes[self.next] = node;
        self.linked_for[self.next] = linked_for;
        self.next = (self.next + 1) % HINTS;
    }

    /// A node that is linked for `deadline` or an earlier tick.
    #[inline]
    pub(crate) fn pop(&mut self, deadline: Tick) -> Option<NodeId> {
        let top = (self.next + HINTS - 1) % HINTS;
        if self.nodes[top] == NIL {
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

impl Default for Hints {
    fn default() -> Self {
        Self { nodes: vec![NIL; HINTS].into(), linked_for: vec![0; HINTS].into(), next: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_yield_the_youngest_that_is_due_in_time() {
        let mut hints = Hints::default();
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
        let mut hints = Hints::default();
        for node in 1..=2 * HINTS as NodeId {
            hints.push(node, 0);
        }
        let kept = std::iter::from_fn(|| hints.pop(0)).collect::<Vec<_>>();
        assert_eq!(kept, (HINTS as NodeId + 1..=2 * HINTS as NodeId).rev().collect::<Vec<_>>());
    }
}
