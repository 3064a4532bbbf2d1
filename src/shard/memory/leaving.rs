//! Segments on their way to the system: retired, and then given back in parts.
//!
//! The system takes as long for the 512 pages of a segment as the advancer for firing a thousand
//! timers. So no advance gives back more than one part of a segment
//! ([`NodeMemory::give_part`]).

use crate::shard::memory::epochs::Reclaimer;
use crate::shard::memory::segment::{NodeMemory, Segment};
use crate::shard::memory::slot::Retired;

pub(super) struct Leaving<T> {
    pub(super) retired: Retired<Segment<T>>,
    /// The rest of the segment that is going back.
    parting: Option<NodeMemory<T>>,
}

impl<T> Leaving<T> {
    pub(super) fn new(retired: Retired<Segment<T>>) -> Self {
        Self { retired, parting: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments() == 0
    }

    /// The number of segments.
    pub(super) fn segments(&self) -> usize {
        self.retired.count() + usize::from(self.parting.is_some())
    }

    /// Gives a part of a segment to the system; true if it did.
    #[inline]
    pub(super) fn step(&mut self, reclaimer: &Reclaimer) -> bool {
        !self.is_empty() && self.give(reclaimer, NodeMemory::give_part)
    }

    /// Gives a whole segment to the system; true if it did.
    pub(super) fn give_whole(&mut self, reclaimer: &Reclaimer) -> bool {
        self.give(reclaimer, |_| None)
    }

    fn give(&mut self, reclaimer: &Reclaimer, give: impl Fn(NodeMemory<T>) -> Option<NodeMemory<T>>) -> bool {
        let next = || self.retired.take(reclaimer).map(|segment| segment.into_memory());
        let Some(memory) = self.parting.take().or_else(next) else { return false };
        self.parting = give(memory);
        true
    }
}
