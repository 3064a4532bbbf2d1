//! Giving back overflow wheels that have been idle.
//!
//! The first producer that needs an overflow wheel creates it. The finest one stays from then on.
//! The advancer gives a coarser one back when nothing has been in it for a while. A producer may be
//! about to push to it at that moment. The advancer
//!
//! 1. finds the wheel empty, closes it and unlinks it; a later producer creates a new one;
//! 2. seals, which passes a SeqCst fence;
//! 3. looks at the wheel's bits, shuts each list whose bit is set, and takes what it holds;
//! 4. passes the wheel to the recycler, which frees it after a grace period.
//!
//! A producer sets its list's bit, passes its fence, and checks whether the wheel is closed (see
//! [`protocol`](crate::shard::shared::protocol)).
//!
//! - *The producer's fence comes first.* Step 3 sees the bit. Either the push comes before the list
//!   is shut, and the advancer takes the node; or it comes after, and fails.
//! - *The advancer's fence comes first.* The producer sees that the wheel is closed, and does not
//!   push.
//!
//! A producer that does not push puts the node on the inbox. So after step 3 the wheel is empty for
//! good. The grace period protects the producers that still look at its bits and heads: every
//! producer is pinned while it uses a wheel that may be given back.
//!
//! The finest overflow wheel stays because that pin is a quarter of the cost of scheduling a timer,
//! and nearly every timer that is due beyond level 0 is due within one revolution of that wheel.
//!
//! A private wheel is dropped on the same conditions, at any overflow level; no other thread reads
//! it.

use crate::shard::advancer::Advancer;
use crate::shard::memory::slot::Unlinked;
use crate::shard::node::NodeId;
use crate::shard::shared::table::FIRST_TO_GO;
use crate::shard::wheel::Wheel;
use crate::shard::wheel::private::PrivateWheel;
use crate::tick::Tick;

/// The least time between two looks, in ticks.
const LOOK_EVERY: Tick = if cfg!(shardwheel_loom) || crate::config::SMALL { 1 } else { 4096 };

/// How many looks in turn must find a wheel idle before it is given back. Creating it again costs
/// as much as clearing its memory; that must not happen every few advances of a clock that takes
/// large jumps.
const LOOKS: u32 = if cfg!(shardwheel_loom) || crate::config::SMALL { 1 } else { 8 };

/// When each level was last in use.
pub(super) struct IdleWatch {
    next_look: Tick,
    levels: Box<[Idle]>,
}

#[derive(Clone)]
struct Idle {
    since: Tick,
    looks: u32,
}

/// A wheel that has been closed and unlinked, and is not yet drained.
pub(super) struct Closed {
    level: usize,
    wheel: Unlinked<Wheel>,
}

impl IdleWatch {
    pub(super) fn new(levels: usize, start: Tick) -> Self {
        let next_look = start.saturating_add(LOOK_EVERY);
        Self { next_look, levels: vec![Idle { since: start, looks: 0 }; levels].into() }
    }

    /// Notes that a wheel of that level held something.
    #[inline]
    pub(super) fn note_use(&mut self, level: usize, tick: Tick) {
        self.levels[level] = Idle { since: tick, looks: 0 };
    }

    /// Notes that a wheel was found empty; true if it has been for long enough.
    fn note_idle(&mut self, level: usize, now: Tick, long: Tick) -> bool {
        let idle = &mut self.levels[level];
        idle.looks = idle.looks.saturating_add(1);
        idle.looks >= LOOKS && now.saturating_sub(idle.since) >= long
    }
}

impl<T> Advancer<T> {
    /// From time to time, closes and unlinks overflow wheels that have been idle for the time that
    /// two of their buckets span. The caller passes a fence and then calls
    /// [`drain_wheels`](Self::drain_wheels).
    #[inline]
    pub(super) fn close_idle_wheels(&mut self) -> Vec<Closed> {
        if self.is_look_for_idle_wheels_due() { self.look_for_idle_wheels() } else { Vec::new() }
    }

    #[inline]
    pub(super) fn is_look_for_idle_wheels_due(&self) -> bool {
        self.now >= self.idle.next_look
    }

    #[cold]
    fn look_for_idle_wheels(&mut self) -> Vec<Closed> {
        self.idle.next_look = self.now.saturating_add(LOOK_EVERY);
        let mut closed = Vec::new();
        for level in 1..self.shared.geometry.levels() {
            let further = self.close_if_idle(level, &mut closed);
            closed.extend(further);
        }
        closed
    }

    /// Closes and unlinks the level's wheel if it has been idle for long enough. It first reserves
    /// room for the wheel in `closed` and in the recycler; without room, the wheel stays.
    fn close_if_idle(&mut self, level: usize, closed: &mut Vec<Closed>) -> Option<Closed> {
        let own_is_empty = self.private.level(level).is_none_or(PrivateWheel::is_empty);
        if !own_is_empty || self.wheel(level).is_some_and(|wheel| self.may_hold_any(level, wheel)) {
            self.idle.note_use(level, self.now);
            return None;
        }
        let long = self.shared.geometry.span(level).saturating_mul(2);
        if !self.idle.note_idle(level, self.now, long) {
            return None;
        }
        self.private.drop_empty(level);
        let has_room = closed.try_reserve(1).is_ok() && self.recycler.has_room(closed.len() + 1);
        if level < FIRST_TO_GO || !has_room {
            return None;
        }
        self.wheel(level)?.close();
        self.shared.unlink_wheel(level).map(|wheel| Closed { level, wheel })
    }

    /// Whether a bucket of the wheel that is yet to expire may hold a node. The bit of a bucket that has
    /// expired stays set if a producer came too late for it.
    fn may_hold_any(&self, level: usize, wheel: &Wheel) -> bool {
        let geometry = self.shared.geometry;
        let next = self.flushed.checked_add(1).and_then(|from| geometry.first_from(level, from));
        !wheel.is_empty() && next.is_none_or(|slot| wheel.may_hold_from(slot.number))
    }

    /// Takes what was pushed to the closed wheels at the last moment; after the fence. `admit` gets
    /// each list.
    pub(super) fn drain_wheels(&mut self, closed: Vec<Closed>, mut admit: impl FnMut(&mut Self, NodeId)) {
        let geometry = self.shared.geometry;
        for Closed { level, wheel } in closed {
            let round = geometry.round(geometry.slot(level, self.flushed));
            wheel.get().drain_closed(round, |first| admit(self, first));
            self.recycler.retire_wheel(wheel);
        }
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
