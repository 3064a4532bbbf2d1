//! Moving the clock: from one occupied bucket to the next, however far that is.
//!
//! A step has three parts. `flushed` moves to the tick before the next occupied bucket. That tick's
//! level 0 bucket is flushed into `due`. Then the overflow buckets that expire at that tick are
//! cascaded: timers that are due go to `due`, the others to finer private wheels. No node is
//! inserted into a list while the list is walked: lists are detached first.
//!
//! The advancer looks at the shared wheels when it seals a window of ticks, and again when it
//! passes the bucket that the look found. No other bucket that expires in the window comes to hold
//! anything meanwhile (see [`protocol`](crate::shard::shared::protocol)).

use crate::shard::advancer::Advancer;
use crate::shard::advancer::chains::{Chains, SHARED};
use crate::shard::node::NodeId;
use crate::shard::shared::consumer::Consumer;
use crate::shard::wheel::STRIPES;
use crate::shard::wheel::geometry::Slot;
use crate::tick::Tick;

impl<T> Advancer<T> {
    /// Steps until something that is due is in hand, or the clock is reached.
    #[inline]
    pub(super) fn ensure_due(&mut self) {
        if !self.holds_due() {
            self.step();
        }
    }

    /// Moves `flushed` to the tick before the next occupied bucket and takes that bucket's timers
    /// in hand. False if no bucket up to the clock holds anything.
    #[inline(always)]
    pub(super) fn step(&mut self) -> bool {
        if self.flushed >= self.now {
            return false;
        }
        if self.is_bucket_due() {
            return self.step_to_bucket();
        }
        self.set_flushed(self.now);
        false
    }

    #[inline(never)]
    fn step_to_bucket(&mut self) -> bool {
        while self.flushed < self.now {
            let geometry = self.shared.geometry;
            let private = self.private.next_occupied_within(geometry, self.flushed + 1, self.now);
            let shared = self.next_in_shared.filter(|&tick| tick <= self.now);
            let Some(tick) = private.into_iter().chain(shared).min() else {
                self.set_flushed(self.now);
                return false;
            };
            self.set_flushed(tick - 1);
            self.take_bucket(geometry.slot(0, tick), None);
            if tick == self.now {
                // Before the cascade: a dead node may be reused meanwhile for this very tick, whose
                // bucket then holds it.
                self.private.find_next(geometry, tick.checked_add(1));
            }
            if geometry.starts_overflow_bucket(tick) {
                self.cascade(tick);
            }
            if self.next_in_shared == Some(tick) {
                self.look_at_shared_wheels(tick);
            }
            if !self.hands.due.is_empty() {
                return true;
            }
        }
        false
    }

    /// Whether a bucket that expires at or before the clock may hold a node.
    #[inline]
    pub(super) fn is_bucket_due(&self) -> bool {
        self.next_in_shared.is_some_and(|next| next <= self.now) || self.private.may_hold_before(self.now)
    }

    /// Whether an advance that has moved the clock to this tick has nothing more to do.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        let holds_none = !self.is_bucket_due() && !self.holds_due() && !self.has_newcomers();
        holds_none && !self.is_upkeep_due()
    }

    /// Whether timers that are due are in hand.
    #[inline]
    pub(super) fn holds_due(&self) -> bool {
        !(self.hands.due.is_empty() && self.hands.overdue.is_empty())
    }

    /// Closes the window of the clock to producers, and looks at its buckets.
    #[inline]
    pub(super) fn seal(&mut self) {
        self.sealed = self.shared.geometry.end_of_window(self.now);
        self.shared.clock.seal(self.sealed);
        self.look_at_shared_wheels(self.flushed);
    }

    /// Finds the first shared bucket that expires after `tick` and is sealed.
    #[inline]
    fn look_at_shared_wheels(&mut self, tick: Tick) {
        let from = tick.checked_add(1).filter(|&from| from <= self.sealed);
        self.next_in_shared = from.and_then(|from| self.shared.next_occupied(from, self.sealed));
    }

    #[inline]
    pub(super) fn set_flushed(&mut self, tick: Tick) {
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
            let mut moving = Chains::default();
            self.take_bucket(slot, Some(&mut moving));
            self.place_chains(&mut moving, tick, u64::MAX);
        }
    }

    /// Places up to `budget` nodes of an overflow bucket, and returns how many. Timers due at or
    /// before `due` go to the lists that are being yielded; these do not count.
    pub(super) fn place_chains(&mut self, chains: &mut Chains, due: Tick, budget: u64) -> u64 {
        let mut placed = 0;
        while placed < budget {
            let (moved, other) = self.place_pending(chains, due, budget - placed);
            placed += moved;
            let Some(id) = other else { break };
            self.relink(id);
            placed += 1;
        }
        self.shared.tally.cascaded.add(placed);
        placed
    }

    /// As [`place_chains`](Self::place_chains), but stops at a node that does not simply hold a
    /// pending timer, and returns that node as well.
    fn place_pending(&mut self, chains: &mut Chains, due: Tick, budget: u64) -> (u64, Option<NodeId>) {
        let Self { shared, private, flushed, hands, .. } = self;
        let (geometry, from) = (shared.geometry, *flushed + 1);
        let (mut placed, mut turn) = (0, 0);
        while placed < budget
            && let Some((hand, next)) = chains.pop_from(turn, shared)
        {
            turn = next;
            let id = hand.id();
            match hand.pending() {
                Some((deadline, _)) if deadline <= due => hands.due.push(id, hand.next()),
                Some((deadline, word)) if hand.displace(word) => {
                    private.splice(geometry, geometry.place_private(from, deadline), id, hand.next());
                    placed += 1;
                }
                _ => return (placed, Some(id)),
            }
        }
        (placed, None)
    }

    /// Takes in hand all that a bucket holds, shared lists and private lists: to `due`, or to the
    /// chains given.
    #[inline]
    fn take_bucket(&mut self, slot: Slot, chains: Option<&mut Chains>) {
        if self.sweep.has(slot) {
            self.sweep_detached(u64::MAX);
        }
        let Self { shared, private, hands, .. } = self;
        let (geometry, level) = (shared.geometry, slot.level);
        let chains = chains.unwrap_or(&mut hands.due);
        if self.next_in_shared == Some(geometry.expiration(slot)) {
            take_shared(chains, slot, shared);
        }
        let add = |stripe, first| chains.add_list(stripe, first, shared);
        private.take(level, geometry.private_index(slot), add);
    }
}

/// Adds the shared lists of a bucket to `chains`.
fn take_shared(chains: &mut Chains, slot: Slot, shared: &Consumer<impl Sized>) {
    let (geometry, index) = (shared.geometry, shared.geometry.index(slot));
    let Some(wheel) = shared.wheel(slot.level).filter(|wheel| wheel.is_occupied(index)) else { return };
    // Timers that are scheduled one after the other for an overflow bucket lie side by side in
    // memory, the youngest at the head of its list. A walk from the last list to the first goes
    // from the end of that memory to its beginning, which a processor predicts; and the oldest
    // timer becomes the first of its new list.
    let place = |stripe| if slot.level > 0 { STRIPES - 1 - stripe } else { stripe };
    let add = |stripe, first| chains.add_list(SHARED + place(stripe), first, shared);
    wheel.flush(index, geometry.round(slot), add);
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
