//! The machine: how a timer gets into a bucket, how the clock takes it out, and why none is lost.
//!
//! The table at the top of [`shard`](mod@crate::shard) has the words. This page reads from top to
//! bottom: state, schedule, cancel, reschedule, insert; then, by the one advancer, advance, seal,
//! flush, cascade, place, fire, free and sleep. The other files are parts that it names:
//!
//! | part | what the page takes from it |
//! |---|---|
//! | [`node`](crate::shard::node) | the word of a node, which decides: each transition has one winner |
//! | [`wheel`](crate::shard::wheel) | buckets of lists, their bits, and the arithmetic of slots |
//! | [`memory`](crate::shard::memory) | free nodes; what keeps a segment while a thread reads it |
//! | [`shared`](crate::shard::shared) | lanes, the clock's words, counters, the advancer's waker |
//! | [`scheduler`](crate::shard::scheduler), [`advancer`](crate::shard::advancer) | the public face of each half, what else a key is good for, and the background work: early cascade, sweep, upkeep, the end |
//!
//! # State
//!
//! - `now` is the clock: a deadline at or before it is due. (The public `Scheduler::now` is
//!   `flushed`; `Scheduler::reached` is this one.)
//! - `sealed` is the tick up to which no producer pushes to a bucket any more. It is at or after
//!   `now`, by a few ticks at most.
//! - `flushed` is the last tick that the advancer has done with: all its timers have fired or are
//!   *overdue*. While the bucket of tick `t` is being yielded it is `t - 1`.
//! - `wake_up_to` says which deadlines wake a sleeping advancer: those at or before it.
//! - `closed` refuses timers, from the shard's end on.
//!
//! The advancer writes these five. A *bucket* has two halves. Producers push to the lists of its
//! shared half, each of which has a *bit* that says that it may hold a node, and a *round*. The
//! advancer links the nodes that it moves into the private half, in plain memory: so a timer that
//! comes down from an overflow wheel costs no second compare-and-swap of a list. With one half
//! alone, to which the advancer pushed as producers do, each timer took 5 to 11 ns longer to fire.
//!
//! # The producer's steps
//!
//! For a node that it owns and has armed, a producer
//!
//! 1. loads `flushed` (Acquire) and then `sealed`. If the deadline is sealed, it goes on with
//!    step 5. Otherwise it computes the slot, within one revolution after `flushed` at each level;
//! 2. sets the occupancy bit of the list, and raises the wheel's `last` to the bucket's number;
//! 3. passes a SeqCst fence;
//! 4. loads `sealed`. If the slot expires later, it pushes. A push fails if the list has been
//!    flushed past the slot's round;
//! 5. if it did not push, it puts the node on the *inbox*, a stack that each advance empties.
//!
//! The first load of `sealed` is a hint, on which nothing depends. It saves a bit that no flush of
//! this round clears, and a look for nothing.
//!
//! # The advancer's steps
//!
//! 1. It stores `now`, and 0 in `wake_up_to`: it is awake. If `now` is after `sealed`, it *seals*:
//!    it stores in `sealed` the last tick of a short window that contains `now`, and passes a
//!    SeqCst fence. Then it finds the first bucket with a bit that expires after `flushed` and at
//!    or before `sealed`. When it has taken that one, it finds the next.
//! 2. It empties the inbox, and then does the share of background work that is due. (The early
//!    cascade, which is a part of that, may store `flushed`, as in step 4.)
//! 3. For each bucket that expires at or before `now` and had a bit set, it clears the bucket's
//!    bits, then swaps each such list for an empty one of the next round.
//! 4. It stores `flushed` (Release) when it has done with the tick.
//!
//! A timer that is due leaves its node by a swap of the word to `Free`. In a `Timer`, whose timers may
//! recur, there are two: to `Running`, and to `Free` if it does not recur.
//!
//! So it passes one fence for a window, not one at each tick.
//!
//! # No timer is lost
//!
//! Take a producer whose slot expires at `e`, and the first seal at or past `e`. One of the two
//! fences comes first.
//!
//! - *The producer's fence comes first.* The advancer's look at the bits comes after its own fence,
//!   so it finds the bit set, and swaps the list when the clock reaches `e`. If the push came
//!   before the swap, the swap takes the node. If it comes after, the push fails on the round. (If
//!   another producer had set the bit, and the advancer has just cleared it, the swap of that list
//!   is still to come: the same two cases hold.)
//! - *The advancer's fence comes first.* The producer's load of `sealed` returns at least that
//!   tick, and the producer does not push.
//!
//! A producer that does not push puts the node on the inbox. The next advance finds it there,
//! before it flushes anything. So the timer is late only if the clock had reached its deadline:
//! then by one advance at most.
//!
//! **One fence is enough.** By the same argument a look at the bits after the fence holds for the
//! whole window: no further bucket that expires at or before `sealed` comes to hold anything.
//!
//! **Where no look is needed.** Each bucket of a wheel that was ever marked has a number of at most
//! the wheel's `last`, which only rises. So the advancer passes over a wheel whose `last` comes
//! before the first bucket that it would look at. It passes over no other wheel, because `last`
//! says nothing of the bits below it. In step 2 the producer has loaded a value of `last` that is
//! high enough, or has raised it. If its fence comes first, the advancer, which loads `last` after
//! its own fence, finds that value or a later one, which is higher: it looks. It does not matter
//! which producer has raised it. The same holds for the number of levels that
//! have a wheel, which a producer raises before it puts the wheel into the table.
//!
//! **No bit is cleared under a timer of the next round.** A producer that means a bucket's next
//! round has loaded a `flushed` at or past the bucket's expiration. It has thereby acquired the
//! clearing of the bit and the swap of the list. It sees the bit clear, and sets it anew; or set,
//! by a producer that came too late and pushed nothing: that bit stays until the next flush.
//!
//! **No bucket holds two rounds.** What is pushed lies within one revolution after `flushed`, and
//! everything earlier is out.
//!
//! # Sleep
//!
//! To sleep, the advancer
//!
//! 1. stores in `wake_up_to` the tick before the earliest one that it has in hand or in its private
//!    wheels, or the last tick if there is none: then every timer wakes it;
//! 2. passes a SeqCst fence;
//! 3. ends here if no timer is pending: a producer counts its timer before its own fence;
//! 4. looks at the bits and the inbox. If it finds something earlier, it lowers `wake_up_to` and its
//!    answer.
//!
//! A producer loads `wake_up_to` after its own fence. Its fence comes after it has set the bit (for
//! the inbox: after the push; for a node that is reused in place: after the store of the node's
//! word). If the producer's fence comes first, the advancer's look sees the bit. If the advancer's
//! comes first, the producer sees `wake_up_to`, and wakes the advancer (see
//! [`advancer_waker`](super::shared::advancer_waker)) once it has left its lane. The bit comes
//! before the push, so the advancer may wake for nothing. It never wakes too late.
//!
//! # Busy nodes
//!
//! A producer that exchanges a payload makes its node busy for a moment. It then passes its fence,
//! loads `now`, and cancels a timer that is due by then, since the next advance may be far: the
//! caller learns that the timer was over. An advancer that meets a busy node passes
//! a fence of its own, looks again, and only then defers the node. If the producer's fence comes
//! first, the second look finds the timer pending. If the advancer's comes first, the producer sees
//! the clock.
//!
//! # Nodes that are reused in place
//!
//! A producer may put its next timer into the node that it cancelled last, where the node is
//! linked (see [`state`](crate::shard::node::state)). The node is busy until the timer is in, so
//! the advancer may defer it. The producer stores the node's word, passes its fence, and loads
//! `wake_up_to`. The timer is due no earlier than the tick that the node is linked for. So before a
//! sleep, either the advancer sees the bucket in which the node is linked, or it has the node in
//! the inbox, in hand or deferred. There the advancer loads the word after its own fence: it finds
//! the timer, or the producer sees `wake_up_to`.
//!
//! # No memory
//!
//! If there is no memory for an overflow wheel, the node goes to the inbox, from which the advancer
//! places it in its private wheels.
//!
//! # The end
//!
//! The end stores `closed`, passes a SeqCst fence, and looks at all nodes. A producer checks
//! `closed` after its fence. Either it sees `closed` and takes its timer back, or the end sees its
//! node. So no timer that was accepted is lost.

