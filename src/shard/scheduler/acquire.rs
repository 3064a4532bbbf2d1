//! Where a producer puts a timer: into the node that its lane holds, or into a free node.

use crate::error::ScheduleErrorKind;
use crate::shard::key::Key;
use crate::shard::memory::epochs::Participant;
use crate::shard::memory::slab::{OwnedNode, Slab};
use crate::shard::node::join;
use crate::shard::scheduler::Scheduler;
use crate::shard::shared::lanes::{Lane, LaneNodes};
use crate::tick::Tick;

/// A node to put a timer into, by its origin.
pub(super) enum Acquired<'g, T> {
    /// Free, linked nowhere, and prepared for the deadline.
    Free(OwnedNode<'g, T>),
    /// A cancelled node where it is linked, which the lane has held since its timer was cancelled.
    /// With the tick that the node is linked for.
    Held(OwnedNode<'g, T>, Tick),
}

impl<T> Scheduler<T> {
    /// Returns the held node to reuse where it is linked, or else a free node.
    #[inline(always)]
    pub(super) fn acquire(
        &self,
        who: &Participant,
        nodes: &mut LaneNodes,
        deadline: Tick,
    ) -> Result<Acquired<'_, T>, ScheduleErrorKind> {
        let slab = &self.shared.slab;
        if !nodes.held.is_none() {
            let (owned, linked_for) = (slab.regain(&mut nodes.held), nodes.held.linked_for());
            if linked_for <= deadline && owned.vacant().can_be_armed(deadline) {
                return Ok(Acquired::Held(owned, linked_for));
            }
            owned.into_vacant().cancelled();
            if self.shared.may_have_come(linked_for) {
                self.shared.note_aside_used();
            }
        }
        slab.take(&mut nodes.free, who, deadline).map(Acquired::Free)
    }

    /// Arms the node and makes it reachable. Returns the timer's key, and whether the caller must
    /// wake the advancer.
    ///
    /// `inline(always)` here and on [`acquire`](Self::acquire): where the compiler did not inline
    /// them, the `Acquired` value went through memory, and a schedule with its cancel took 21 ns
    /// instead of 12 ns.
    #[inline(always)]
    pub(super) fn arm_and_insert(
        &self,
        lane: &Lane,
        acquired: Acquired<'_, T>,
        deadline: Tick,
        payload: T,
    ) -> (Key, bool) {
        let shared = &*self.shared;
        let (id, era, version, must_wake) = match acquired {
            Acquired::Free(owned) => {
                let (id, era) = (owned.id(), owned.era());
                let (version, node) = owned.into_vacant().arm_free(payload);
                let must_wake = shared.insert(id, node, deadline);
                (id, era, version, must_wake)
            }
            Acquired::Held(owned, linked_for) => {
                lane.tally.reused.add(1);
                let (id, era) = (owned.id(), owned.era());
                let version = owned.into_vacant().arm_held(deadline, payload);
                (id, era, version, shared.note_in_place(linked_for, deadline))
            }
        };
        (Key::new(shared.id, id, join(era, version)), must_wake)
    }
}

impl<T> Acquired<'_, T> {
    pub(super) fn give_back(self, nodes: &mut LaneNodes) {
        match self {
            Self::Free(owned) => Slab::<T>::put_back(&mut nodes.free, owned),
            Self::Held(owned, _) => nodes.held.hold_again(owned),
        }
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
