//! Moving the clock: from one occupied bucket to the next, however far that is.
//!
//! A step: `flushed` moves to the tick before the next occupied bucket; that tick's level 0 bucket is flushed
//! into `due`; then the overflow buckets that expire at that tick are cascaded, what is due into `due`, the
//! rest to finer wheels, those of the advancer's own. Nothing is inserted into a list while it is walked:
//! lists are detached first.
//!
//! The shared wheels are looked at once for each advance, and again when the bucket that the look found is
//! passed: no other bucket that expires by the clock comes to hold anything meanwhile (see
//! [`shared`](super::shared)).

use super::advancer::Advancer;
use super::chains::Chains;
use super::level::Slot;
use super::node::{Met, NodeId};
use crate::Tick;

impl<T> Advancer<T> {
    /// Moves on until something is in hand, or the clock is reached.
    pub(super) fn look_ahead(&mut self) {
        if self.overdue.is_empty() && self.due.is_empty() {
            self.step();
        }
    }

    /// Moves `flushed` on to before the next occupied bucket and takes that bucket's timers in hand; false
    /// when there is none up to the clock.
    pub(super) fn step(&mut self) -> bool {
        while self.flushed < self.now {
            let own = self.own.next_occupied(self.shared.geometry, self.flushed + 1);
            let next = own.into_iter().chain(self.next_in_shared).min();
            let Some(tick) = next.filter(|&tick| tick <= self.now) else {
                self.set_flushed(self.now);
                return false;
            };
            self.set_flushed(tick - 1);
            self.due = self.take_bucket(self.shared.geometry.slot(0, tick));
            self.cascade(tick);
            if self.next_in_shared == Some(tick) {
                self.look_at_shared_wheels(tick);
            }
            if !self.due.is_empty() {
                return true;
            }
        }
        false
    }

    /// Finds the first bucket of the shared wheels that expires after `tick` and by the clock.
    pub(super) fn look_at_shared_wheels(&mut self, tick: Tick) {
        let from = tick.checked_add(1).filter(|&from| from <= self.now);
        self.next_in_shared = from.and_then(|from| self.shared.next_occupied(from, self.now));
    }

    fn set_flushed(&mut self, tick: Tick) {
        if self.flushed != tick {
            self.flushed = tick;
            self.shared.clock.publish_flushed(tick);
        }
    }

    /// Empties the overflow buckets that expire at `tick`, where `flushed + 1 == tick`.
    fn cascade(&mut self, tick: Tick) {
        let geometry = self.shared.geometry;
        for level in 1..geometry.levels() {
            let slot = geometry.slot(level, tick);
            if geometry.expiration(slot) != tick {
                break;
            }
            let mut chains = self.take_bucket(slot);
            while let Some(id) = chains.pop(&self.shared.slab) {
                self.recast(id, tick);
            }
        }
    }

    fn recast(&mut self, id: NodeId, tick: Tick) {
        match self.node(id).0.meet() {
            Met::Pending(deadline, _) if deadline <= tick => self.due.push(id, &self.shared.slab),
            _ => {
                self.shared.tally.cascaded.add(1);
                self.put_back(id);
            }
        }
    }

    /// All that a bucket holds: the producers' half, the advancer's, and what the sweep has detached.
    #[inline]
    fn take_bucket(&mut self, slot: Slot) -> Chains {
        let mut chains = Chains::new();
        let geometry = self.shared.geometry;
        if self.next_in_shared == Some(geometry.expiration(slot)) {
            self.take_shared(slot, &mut chains);
        }
        if let Some(lists) = self.own.take(slot.level, geometry.own_index(slot)) {
            chains.add(lists, &self.shared.slab);
        }
        if let Some(detached) = self.sweep.take(geometry, slot) {
            chains.merge(&detached, &self.shared.slab);
        }
        if slot.level > 0 && !chains.is_empty() {
            self.idle.note_use(slot.level, self.flushed);
        }
        chains
    }

    fn take_shared(&self, slot: Slot, chains: &mut Chains) {
        let geometry = self.shared.geometry;
        let index = geometry.index(slot);
        if let Some(wheel) = self.wheel(slot.level).filter(|wheel| wheel.is_occupied(index)) {
            chains.add(wheel.flush(index, geometry.round(slot)), &self.shared.slab);
        }
    }
}
