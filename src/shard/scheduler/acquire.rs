//! Where a producer puts a timer: the node that it holds, another that it has cancelled a timer of, or a free one.

use crate::error::ScheduleErrorKind;
use crate::shard::key::Key;
use crate::shard::memory::slab::Slab;
use crate::shard::node::payload::IntoPayload;
use crate::shard::node::state::Word;
use crate::shard::node::{NIL, Node, NodeId, join};
use crate::shard::scheduler::Scheduler;
use crate::shard::shared::lanes::{Lane, Local};
use crate::tick::Tick;

/// How many nodes that hints name a schedule tries to claim; each try may be a cache miss.
const HINTS_TRIED: usize = 4;

/// A node to put a timer into, and how it came to hand.
pub(super) enum Acquired<'g, T> {
    /// Free, linked nowhere, and ready for the deadline.
    Free(NodeId, &'g Node<T>, u32, Word),
    /// Claimed where it stands in a list.
    Claimed(NodeId, &'g Node<T>, u32, Word),
    /// Likewise, and held since its timer was cancelled.
    Held(NodeId, &'g Node<T>, u32, Word),
}

impl<T> Scheduler<T> {
    /// A cancelled node to use again where it stands, or else a free one. Either is the caller's, which
    /// keeps its segment.
    #[inline(always)]
    pub(super) fn acquire(
        &self,
        local: &mut Local,
        deadline: Tick,
    ) -> Result<Acquired<'_, T>, ScheduleErrorKind> {
        if !local.held.is_none() {
            let (id, word) = (local.held.node, local.held.word);
            // SAFETY: the lane's owner holds the node.
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
            // SAFETY: the node was taken just now.
            let (node, era) = unsafe { slab.owned(id) };
            if let Some(word) = node.prepare(deadline) {
                return Ok(Acquired::Free(id, node, era, word));
            }
            slab.wear_out(id);
        }
    }

    /// The node that the hint names, or another that a hint names, if it can be claimed.
    #[inline]
    fn claim(&self, local: &mut Local, hint: NodeId, deadline: Tick) -> Option<Acquired<'_, T>> {
        let slab = &self.shared.slab;
        self.shared.counting.note_look();
        let mut id = hint;
        for tried in 1..=HINTS_TRIED {
            // Protects: a hint's node, whose segment may be given back meanwhile.
            let stay = slab.stay(id, &local.free, &local.participant);
            let claimed = slab.get(id, &stay).and_then(|(node, _)| node.claim(deadline));
            if let Some(claimed) = claimed {
                // SAFETY: the node was claimed just now.
                let (node, era) = unsafe { slab.owned(id) };
                return Some(Acquired::Claimed(id, node, era, claimed));
            }
            if tried < HINTS_TRIED {
                id = local.hints.pop(deadline)?;
            }
        }
        None
    }

    /// Arms the node and makes it reachable; returns the timer's key, and whether the caller owes the advancer a ring.
    ///
    /// Inlined always, as is [`acquire`](Self::acquire): where a compiler decided otherwise the vacancy went through memory,
    /// and schedule + cancel took 21 ns instead of 12.
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