use crate::error::{ScheduleError, ScheduleErrorKind};
use crate::shard::advancer::{Advancer, Fired};
use crate::shard::key::Key;
use crate::shard::memory::slab::{DeadNode, Freed, InHand, OwnedNode, Slab, Stay};
use crate::shard::node::state::{Status, Word};
use crate::shard::node::{Extended, NIL, Node, NodeId, PayloadSlot, Tag, generation_of};
use crate::shard::scheduler::Scheduler;
use crate::shard::shared::Shared;
use crate::shard::shared::lanes::{Lane, Local};
use crate::shard::wheel::STRIPES;
use crate::shard::wheel::geometry::Slot;
use crate::sync::Ordering;
use crate::tick::{Tick, earlier};

// ---- Schedule, cancel, reschedule: any thread.

impl<T> Scheduler<T> {
    /// As [`schedule`](Self::schedule), for a timer with a tag. `make` builds the payload in its
    /// node. It runs no user code, because the lane is in use.
    #[inline]
    pub(crate) fn schedule_by<F>(&self, tag: Tag, due: Tick, make: F) -> Result<Key, ScheduleError<T>>
    where
        F: FnOnce() -> T,
    {
        let shared = &*self.shared;
        let mut entered = shared.lanes.enter();
        let (lane, local) = entered.parts();
        let owned = match self.acquire(local, due) {
            Ok(owned) => owned,
            Err(kind) => return Err(ScheduleError::new(kind, make())),
        };
        owned.vacant().node().set_tag(tag);
        shared.counting.model_change();
        // Before the timer can be seen, so that `len` never misses it.
        let count = lane.tally.scheduled.add(1);
        let (key, must_wake) = self.arm_and_insert(lane, owned, due, make);
        let late = if shared.clock.is_closed() { self.take_back(lane, local, key) } else { None };
        self.return_spare_nodes(lane, local);
        if let Some(payload) = late {
            return Err(ScheduleError::new(ScheduleErrorKind::ShutDown, payload));
        }
        if must_wake || shared.must_wake_for_crowd(count, due) {
            self.wake_advancer(entered);
        }
        Ok(key)
    }

