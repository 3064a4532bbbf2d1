//! Moving a timer to another node.

use super::Scheduler;
use crate::shard::key::Key;
use crate::shard::memory::slab::{Slab, Stay};
use crate::shard::node::state::Status;
use crate::shard::node::{Extended, Node, Vacant};
use crate::shard::shared::lanes::{Lane, Local};
use crate::tick::Tick;

impl<T> Scheduler<T> {
    /// As [`reschedule`](Self::reschedule), if the timer can stay in its node. Otherwise says why
    /// it cannot, and changes nothing.
    #[inline]
    pub(crate) fn extend(&self, key: Key, deadline: Tick) -> Extended {
        let extend = |node: &Node<T>, era| node.extend(era, key.generation, deadline);
        let Some((mut entered, extended)) = self.at_node(key, extend) else { return Extended::Gone };
        if extended == Extended::Done {
            entered.parts().0.tally.extended.add(1);
        }
        extended
    }

    /// As [`reschedule`](Self::reschedule). Calls `look` with the payload if the timer moves, and
    /// `then` with the result before it wakes the advancer, which may call user code.
    #[inline]
    pub(crate) fn reschedule_and<R>(
        &self,
        key: Key,
        deadline: Tick,
        look: impl FnOnce(&T),
        then: impl FnOnce(Option<Key>) -> R,
    ) -> R {
        match self.extend(key, deadline) {
            Extended::Gone => then(None),
            Extended::Done => then(Some(key)),
            Extended::NeedsMove => self.relocate(key, deadline, look, then),
        }
    }

    /// Moves a timer to another node, for a deadline that its present node cannot serve. Calls
    /// `look` with the payload on the way, while it is pinned, and `then` with the timer's key from
    /// then on. `None` means that the timer has ended, or that its payload is out. If there is no
    /// memory, the timer keeps its deadline and its key.
    ///
    /// A recurring timer is always moved, because its word does not prove its `base`.
    ///
    /// The producer acquires the new node before it takes the payload out of the old one, so
    /// nothing can fail in between, and the timer counts as pending throughout.
    ///
    /// Against the shard's end: the old node is busy until the new one holds the timer, so the
    /// final walk does not miss it. A move that sees `closed` puts the payload back for that walk.
    #[cold]
    pub(crate) fn relocate<R>(
        &self,
        key: Key,
        deadline: Tick,
        look: impl FnOnce(&T),
        then: impl FnOnce(Option<Key>) -> R,
    ) -> R {
        let Some(mut entered) = self.enter(key) else { return then(None) };
        let (lane, local) = entered.parts();
        let moved = self.move_timer((lane, local), key, deadline, look);
        let result = then(moved.map(|(moved, _)| moved));
        if moved.is_some_and(|(_, must_wake)| must_wake) {
            self.wake_advancer(entered);
        }
        result
    }

    fn move_timer(
        &self,
        (lane, local): (&Lane, &mut Local),
        key: Key,
        deadline: Tick,
        look: impl FnOnce(&T),
    ) -> Option<(Key, bool)> {
        // Protects: the old node. Always pinned: the move may use up the free nodes of the lane,
        // which would keep the segment otherwise.
        let stay = Stay::pinned(key.node(), &local.participant);
        let (node, era) = self.shared.slab.get(&stay)?;
        let Ok(acquired) = self.shared.slab.take(&mut local.nodes.free, &local.participant, deadline) else {
            let status = node.status_of(era, key.generation);
            return (status == Some(Status::Pending)).then_some((key, false));
        };
        let taken = node.take(era, key.generation).and_then(|taken| self.keep_unless_closed(taken));
        let Some((vacant, payload)) = taken else {
            Slab::put_back(&mut local.nodes.free, acquired);
            self.return_spare_nodes(lane, local);
            return None;
        };
        acquired.vacant().node().set_tag(node.tag());
        look(&payload);
        let (moved, must_wake) = self.arm_and_insert(lane, acquired, deadline, || payload);
        self.shared.counting.note_change();
        lane.tally.moved.add(1);
        let _ = vacant.cancelled();
        drop(stay);
        self.return_spare_nodes(lane, local);
        let wakes_for_dead = self.note_dead(lane, local);
        Some((moved, must_wake || wakes_for_dead))
    }

    /// Puts the payload back if the shard is closed: it is for the final walk.
    fn keep_unless_closed<'n>(&self, (vacant, payload): (Vacant<'n, T>, T)) -> Option<(Vacant<'n, T>, T)> {
        if self.shared.clock.is_closed() {
            vacant.restore(payload);
            return None;
        }
        Some((vacant, payload))
    }
}
