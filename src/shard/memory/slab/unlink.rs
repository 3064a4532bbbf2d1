//! Taking empty segments out of the table; for the advancer.

use super::{Slab, staying};
use crate::shard::memory::epochs::Reclaimer;
use crate::shard::memory::segment::Segment;
use crate::shard::memory::slot::{Keep, Unlinked};
use crate::sync::Ordering;

/// How many places of the table one search for an empty segment looks at.
pub(super) const LOOKED_AT: usize = if crate::config::SMALL { 3 } else { 64 };

/// The last era at which segments are given back. The eras that remain suffice for every segment
/// that can still be added, because segments then stay.
pub(super) const LAST_ERA_GIVEN_BACK: u32 = u32::MAX / 2;

impl<T> Slab<T> {
    /// Takes an empty segment out of the table: the highest of the [`LOOKED_AT`] places below
    /// `above`. If none is empty, the error is the place below which to look next.
    pub(crate) fn unlink_one(
        &self,
        above: usize,
        reclaimer: &mut Reclaimer,
    ) -> Result<Unlinked<Segment<T>>, usize> {
        // Ordering: Relaxed, only the number matters.
        if self.next_era.load(Ordering::Relaxed) > LAST_ERA_GIVEN_BACK {
            return Err(staying());
        }
        let above = above.min(self.height());
        let below = above.saturating_sub(LOOKED_AT).max(staying());
        let is_empty = |&index: &usize| {
            self.load(index, Keep::by(reclaimer)).is_some_and(|segment| segment.free.are_all_free())
        };
        let Some(index) = (below..above).rev().find(is_empty) else { return Err(below) };
        self.take_away(index, reclaimer).ok_or(index)
    }

    /// Takes a segment out of the table, unless a producer has taken a node of it since it was
    /// found empty.
    fn take_away(&self, index: usize, reclaimer: &mut Reclaimer) -> Option<Unlinked<Segment<T>>> {
        if self.load(index, Keep::by(reclaimer))?.free.take_all() {
            // Ordering: Relaxed, a count.
            self.size.fetch_sub(1, Ordering::Relaxed);
            return self.segments.replace(index, None, reclaimer);
        }
        // A producer that searched meanwhile may have found no free node and cleared the segment's
        // bit.
        self.reopen(index);
        None
    }

    /// Takes what was unlinked and could not be reclaimed when the advancer ended.
    pub(crate) fn bury(&self, segments: Vec<Unlinked<Segment<T>>>) {
        self.segments.bury(segments);
    }
}
