//! What the owner of a lane has to itself.

use super::hints::Hints;
use crate::shard::memory::epochs::Participant;
use crate::shard::memory::slab::{FreeWord, Held};

pub(crate) struct Local {
    pub(crate) participant: Participant,
    pub(crate) nodes: Nodes,
    /// How many more dead nodes the owner may leave before it reports, and its total at the last
    /// report (see [`counts`](crate::shard::shared::counts)).
    pub(crate) until_report: u32,
    pub(crate) reported: u64,
}

/// The nodes that the owner may use for its next timers.
pub(crate) struct Nodes {
    pub(crate) free: FreeWord,
    pub(crate) held: Held,
    pub(crate) hints: Hints,
}

impl Local {
    pub(super) fn new(participant: Participant, keeps: bool) -> Self {
        let (free, held, hints) = (FreeWord::default(), Held::default(), Hints::new(keeps));
        Self { participant, nodes: Nodes { free, held, hints }, until_report: 0, reported: 0 }
    }
}
