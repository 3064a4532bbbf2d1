//! Where a producer puts a timer: into the node that its lane holds, into a cancelled node that a
//! hint names, or into a free node.

use crate::error::ScheduleErrorKind;
use crate::shard::key::Key;
use crate::shard::memory::slab::Slab;
use crate::shard::node::payload::IntoPayload;
use crate::shard::node::state::Word;
use crate::shard::node::{NIL, Node, NodeId, join};
use crate::shard::scheduler::Scheduler;
use crate::shard::shared::lanes::{Lane, Local};
use crate::tick::Tick;

/// How many hinted nodes a schedule tries to claim; each try may be a cache miss.
const HINTS_TRIED: usize = 4;

/// A node to put a timer into, by its origin.
pub(super) enum Acquired<'g, T> {
    /// Free, linked nowhere, and prepared for the deadline.
    Free(NodeId, &'g Node<T>, u32, Word),
    /// A cancelled node, claimed where it is linked.
    Claimed(NodeId, &'g Node<T>, u32, Word),
    /// As `Claimed`; the lane has held the node since its timer was cancelled.
    Held(NodeId, &'g Node<T>, u32, Word),
}

impl<T> Scheduler<T> {
    /// Returns a cancelled node to reuse where it is linked, or else a free node. The caller owns
    /// the node, so its segment stays.
    #[inline(always)]
    pub(super) fn acquire(
        &self,
        local: &mut Local,
        deadline: Tick,
    ) -> Result<Acquired<'_, T>, ScheduleErrorKind> {
        if !local.held.is_none() {
            let (id, word) = (local.held.node, local.held.word);
            // SAFETY: the lane's owner holds the node, and is the caller.
            let (node, era) = unsafe { self.shared.slab.owned(id) };
            local.held.node = NIL;
            if local.held.linked_for <= deadline && node.can_be_armed(word, deadline) {
                return Ok(Acquired::Held(id, node, era, word));
            }
            node.finish_cancel(word);
            local.hints.push(id, local.held.linked_for);
        }
        if let Some(id) = local.hints.pop(deadline)
            && let Some(acquire) = self.claim(local, id, deadline)
        {
            return Ok(acquire);
        }
        let slab = &self.shared.slab;
        loop {
            let id = slab.take(&mut local.free, &local.participant)?;
            // SAFETY: the caller has just taken the node.
            let (node, era) = unsafe { slab.owned(id) };
            if let Some(word) = node.prepare(deadline) {
                return Ok(Acquired::Free(id, node, era, word));
            }
            slab.wear_out(id);
        }
    }

    /// Claims the node that `hint` names, or else a node that a further hint names.
    #[inline]
    fn claim(&self, local: &mut Local, hint: NodeId, deadline: Tick) -> Option<Acquired<'_, T>> {
        let slab = &self.shared.slab;
        self.shared.counting.note_look();
        let mut id = hint;
        for tried in 1..=HINTS_TRIED {
            // Protects: the hinted node, whose segment the advancer may give back meanwhile.
            let stay = slab.stay(id, &local.free, &local.participant);
            let claimed = slab.get(id, &stay).and_then(|(node, _)| node.claim(deadline));
            if let Some(claimed) = claimed {
                // SAFETY: the caller has just claimed the node.
                let (node, era) = unsafe { slab.owned(id) };
                return Some(Acquired::Claimed(id, node, era, claimed));
            }
            if tried < HINTS_TRIED {
                id = local.hints.pop(deadline)?;
            }
        }
        None
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
        local: &Local,
        acquire: Acquired<'_, T>,
        deadline: Tick,
        seed: impl IntoPayload<T>,
    ) -> (Key, bool) {
        let shared = &*self.shared;
        let (id, era, version, must_wake) = match acquire {
            Acquired::Free(id, node, era, word) => {
                let version = node.arm_free(word, seed);
                let must_wake = shared.insert(id, node, deadline, &local.participant);
                (id, era, version, must_wake)
            }
            Acquired::Claimed(id, node, era, claimed) => {
                lane.tally.reused.add(1);
                let version = node.arm_claimed(claimed, deadline, seed);
                (id, era, version, shared.must_wake(deadline))
            }
            Acquired::Held(id, node, era, word) => {
                lane.tally.reused.add(1);
                let version = node.arm_held(word, deadline, seed);
                (id, era, version, shared.must_wake(deadline))
            }
        };
        (Key::new(shared.id, id, join(era, version)), must_wake)
    }
}

impl<T> Acquired<'_, T> {
    pub(super) fn give_back(self, local: &mut Local) {
        match self {
            Self::Free(id, ..) => Slab::<T>::put_back(&mut local.free, id),
            Self::Claimed(_, node, _, claimed) => node.unclaim(claimed),
            Self::Held(id, ..) => local.held.node = id,
        }
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
