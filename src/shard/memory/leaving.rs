//! Segments and wheels on their way to the system, a part in each step.
//!
//! The system takes as long for the 512 pages of a segment as the advancer for firing a thousand
//! timers. So no advance gives back more than one part of a segment
//! ([`Pages::give_part`](crate::shard::memory::pages::Pages::give_part)).
//!
//! # Protocol
//!
//! Only the advancer does these steps, in this order for each segment. Wheels go in the same way,
//! in one part.
//!
//! 1. *Unlink*: the advancer takes all free nodes and the segment's slot of the table
//!    ([`Slab::unlink_one`](crate::shard::memory::slab::Slab::unlink_one)).
//! 2. *Wait*: a grace period begins with the batch that was being collected, and passes.
//! 3. *Queue*: [`Leaving::add`] takes the pointers of all that waited, and the period as the proof.
//!    It reads none of that memory, so a hundred segments cost it one copy of a hundred pointers.
//! 4. *Reclaim*: the advancer takes one segment out of the queue and owns it. Its free bits go at
//!    once, and what is left is [`NodeMemory`], from which no node can be reached.
//! 5. *Give*: each step gives a part of that memory to the system, the last one the mapping.
//!
//! # Interleavings
//!
//! | another thread | meets |
//! |---|---|
//! | is pinned and found the segment before step 1 | No step after 2: the period outlasts its pin. |
//! | owns a node of the segment, or free nodes | Not step 1: not all nodes were free. |
//! | looks up an old key after step 1 | An empty slot, or a segment of another era there. Neither matches the key. |
//! | prefetches a node by the segment's former address | A prefetch of an address without memory does nothing. |
//! | needs a segment during the steps 1 to 5 | An empty slot. It makes a segment with memory of its own: one that leaves does not return. |
//! | ends the shard | After step 3, all that is left goes at once, with the queue. Before, it is [buried](crate::shard::memory::slot::Slots::bury). |
//!
//! So between two parts no other thread can reach the segment, and no atomic step is added to those
//! of the unlinking and the grace period.

use crate::shard::memory::batch::Retired;
use crate::shard::memory::epochs::Grace;
use crate::shard::memory::segment::{NodeMemory, Segment};
use crate::shard::wheel::Wheel;

/// Segments and wheels that no other thread reads any more.
pub(super) struct Leaving<T> {
    queue: Retired<T>,
    /// It has passed, and it began after all of `queue` was unlinked.
    grace: Option<Grace>,
    /// The rest of the segment that is going back.
    parting: Option<NodeMemory<T>>,
}

impl<T> Leaving<T> {
    pub(super) fn new() -> Self {
        Self { queue: Retired::default(), grace: None, parting: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.parting.is_none()
    }

    /// The number of segments.
    pub(super) fn segments(&self) -> usize {
        self.queue.segments() + usize::from(self.parting.is_some())
    }

    /// Reserves memory to add `more`; false if there is none.
    pub(super) fn make_room_for(&mut self, more: &Retired<T>) -> bool {
        self.queue.make_room_for(more)
    }

    /// Adds all of `retired`, for which `grace` has passed: a later period than those of earlier
    /// calls. The caller has checked that there is [room](Self::make_room_for).
    pub(super) fn add(&mut self, retired: Retired<T>, grace: Grace) {
        self.queue.add(retired);
        self.grace = Some(grace);
    }

    /// Gives a part of a segment to the system, or else a wheel; false if none is left.
    #[inline]
    pub(super) fn give_part(&mut self) -> bool {
        !self.is_empty() && self.give_some()
    }

    fn give_some(&mut self) -> bool {
        match self.parting.take().or_else(|| self.reclaim_segment()) {
            Some(memory) => self.parting = memory.give_part(),
            None => drop(self.reclaim_wheel()),
        }
        true
    }

    /// Gives a whole segment and a wheel to the system.
    pub(super) fn give_whole(&mut self) {
        drop(self.parting.take().or_else(|| self.reclaim_segment()));
        drop(self.reclaim_wheel());
    }

    fn reclaim_segment(&mut self) -> Option<NodeMemory<T>> {
        let segment: Box<Segment<T>> = self.queue.pop_segment()?.reclaim(self.grace.as_ref()?).ok()?;
        Some(segment.into_memory())
    }

    fn reclaim_wheel(&mut self) -> Option<Box<Wheel>> {
        self.queue.pop_wheel()?.reclaim(self.grace.as_ref()?).ok()
    }
}

impl<T> Drop for Leaving<T> {
    fn drop(&mut self) {
        while !self.is_empty() {
            self.give_whole();
        }
    }
}
