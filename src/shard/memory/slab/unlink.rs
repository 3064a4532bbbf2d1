//! Taking empty segments out of the table; for the advancer.

use super::Slab;
use crate::shard::memory::epochs::Reclaimer;
use crate::shard::memory::segment::Segment;
use crate::shard::memory::slab::KEEPS_FIRST_SEGMENT;
use crate::shard::memory::slot::{Keep, Retired};
use crate::size::size;
use crate::sync::Ordering;

/// Places of the table at which one search for an empty segment looks.
pub(crate) const PLACES_PER_SEARCH: usize = size(64, 3, 64);

/// The last era at which segments are given back. The eras that remain suffice for every segment
/// that can still be added, because segments then stay.
pub(super) const LAST_ERA_GIVEN_BACK: u32 = u32::MAX / 2;

impl<T> Slab<T> {
    /// What [`retire_one`](Self::retire_one) takes out of the table; one for each slab.
    pub(crate) fn retired(&self) -> Retired<Segment<T>> {
        Retired::of(&self.segments)
    }

    /// Takes an empty segment out of the table: the highest of the `PLACES_PER_SEARCH`
    /// places below `above`. Returns its place. If none is empty, the error is the place below
    /// which to look next.
    pub(crate) fn retire_one(
        &self,
        above: usize,
        retired: &mut Retired<Segment<T>>,
        reclaimer: &mut Reclaimer,
    ) -> Result<usize, usize> {
        let first = usize::from(KEEPS_FIRST_SEGMENT);
        // Ordering: Relaxed, only the number matters.
        if self.next_era.load(Ordering::Relaxed) > LAST_ERA_GIVEN_BACK {
            return Err(first);
        }
        let above = above.min(self.segments.height());
        let below = above.saturating_sub(PLACES_PER_SEARCH).max(first);
        let segment = |index| self.load(index, Keep::by(reclaimer));
        let is_empty = |&index: &usize| segment(index).is_some_and(|segment| segment.free.are_all_free());
        let Some(index) = (below..above).rev().find(is_empty) else { return Err(below) };
        if !segment(index).is_some_and(|segment| segment.free.take_all()) {
            // A producer has taken a node of it meanwhile. A producer that searched meanwhile may
            // have found no free node and cleared the segment's bit.
            self.reopen(index);
            return Err(index);
        }
        // Ordering: Relaxed, a count.
        self.size.fetch_sub(1, Ordering::Relaxed);
        self.segments.replace(index, None, retired, reclaimer);
        Ok(index)
    }
}
