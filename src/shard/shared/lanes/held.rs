//! The node that a producer holds from a cancel to its next schedule.

use crate::shard::node::state::Word;
use crate::shard::node::{NIL, NodeId};
use crate::tick::Tick;

/// A dead node that the owner of a lane keeps for its next timer.
///
/// Read it field by field: copying the struct would cause a store-forwarding stall.
#[derive(Default)]
pub(crate) struct Held {
    /// `NIL` if the lane holds no node.
    pub(crate) node: NodeId,
    /// The node's word before its timer was cancelled.
    pub(crate) word: Word,
    /// The earliest tick at which the next timer may be due.
    pub(crate) linked_for: Tick,
}

impl Held {
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.node == NIL
    }
}
