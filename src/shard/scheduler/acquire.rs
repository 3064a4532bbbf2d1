//! Where a producer puts a timer: into the node that its lane cancelled last, or into a free node.

use crate::error::ScheduleErrorKind;
use crate::shard::key::Key;
use crate::shard::memory::epochs::Participant;
use crate::shard::memory::slab::OwnedNode;
use crate::shard::node::join;
use crate::shard::scheduler::Scheduler;
use crate::shard::shared::lanes::{Lane, LaneNodes};
use crate::tick::Tick;

impl<T> Scheduler<T> {
    /// Returns the node that the lane cancelled last, to reuse it where it is linked, or else a free
    /// node.
    #[inline(always)]
    pub(super) fn acquire(
        &self,
        who: &Participant,
        nodes: &mut LaneNodes,
        deadline: Tick,
    ) -> Result<OwnedNode<'_, T>, ScheduleErrorKind> {
        let slab = &self.shared.slab;
        let dead = nodes.last_cancelled.take();
        if let Some(owned) = dead.and_then(|dead| slab.reuse(&dead, &nodes.free, who, deadline)) {
            return Ok(owned);
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
        let (version, must_wake) = if owned.is_linked() {
            lane.tally.reused.add(1);
            let version = owned.into_vacant().arm_in_place(deadline, make());
            (version, shared.must_wake(deadline))
        } else {
            let (version, node) = owned.into_vacant().arm_free(make());
            (version, shared.insert(id, node, deadline))
        };
        (Key::new(shared.id, id, join(era, version)), must_wake)
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
