//! What the owner of a lane has to itself.

use crate::shard::memory::epochs::Participant;
use crate::shard::memory::slab::{FreeWord, Held};

pub(crate) struct Local {
    pub(crate) participant: Participant,
    pub(crate) nodes: LaneNodes,
    /// How many more dead nodes the owner may leave before it reports, and its total at the last
    /// report (see [`counts`](crate::shard::shared::counts)).
    pub(crate) until_report: u32,
    pub(crate) reported: u64,
}

/// The nodes that the owner may use for its next timers.
pub(crate) struct LaneNodes {
    pub(crate) free: FreeWord,
    pub(crate) held: Held,
}

impl Local {
    pub(super) fn new(participant: Participant) -> Self {
        let nodes = LaneNodes { free: FreeWord::default(), held: Held::default() };
        Self { participant, nodes, until_report: 0, reported: 0 }
    }
}