    /// Makes room for one more timer, and returns the node that the lane cancelled last, to reuse
    /// it where it is linked, or else a free node.
    #[inline(always)]
    pub(super) fn acquire(
        &self,
        local: &mut Local,
        due: Tick,
    ) -> Result<OwnedNode<'_, T>, ScheduleErrorKind> {
        let Shared { slab, bound, clock, .. } = &*self.shared;
        if clock.is_closed() {
            return Err(ScheduleErrorKind::ShutDown);
        }
        bound.reserve()?;
        let (free, who) = (&mut local.nodes.free, &local.participant);
        let dead = local.nodes.last_cancelled.take();
        if let Some(owned) = dead.and_then(|dead| slab.reuse(&dead, free, who, due)) {
            return Ok(owned);
        }
        slab.take(free, who, due).inspect_err(|_| bound.release())
    }

    /// Arms the node and makes it reachable. Returns the timer's key, and whether the caller must
    /// wake the advancer.
    ///
    /// `inline(always)` here and on [`acquire`](Self::acquire), so that the node stays in
    /// registers.
    #[inline(always)]
    fn arm_and_insert(
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
        (Key::new(shared.id, id, generation_of(era, version)), must_wake)
    }

    /// As [`cancel`](Self::cancel), and returns what `harvest` makes of the payload. `harvest` is
    /// called while the lane is in use: it runs no user code, and drops no part of the payload.
    #[inline]
    pub(crate) fn cancel_and<R>(
        &self,
        key: Key,
        harvest: impl FnOnce(PayloadSlot<'_, T>) -> Option<R>,
    ) -> Option<R> {
        // Declared first, so dropped last: what is left of the payload goes when the lane is left.
        let mut harvested = None;
        let mut entered = self.enter(key)?;
        let (lane, local) = entered.parts();
        // Protects: the node that the key names, whose segment the advancer may give back
        // meanwhile.
        let stay = self.shared.slab.stay(key.node(), &local.nodes.free, &local.participant);
        let (node, era) = self.shared.slab.get(&stay)?;
        let word = node.cancel_into((era, key.generation), &mut harvested, harvest)?;
        drop(stay);
        if lane.may_reuse {
            local.nodes.last_cancelled = Some(DeadNode::new(key.node(), era, word));
        }
        self.count_cancelled(lane);
        if self.note_dead(lane, local) {
            self.wake_advancer(entered);
        }
        harvested
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

    /// Moves a timer to another node, for a deadline that its present node cannot serve. Calls
    /// `look` with the payload on the way, while it is pinned, and `then` with the timer's key from
    /// then on. `None` means that the timer has ended, or that its payload is out. If there is no
    /// memory, the timer keeps its deadline and its key.
    ///
    /// For a recurring timer the caller calls this, never [`extend`](Self::extend): its word does
    /// not prove its `base`.
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
        self.return_spare_nodes(lane, local);
        let result = then(moved.map(|(moved, _)| moved));
        if moved.is_some_and(|(_, must_wake)| must_wake) {
            self.wake_advancer(entered);
        }
        result
    }

    /// Returns the timer's key from then on, and whether the caller must wake the advancer; the
    /// former key if there is no memory.
    ///
    /// The producer acquires the new node before it takes the payload out of the old one, so
    /// nothing can fail in between, and the timer counts as pending throughout.
    ///
    /// Against the shard's end: the old node is busy until the new one holds the timer, so the
    /// final walk does not miss it. A move that sees `closed` puts the payload back for that walk.
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
        let Ok(owned) = self.shared.slab.take(&mut local.nodes.free, &local.participant, deadline) else {
            let status = node.status_of(era, key.generation);
            return (status == Some(Status::Pending)).then_some((key, false));
        };
        let Some((vacant, payload)) = node.take(era, key.generation) else {
            Slab::put_back(&mut local.nodes.free, owned);
            return None;
        };
        if self.shared.clock.is_closed() {
            vacant.restore(payload);
            Slab::put_back(&mut local.nodes.free, owned);
            return None;
        }
        owned.vacant().node().set_tag(node.tag());
        look(&payload);
        let (moved, must_wake) = self.arm_and_insert(lane, owned, deadline, || payload);
        self.shared.counting.model_change();
        lane.tally.moved.add(1);
        let _ = vacant.cancelled();
        drop(stay);
        let wakes_for_dead = self.note_dead(lane, local);
        Some((moved, must_wake || wakes_for_dead))
    }
}

