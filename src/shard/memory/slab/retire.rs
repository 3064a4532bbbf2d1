//! Taking empty segments out of the table; for the advancer.

use super::Slab;
use crate::shard::memory::epochs::Reclaimer;
use crate::shard::memory::free_bits::{WORD_NODES, marked};
use crate::shard::memory::segment::Segment;
use crate::shard::memory::slab::KEEPS_FIRST_SEGMENT;
use crate::shard::memory::table::{Keep, Retired};
use crate::sync::Ordering;

/// The last era at which segments are given back. The eras that remain suffice for every segment
/// that can still be added, because segments then stay.
pub(super) const LAST_ERA_GIVEN_BACK: u32 = u32::MAX / 2;

impl<T> Slab<T> {
    /// What [`retire_one`](Self::retire_one) takes out of the table; one for each slab.
    pub(crate) fn retired(&self) -> Retired<Segment<T>> {
        Retired::of(&self.segments)
    }

    /// Marks a segment all of whose nodes are free.
    pub(super) fn mark_empty(&self, index: usize) {
        if index > 0 || !KEEPS_FIRST_SEGMENT {
            // Ordering: Release, pairs with the Acquire in `take_if_empty`: the advancer, which
            // clears this bit, sees the count that is full.
            self.empty[index / WORD_NODES].fetch_or(1 << (index % WORD_NODES), Ordering::Release);
        }
    }

    /// The segments that are marked as empty, if segments may still go. The first one comes last:
    /// it is on ordinary pages, which take longer to unmap, and new timers look there first.
    fn marked_empty(&self) -> impl Iterator<Item = usize> {
        // Ordering: Relaxed, only the number matters.
        let may_go = self.next_era.load(Ordering::Relaxed) <= LAST_ERA_GIVEN_BACK;
        let words = if may_go { self.segments.height().div_ceil(WORD_NODES) } else { 0 };
        let marked = |is_first| marked(&self.empty[..words]).filter(move |&index| (index == 0) == is_first);
        marked(false).chain(marked(true))
    }

    /// Whether a segment is marked as empty.
    pub(crate) fn may_retire(&self) -> bool {
        self.marked_empty().next().is_some()
    }

    /// Takes an empty segment out of the table, and returns its place.
    pub(crate) fn retire_one(
        &self,
        retired: &mut Retired<Segment<T>>,
        reclaimer: &mut Reclaimer,
    ) -> Option<usize> {
        let index = self.marked_empty().find(|&index| self.take_if_empty(index, reclaimer))?;
        // Ordering: Relaxed, a count.
        self.size.fetch_sub(1, Ordering::Relaxed);
        self.segments.replace(index, None, retired, reclaimer);
        Some(index)
    }

    /// Clears a segment's mark, and takes all nodes of the segment if they are free.
    fn take_if_empty(&self, index: usize, reclaimer: &Reclaimer) -> bool {
        // Ordering: Acquire, pairs with the Release in `mark_empty`. The bit first, then the count:
        // a thread that completes the segment after this look sets the bit again.
        self.empty[index / WORD_NODES].fetch_and(!(1 << (index % WORD_NODES)), Ordering::Acquire);
        let Some(segment) = self.segments.get(index, Keep::by(reclaimer)) else { return false };
        let free = &segment.free;
        if free.are_all_free() && free.take_all() {
            return true;
        }
        // A producer has taken a node. Another one that found no free node while they were all
        // taken here may have cleared the bit in `open`. All may be free again by now.
        self.reopen(index);
        if free.are_all_free() {
            self.mark_empty(index);
        }
        false
    }
}
