//! Taking empty segments out of the table; for the advancer.

use super::Slab;
use crate::config::LIMITS;
use crate::shard::memory::epochs::Reclaimer;
use crate::shard::memory::segment::Segment;
use crate::shard::memory::slot::{Keep, Retired};
use crate::sync::Ordering;

/// The last era at which segments are given back. The eras that remain suffice for every segment
/// that can still be added, because segments then stay.
pub(super) const LAST_ERA_GIVEN_BACK: u32 = u32::MAX / 2;

impl<T> Slab<T> {
    /// What [`retire_one`](Self::retire_one) takes out of the table; one for each slab.
    pub(crate) fn retired(&self) -> Retired<Segment<T>> {
        Retired::of(&self.segments)
    }

    /// Takes an empty segment out of the table: the highest of the `LIMITS.places_per_search`
    /// places below `above`. Returns its place. If none is empty, the error is the place below
    /// which to look next.
    pub(crate) fn retire_one(
        &self,
        above: usize,
        retired: &mut Retired<Segment<T>>,
        reclaimer: &mut Reclaimer,
    ) -> Result<usize, usize> {
        let first = usize::from(LIMITS.keeps_first_segment);
        // Ordering: Relaxed, only the number matters.
        if self.next_era.load(Ordering::Relaxed) > LAST_ERA_GIVEN_BACK {
            return Err(first);
        }
        let above = above.min(self.segments.height());
        let below = above.saturating_sub(LIMITS.places_per_search).max(first);
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
