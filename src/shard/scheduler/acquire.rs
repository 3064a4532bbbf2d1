//! Where a producer puts a timer: into the node that its lane holds, or into a free node.

use crate::error::ScheduleErrorKind;
use crate::shard::key::Key;
use crate::shard::memory::epochs::Participant;
use crate::shard::memory::slab::{OwnedNode, Slab};
use crate::shard::node::join;
use crate::shard::scheduler::Scheduler;
use crate::shard::shared::lanes::{Lane, LaneNodes};
use crate::tick::Tick;

impl<T> Scheduler<T> {
    /// Returns the held node to reuse where it is linked, or else a free node.
    #[inline(always)]
    pub(super) fn acquire(
        &self,
        who: &Participant,
        nodes: &mut LaneNodes,
        deadline: Tick,
    ) -> Result<OwnedNode<'_, T>, ScheduleErrorKind> {
        let slab = &self.shared.slab;
        if !nodes.held.is_none() {
            let (owned, linked_for) = (slab.regain(&mut nodes.held), nodes.held.linked_for());
            if linked_for <= deadline && owned.vacant().can_be_armed(deadline) {
                return Ok(owned);
            }
            owned.into_vacant().cancelled();
            if self.shared.may_have_come(linked_for) {
                self.shared.note_aside_used();
            }
        }
        slab.take(&mut nodes.free, who, deadline)
    }

    /// Arms the node and makes it reachable. Returns the timer's key, and whether the caller must
    /// wake the advancer.
    ///
    /// `inline(always)` here and on [`acquire`](Self::acquire): where the compiler did not inline
    /// them, the node went through memory, and a schedule with its cancel took 21 ns
    /// instead of 12 ns.
    #[inline(always)]
    pub(super) fn arm_and_insert(
        &self,
        lane: &Lane,
        owned: OwnedNode<'_, T>,
        deadline: Tick,
        make: impl FnOnce() -> T,
    ) -> (Key, bool) {
        let shared = &*self.shared;
        let (id, era) = (owned.id(), owned.era());
        let (version, must_wake) = match owned.linked_for() {
            None => {
                let (version, node) = owned.into_vacant().arm_free(make());
                (version, shared.insert(id, node, deadline))
            }
            Some(linked_for) => {
                lane.tally.reused.add(1);
                let version = owned.into_vacant().arm_held(deadline, make());
                (version, shared.note_in_place(linked_for, deadline))
            }
        };
        (Key::new(shared.id, id, join(era, version)), must_wake)
    }
}

impl LaneNodes {
    /// Takes back, unused, the node that was acquired last.
    pub(super) fn take_back<T>(&mut self, owned: OwnedNode<'_, T>) {
        match owned.linked_for() {
            None => Slab::put_back(&mut self.free, owned),
            Some(_) => self.held.hold_again(owned),
        }
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