// ---- Insert: the producer's steps.

impl<T> Shared<T> {
    /// Runs the producer's steps, and reads `wake_up_to`. Returns true if the caller must wake the
    /// advancer. Lock-free.
    #[inline]
    #[must_use]
    fn insert(&self, id: NodeId, node: &Node<T>, deadline: Tick) -> bool {
        // The producer's step 1.
        let flushed = self.clock.flushed();
        if deadline > self.clock.sealed_since(flushed) {
            let slot = self.geometry.place(flushed, deadline);
            if let Some(wheel) = self.wheel_or_new(slot.level, flushed) {
                let (index, stripe) = (self.geometry.index(slot), id as usize % STRIPES);
                // The producer's steps 2 to 4.
                wheel.mark(slot.number, index, stripe);
                // One fence for the seal and for the sleep: the push may come after it, because the
                // bit came before.
                let reading = self.clock.fence_and_read();
                if reading.sealed < self.geometry.expiration(slot)
                    && wheel.push(index, stripe, self.geometry.round(slot), id, node.next())
                {
                    return reading.must_wake(deadline);
                }
            }
        }
        // The producer's step 5.
        self.inbox.push(id, node.next());
        self.must_wake(deadline)
    }
}

// ---- Advance: one thread.

impl<T> Advancer<T> {
    /// Moves the clock to `now`, and takes in hand the first bucket that is due. At a tick at which
    /// nothing is due, this compares a few words and stores the clock.
    #[inline]
    pub(crate) fn move_to(&mut self, now: Tick) {
        let ticks = now.saturating_sub(self.now);
        self.now += ticks;
        if ticks > 0 {
            self.upkeep.due_in = self.upkeep.due_in.saturating_sub(1);
        }
        // The advancer's step 1.
        self.shared.clock.publish_now(self.now);
        if self.now > self.sealed {
            self.seal();
        }
        let is_idle = !self.is_bucket_due() && !self.hands.hold_due() && !self.has_newcomers();
        if ticks > 0 && is_idle && !self.is_upkeep_due() {
            self.set_flushed(self.now);
        } else {
            self.work(ticks);
        }
    }

    #[inline(never)]
    fn work(&mut self, ticks: Tick) {
        if self.has_newcomers() {
            self.take_in_newcomers();
        }
        // An advance that does not move the clock does a share of the background work, too.
        if ticks == 0 || self.is_upkeep_due() {
            self.keep_up(ticks);
        }
        self.ensure_due();
    }

    /// Seals the window of the clock, and looks at its buckets: step 1, if the clock has left the
    /// last window.
    #[inline]
    fn seal(&mut self) {
        self.sealed = self.shared.geometry.end_of_window(self.now);
        self.shared.clock.seal(self.sealed);
        self.look_at_shared_wheels(self.flushed);
    }

    /// Finds the first shared bucket that expires after `tick` and is sealed.
    #[inline]
    fn look_at_shared_wheels(&mut self, tick: Tick) {
        let from = tick.checked_add(1).filter(|&from| from <= self.sealed);
        self.next_in_shared = from.and_then(|from| self.shared.next_expiration(from, self.sealed));
    }

    /// Whether a bucket that expires at or before the clock may hold a node.
    #[inline]
    pub(super) fn is_bucket_due(&self) -> bool {
        self.next_in_shared.is_some_and(|next| next <= self.now) || self.private.may_hold_by(self.now)
    }

    /// Whether nodes wait for the next advance to take them in.
    #[inline]
    fn has_newcomers(&self) -> bool {
        !self.hands.deferred.is_empty() || self.shared.inbox.holds_any()
    }

    /// Takes in what was deferred, and the inbox.
    #[inline(never)]
    fn take_in_newcomers(&mut self) {
        // The advancer's step 2. Before the deferred are placed: what is pushed meanwhile waits for
        // the next advance.
        let mut next = self.shared.inbox.take();
        // Nodes that are deferred again come after these.
        let deferred = self.hands.deferred.len();
        for at in 0..deferred {
            self.place(self.hands.deferred[at]);
        }
        self.hands.deferred.drain(..deferred);
        while next != NIL {
            let id = next;
            // Ordering: Relaxed, the advancer acquired the list when it took it.
            next = self.shared.node(id).next().load(Ordering::Relaxed);
            self.place(id);
        }
    }

    #[inline]
    pub(super) fn set_flushed(&mut self, tick: Tick) {
        if self.flushed != tick {
            self.flushed = tick;
            self.shared.clock.publish_flushed(tick);
        }
    }

    /// Sees to it that something that is due is in hand, or that `flushed` has reached the clock.
    #[inline]
    pub(super) fn ensure_due(&mut self) {
        if self.flushed < self.now && !self.hands.hold_due() {
            self.flush();
        }
    }

    /// Moves `flushed` to the tick before the next occupied bucket, takes that bucket's timers in
    /// hand, and cascades the overflow buckets that expire at that tick. True if timers are in
    /// `due` then; false if no bucket up to the clock holds anything.
    ///
    /// No node is linked into a list while the list is walked: lists are detached first. While
    /// `flushed` is `tick - 1`, the bucket of `tick` may be filled and taken again.
    #[inline(never)]
    fn flush(&mut self) -> bool {
        let geometry = self.shared.geometry;
        while self.flushed < self.now {
            let private = self.private.next_expiration_within(geometry, self.flushed + 1, self.now);
            let shared = self.next_in_shared.filter(|&tick| tick <= self.now);
            let Some(tick) = earlier(private, shared) else {
                self.set_flushed(self.now);
                return false;
            };
            self.set_flushed(tick - 1);
            self.take_bucket(geometry.slot(0, tick));
            if tick == self.now {
                // Raises the private wheels' `none_before` past this tick. Before the cascade: if
                // that links a node into this bucket again (a dead node that its thread has reused
                // for `tick` between the two looks of `place`), it lowers `none_before` again.
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

    /// Takes in hand all that a bucket holds, shared lists (step 3) and private lists: to `due` at
    /// level 0, to `moving` elsewhere.
    #[inline]
    fn take_bucket(&mut self, slot: Slot) {
        if self.sweep.has(slot) {
            self.sweep_detached(u64::MAX);
        }
        let Self { shared, private, hands, .. } = self;
        let chains = if slot.level == 0 { &mut hands.due } else { &mut hands.moving };
        // The earliest of all levels: if it is another tick, no shared half that expires now holds
        // anything.
        if self.next_in_shared == Some(shared.geometry.expiration(slot)) {
            chains.take_shared(slot, shared);
        }
        let add = |stripe, first| chains.add_list(stripe, first, shared);
        private.take(slot.level, shared.geometry.private_index(slot), add);
    }

    /// Empties the overflow buckets that expire at `tick`, where `flushed + 1 == tick`: timers that
    /// are due go to `due`, the others to finer private wheels.
    fn cascade(&mut self, tick: Tick) {
        let geometry = self.shared.geometry;
        for level in 1..geometry.levels() {
            let slot = geometry.slot(level, tick);
            if geometry.expiration(slot) != tick {
                break;
            }
            self.take_bucket(slot);
            self.place_moving(tick, u64::MAX);
        }
    }

    /// Places up to `budget` of the nodes in `moving`, and returns how many. Timers due at or
    /// before `due` go to the lists that are being yielded; these do not count.
    pub(super) fn place_moving(&mut self, due: Tick, budget: u64) -> u64 {
        let (geometry, from) = (self.shared.geometry, self.flushed + 1);
        let (mut placed, mut turn) = (0, 0);
        while placed < budget {
            let Self { shared, private, hands, .. } = self;
            let Some((hand, next)) = hands.moving.pop_from(turn, shared) else { break };
            turn = next;
            let id = hand.id();
            match hand.pending() {
                Some((deadline, _)) if deadline <= due => {
                    hands.due.push(id, hand.next());
                    continue;
                }
                Some((deadline, word)) if hand.displace(word) => {
                    private.link(geometry, geometry.place_private(from, deadline), id, hand.next());
                }
                _ => self.place(id),
            }
            placed += 1;
        }
        self.shared.tally.cascaded.add(placed);
        placed
    }

    /// Places a node that is in hand and is not yielded now: in a bucket, or in `overdue`. Frees a
    /// dead node. Looks a second time at a busy node, and then defers it. Lock-free: it repeats
    /// only if a producer has changed the timer.
    ///
    /// A node whose timer is due later than `base` is first marked as displaced.
    pub(super) fn place(&mut self, id: NodeId) {
        let mut is_second_look = false;
        loop {
            let node = self.shared.node(id);
            let word = node.word();
            if word.is(Status::Pending) {
                if node.displace(word) {
                    return self.link_or_overdue(node.deadline(word), id);
                }
                // A producer has changed the timer.
                continue;
            }
            if word.is(Status::Cancelled) && self.free_if_dead(id) {
                return;
            }
            // A producer is at work in it (see *Busy nodes*). A timer whose payload is out is never
            // in hand.
            if is_second_look {
                return self.hands.deferred.push(id);
            }
            self.shared.clock.pass_fence();
            is_second_look = true;
        }
    }

    /// Places a node in a private bucket, or among those that are overdue. The bucket is seen from
    /// the tick after `flushed`, the first whose bucket can still be taken. (A producer sees it
    /// from `flushed`, which may have moved on when it pushes: then the seal and the round decide.)
    pub(super) fn link_or_overdue(&mut self, deadline: Tick, id: NodeId) {
        if deadline > self.flushed {
            let Self { shared, private, .. } = self;
            let slot = shared.geometry.place_private(self.flushed + 1, deadline);
            private.link(shared.geometry, slot, id, shared.node(id).next());
        } else {
            self.hands.overdue.push(deadline, id);
        }
    }

    /// Fires the next timer that is due, if there is one up to the clock: of a shard by itself. A
    /// `Timer` fires by [`take_due`](Self::take_due), which lets a timer recur. Both take a timer out
    /// by [`next_taken`](Self::next_taken).
    #[inline(always)]
    pub(super) fn next_fired(&mut self) -> Option<Fired<T>> {
        if self.flushed >= self.now && !self.hands.hold_due() {
            return None;
        }
        let (key, deadline, (node, payload)) = self.next_taken(|hand, word| {
            let (vacant, payload) = hand.fire(word)?;
            Some((hand.freed(vacant), payload))
        })?;
        self.retire_fired(node);
        Some(Fired { key, deadline, payload })
    }

    /// Lets `take` take out the next timer that is due; `None` if nothing is due any more, which is
    /// what a caller stops at. Places anew a node whose timer has been put off or cancelled
    /// meanwhile.
    #[inline]
    pub(super) fn next_taken<O>(
        &mut self,
        take: impl Fn(&InHand<'_, T>, Word) -> Option<O>,
    ) -> Option<(Key, Tick, O)> {
        loop {
            let Self { shared, hands, .. } = self;
            // An overdue timer is filed under the deadline that it had. If it has been put off
            // since, it is placed anew.
            let (fires_up_to, hand) = if let Some((deadline, id)) = hands.overdue.pop() {
                (deadline, shared.node(id))
            } else if let Some(hand) = hands.due.pop(shared) {
                (self.flushed.saturating_add(1), hand)
            } else if self.flush() {
                continue;
            } else {
                return None;
            };
            let id = hand.id();
            while let Some((deadline, word)) = hand.pending() {
                if deadline > fires_up_to {
                    // It has been put off: a node that has to move, as in a cascade.
                    shared.tally.cascaded.add(1);
                    break;
                }
                shared.slab.firing.model_change();
                if let Some(taken) = take(&hand, word) {
                    let key = Key::new(shared.id, id, generation_of(hand.era(), word.version()));
                    return Some((key, deadline, taken));
                }
            }
            self.place(id);
        }
    }

    /// Counts a timer that has fired for the last time, and retires its node.
    #[inline]
    pub(super) fn retire_fired(&mut self, node: Freed) {
        self.shared.tally.fired.add(1);
        self.shared.bound.release();
        self.retire(node);
        if self.recycler.is_step_due() {
            self.step_recycler();
        }
    }

    /// Frees a node if its timer was cancelled; true if it did.
    pub(super) fn free_if_dead(&mut self, id: NodeId) -> bool {
        let hand = self.shared.node(id);
        let Some(vacant) = hand.free_cancelled(hand.word()) else { return false };
        let node = hand.freed(vacant);
        self.shared.tally.dead_freed.add(1);
        self.retire(node);
        true
    }

    /// Retires a node whose timer has been counted: it goes back to the producers with others.
    #[inline(always)]
    pub(super) fn retire(&mut self, node: Freed) {
        self.upkeep.ended += 1;
        self.recycler.retire(node);
    }

    /// Begins a sleep, and returns until when: the earliest tick at which anything may be due. Also
    /// says whether a sweep is due before.
    pub(crate) fn begin_sleep(&self) -> (Option<Tick>, bool) {
        // What producers have added comes second, after the fence: until then, a producer may wake
        // the advancer for nothing.
        let in_hand = self.earliest_in_hand();
        let pending = if in_hand.is_some() { self.shared.len() } else { 0 };
        let published = in_hand.filter(|_| pending > 0);
        self.shared.publish_wake_at(published);
        let earliest = self.earliest(in_hand, pending);
        self.shared.clock.lower_published(earliest);
        self.note_excess();
        // A producer that asked for a sweep while the advancer was awake may not have woken it. And
        // no further cancel may come to ask for the next step of a pass that is under way.
        let owes_sweep =
            self.shared.is_sweep_requested() || (self.sweep.is_under_way() && self.shared.is_sweep_due());
        // The earlier of the two: the timer of `published` may have been cancelled in between, and
        // producers wake the advancer only for deadlines earlier than that.
        (earlier(published, earliest), owes_sweep)
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
