//! What the two halves of a shard share, and the protocol by which a timer gets into a bucket.
//!
//! # The add / flush protocol
//!
//! Two words tell the time. `now` is the clock: a deadline at or before it is due. `flushed` is the last
//! tick all of whose timers the advancer has taken out; while an advance is under way it lags behind.
//!
//! An adder, for a node that it owns and has armed:
//!
//! 1. loads `flushed` (Acquire) and computes the slot, within one revolution after it at each level;
//! 2. marks the list's occupancy bit;
//! 3. passes a SeqCst fence;
//! 4. loads `now`. If the slot's expiration is later, it pushes; a push fails where the list has been
//!    flushed past the slot's round;
//! 5. if it did not push, it puts the node on the *inbox*, a stack that the advancer empties at each
//!    advance.
//!
//! The advancer:
//!
//! 1. stores `now`;
//! 2. passes a SeqCst fence;
//! 3. empties the inbox and looks at the bits of every bucket whose expiration is at or before `now`;
//! 4. where a bucket has one set, clears its bits, then swaps each such list for an empty one of the next
//!    round;
//! 5. stores `flushed` (Release) when the tick is done with.
//!
//! **No timer is lost.** Take an adder whose slot expires at `e`, and the first advance whose `now` is at
//! or past `e`. The two fences are in some order. If the adder's comes first, the advancer's look at the
//! bits, which comes after its own fence, finds the bit set (or the bit was set by somebody earlier and the
//! advancer itself has cleared it since, after which comes its swap of that list); so it swaps the list.
//! Either the push came before the swap, and the swap takes the node, or it comes after, and fails on the
//! round. If the advancer's fence comes first, the adder's look at `now` shows at least that clock, and the
//! adder does not push. Where it does not push, the inbox has the node, and the next advance finds it
//! there: late by one advance at most.
//!
//! **No bit is cleared under a timer of the next round.** An adder that means a bucket's next round has
//! loaded a `flushed` at or past the bucket's expiration, hence acquired the clearing of the bit and the
//! swap of the list: it sees the bit clear and sets it anew.
//!
//! **No bucket holds two rounds**, for the same reason: what is pushed lies within one revolution after
//! `flushed`, and all before is out.
//!
//! # Sleeping
//!
//! `wake_below` tells for which deadlines a sleeping advancer has to be woken: those at or before it, which
//! is the tick before the last answer of `next_expiration`. The advancer stores it, passes a SeqCst
//! fence, and looks at the bits and the inbox once more. An adder loads it after the fence of step 3 (in
//! the inbox's case: after another fence behind the push). By the same argument either the adder sees the
//! answer, or the advancer sees the bit, which comes before the push: it may then wake for nothing, never
//! too late. An adder whose deadline is that early lowers it by one read-modify-write; the one that lowered
//! it wakes the waker.
//!
//! # Ending
//!
//! `closed` is set before the advancer's last look at all nodes, with the same pair of fences: an adder
//! either sees it and takes its timer back, or its node is seen. So nothing that was accepted is lost.

use crossbeam_utils::CachePadded;

use super::key::ShardId;
use super::lane::{Lane, Lanes};
use super::level::{Geometry, Slot};
use super::node::{NIL, Node, NodeId};
use super::reclaim::Guard;
use super::slab::Slab;
use super::stats::{AdvancerTally, ShardStats};
use super::wheel::{Place, Right, STRIPES, Wheel};
use crate::error::ScheduleErrorKind;
use crate::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, AtomicWaker, Ordering, fence};
use crate::{Config, Tick};

/// Stands in `wake_below` while the advancer is at work: no adder wakes it, but for a deadline of 0, which
/// does no harm.
const AWAKE: Tick = 0;

/// Dead nodes that are always tolerated (promise 5); in models, which are small, one.
const DEAD_FLOOR: u64 = if cfg!(shardwheel_loom) { 1 } else { 4096 };

/// The words that every adder reads. The advancer writes them; an adder writes `wake_below` where it is the
/// first to be earlier.
struct Clock {
    now: AtomicU64,
    flushed: AtomicU64,
    wake_below: AtomicU64,
    closed: AtomicBool,
}

pub(crate) struct Shared<T> {
    pub(crate) id: ShardId,
    pub(crate) geometry: Geometry,
    pub(crate) slab: Slab<T>,
    pub(crate) lanes: Lanes,
    pub(crate) waker: AtomicWaker,
    /// Written by the advancer.
    pub(crate) tally: CachePadded<AdvancerTally>,
    clock: CachePadded<Clock>,
    inbox: CachePadded<AtomicU32>,
    /// Whether a canceller has asked for a sweep. Set by cancellers, cleared by the advancer.
    sweep_owed: AtomicBool,
    max_pending: usize,
    /// How many timers are pending; kept only where `max_pending` is a bound.
    pending: CachePadded<AtomicUsize>,
    /// A wheel per level; the overflow wheels are null until somebody needs them.
    wheels: Box<[AtomicPtr<Wheel>]>,
}

impl<T> Shared<T> {
    pub(crate) fn new(config: &Config) -> Self {
        let geometry = Geometry::new(config.wheel_size());
        let start = config.start();
        let shared = Self {
            id: ShardId::next(),
            geometry,
            slab: Slab::new(),
            lanes: Lanes::new(),
            waker: AtomicWaker::new(),
            tally: CachePadded::new(AdvancerTally::new()),
            clock: CachePadded::new(Clock::new(start)),
            inbox: CachePadded::new(AtomicU32::new(NIL)),
            sweep_owed: AtomicBool::new(false),
            max_pending: config.max_pending(),
            pending: CachePadded::new(AtomicUsize::new(0)),
            wheels: (0..geometry.levels()).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect(),
        };
        shared.wheel_or_new(geometry.slot(0, start), start);
        shared
    }

    // ---- time -------------------------------------------------------------------------------------

    pub(crate) fn flushed(&self) -> Tick {
        // Ordering: Acquire, pairs with `publish_flushed`: bits cleared and lists swapped up to this tick.
        self.clock.flushed.load(Ordering::Acquire)
    }

    /// Moves the clock; for the advancer, before it looks at bits and inbox.
    pub(crate) fn publish_now(&self, now: Tick) {
        // Ordering: Relaxed, the fence orders it against the looks that follow.
        self.clock.now.store(now, Ordering::Relaxed);
        // Ordering: Relaxed, adders need not wake who is awake; seeing an old value wakes once too often.
        self.clock.wake_below.store(AWAKE, Ordering::Relaxed);
        // Ordering: SeqCst, pairs with the fence in `insert`.
        fence(Ordering::SeqCst);
    }

    pub(crate) fn publish_flushed(&self, tick: Tick) {
        // Ordering: Release, pairs with `flushed`.
        self.clock.flushed.store(tick, Ordering::Release);
    }

    // ---- adding -----------------------------------------------------------------------------------

    /// Step 1 to 5 of the adder's protocol, and the look at `wake_below`. Lock-free.
    #[inline]
    pub(crate) fn insert(&self, id: NodeId, node: &Node<T>, deadline: Tick) {
        let flushed = self.flushed();
        if deadline > flushed {
            let slot = self.geometry.place(flushed, deadline);
            let wheel = self.wheel_or_new(slot, flushed);
            let place = self.place(slot, id);
            wheel.mark(place.index, place.stripe);
            // Ordering: SeqCst, pairs with the fences in `publish_now`, `publish_wake_at` and `close`.
            fence(Ordering::SeqCst);
            // Ordering: Relaxed, the fence orders both.
            let (now, wake_below) =
                (self.clock.now.load(Ordering::Relaxed), self.clock.wake_below.load(Ordering::Relaxed));
            if now < self.geometry.expiration(slot) && wheel.push(place, id, node.next(), Right::Adder) {
                self.wake_if_earlier(deadline, wake_below);
                return;
            }
        }
        self.push_to_inbox(id, node);
        self.after_insert_in_place(deadline);
    }

    /// The look at `wake_below` for a timer that is in its list already: reused where it stands, or in the
    /// inbox.
    pub(crate) fn after_insert_in_place(&self, deadline: Tick) {
        // Ordering: SeqCst, pairs with the fences in `publish_wake_at` and `close`: what made the timer
        // reachable comes before the look.
        fence(Ordering::SeqCst);
        // Ordering: Relaxed, the fence orders it.
        self.wake_if_earlier(deadline, self.clock.wake_below.load(Ordering::Relaxed));
    }

    #[cold]
    fn push_to_inbox(&self, id: NodeId, node: &Node<T>) {
        // Ordering: Relaxed, the value is only linked to.
        let mut first = self.inbox.load(Ordering::Relaxed);
        loop {
            // Ordering: Relaxed, published by the compare-and-swap.
            node.next().store(first, Ordering::Relaxed);
            // Ordering: Release, pairs with the Acquire of `take_inbox`.
            match self.inbox.compare_exchange_weak(first, id, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(seen) => first = seen,
            }
        }
    }

    /// Puts a node into its bucket; for the advancer, which knows the clock. `from` is the first tick that
    /// is not flushed, and no later than the deadline. False only if the list's state contradicts the
    /// protocol.
    pub(crate) fn insert_as_advancer(&self, id: NodeId, node: &Node<T>, from: Tick, deadline: Tick) -> bool {
        let slot = self.geometry.place(from, deadline);
        let wheel = self.wheel_or_new(slot, from);
        let place = self.place(slot, id);
        wheel.mark(place.index, place.stripe);
        wheel.push(place, id, node.next(), Right::Advancer)
    }

    fn place(&self, slot: Slot, id: NodeId) -> Place {
        let (index, round) = (self.geometry.index(slot), self.geometry.round(slot));
        Place { index, stripe: id as usize % STRIPES, round }
    }

    /// The inbox's nodes, as a list; for the advancer.
    pub(crate) fn take_inbox(&self) -> NodeId {
        // Ordering: Relaxed, a look; a push that it misses is found by the next advance.
        if self.inbox.load(Ordering::Relaxed) == NIL {
            return NIL;
        }
        // Ordering: Acquire, pairs with the Release of each push (each is a read-modify-write, so the last
        // one continues the release sequences of those before it).
        self.inbox.swap(NIL, Ordering::Acquire)
    }

    /// The inbox's first node, left there; for the advancer, which alone takes nodes out.
    pub(crate) fn peek_inbox(&self) -> NodeId {
        // Ordering: Acquire, as above.
        self.inbox.load(Ordering::Acquire)
    }

    // ---- wheels -----------------------------------------------------------------------------------

    /// The wheel of a level, if it exists.
    #[inline]
    pub(crate) fn wheel(&self, level: usize) -> Option<&Wheel> {
        // Ordering: Acquire, pairs with the Release in `create_wheel`.
        let wheel = self.wheels[level].load(Ordering::Acquire);
        // SAFETY: null, or a wheel that lives as long as the shard.
        unsafe { wheel.as_ref() }
    }

    #[inline]
    fn wheel_or_new(&self, slot: Slot, flushed: Tick) -> &Wheel {
        match self.wheel(slot.level) {
            Some(wheel) => wheel,
            None => self.create_wheel(slot.level, flushed),
        }
    }

    /// Creates an overflow wheel. Against another adder: the loser drops its own and uses the winner's.
    ///
    /// The new wheel's lists belong to the round of `flushed`, which may be old by now: an empty list of an
    /// older round takes any later one, so this is as good as the newest.
    #[cold]
    fn create_wheel(&self, level: usize, flushed: Tick) -> &Wheel {
        let round = self.geometry.round(self.geometry.slot(level, flushed));
        let wheel = Box::into_raw(Box::new(Wheel::new(self.geometry.wheel_size(), round)));
        let (null, place) = (std::ptr::null_mut(), &self.wheels[level]);
        // Ordering: Release, pairs with `wheel`; Acquire on failure, for the winner's wheel is used.
        let wheel = match place.compare_exchange(null, wheel, Ordering::Release, Ordering::Acquire) {
            Ok(_) => wheel,
            Err(winner) => {
                // SAFETY: it came from `into_raw` just now and was not published.
                drop(unsafe { Box::from_raw(wheel) });
                winner
            }
        };
        // SAFETY: a published wheel lives as long as the shard.
        unsafe { &*wheel }
    }

    /// The earliest tick, from `from` on, at which a bucket that may hold something expires.
    pub(crate) fn next_occupied(&self, from: Tick) -> Option<Tick> {
        (0..self.wheels.len()).filter_map(|level| self.next_occupied_at(level, from)).min()
    }

    fn next_occupied_at(&self, level: usize, from: Tick) -> Option<Tick> {
        let wheel = self.wheel(level)?;
        let first = self.geometry.first_from(level, from)?;
        let ahead = wheel.next_occupied(self.geometry.index(first))?;
        Some(self.geometry.expiration(self.geometry.nth_after(first, ahead)?))
    }

    // ---- sleeping ---------------------------------------------------------------------------------

    #[inline]
    fn wake_if_earlier(&self, deadline: Tick, wake_below: Tick) {
        if deadline <= wake_below {
            self.lower_wake_below(deadline);
        }
    }

    #[cold]
    fn lower_wake_below(&self, deadline: Tick) {
        // Ordering: Relaxed, what the woken advancer looks at is synchronised by itself; the waker's own
        // synchronisation orders our push before its run.
        if self.clock.wake_below.fetch_min(deadline.saturating_sub(1), Ordering::Relaxed) >= deadline {
            self.waker.wake();
        }
    }

    /// Says when the advancer will wake; it looks at the bits and the inbox once more after this.
    pub(crate) fn publish_wake_at(&self, answer: Option<Tick>) {
        // Ordering: Relaxed, the fence orders it.
        self.clock.wake_below.store(below(answer), Ordering::Relaxed);
        // Ordering: SeqCst, pairs with the fences in `insert` and `after_insert_in_place`.
        fence(Ordering::SeqCst);
    }

    /// Corrects what [`publish_wake_at`](Self::publish_wake_at) said, downwards.
    pub(crate) fn lower_published(&self, answer: Option<Tick>) {
        // Ordering: Relaxed, an adder that sees the former value wakes once too often.
        self.clock.wake_below.fetch_min(below(answer), Ordering::Relaxed);
    }

    // ---- counting ---------------------------------------------------------------------------------

    /// Makes room for one more timer, or says that there is none.
    #[inline]
    pub(crate) fn reserve(&self) -> Result<(), ScheduleErrorKind> {
        if self.max_pending == usize::MAX { Ok(()) } else { self.reserve_one_of(self.max_pending) }
    }

    fn reserve_one_of(&self, limit: usize) -> Result<(), ScheduleErrorKind> {
        let more = |pending| (pending < limit).then_some(pending + 1);
        // Ordering: Relaxed, a count that guards no memory.
        let reserved = self.pending.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        reserved.map(drop).map_err(|_| ScheduleErrorKind::Full { limit })
    }

    /// Gives back what [`reserve`](Self::reserve) took: the timer has ended.
    #[inline]
    pub(crate) fn release(&self) {
        if self.max_pending != usize::MAX {
            // Ordering: Relaxed, as in `reserve_one_of`.
            self.pending.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// How many timers are pending. Never less than the truth while others are at work: the ended ones are
    /// counted first, the scheduled ones after. O(threads).
    pub(crate) fn len(&self) -> usize {
        let ended = self.tally.fired.get() + self.tally.handed_back.get();
        let ended = self.lanes.iter().fold(ended, |sum, lane| sum + lane.tally.cancelled.get());
        let scheduled =
            self.lanes.iter().fold(0, |sum: u64, lane| sum.wrapping_add(lane.tally.scheduled.get()));
        usize::try_from(scheduled.saturating_sub(ended)).unwrap_or(usize::MAX)
    }

    /// Nodes of cancelled or moved timers that are still linked. O(threads).
    pub(crate) fn dead(&self) -> u64 {
        let gone = self.tally.buried.get();
        let gone = self.lanes.iter().fold(gone, |sum, lane| sum + lane.tally.reused.get());
        self.dead_made().saturating_sub(gone)
    }

    /// Nodes of cancelled or moved timers since the shard was made. O(threads).
    pub(crate) fn dead_made(&self) -> u64 {
        let made = |lane: &Lane| lane.tally.cancelled.get() + lane.tally.moved.get();
        self.lanes.iter().map(made).sum()
    }

    /// How many dead nodes there may be (promise 5).
    pub(crate) fn tolerated_dead(&self) -> u64 {
        (self.len() as u64).max(DEAD_FLOOR)
    }

    /// Asks for a sweep if half of what is tolerated is reached; for cancellers, now and then.
    #[cold]
    pub(crate) fn ask_for_sweep(&self) {
        if self.dead() > self.tolerated_dead() / 2 {
            // Ordering: AcqRel, the one that set it wakes the advancer, which clears it.
            let asked = self.sweep_owed.swap(true, Ordering::AcqRel);
            if !asked {
                self.waker.wake();
            }
        }
    }

    /// Whether a sweep was asked for since the last call; for the advancer.
    pub(crate) fn take_sweep_owed(&self) -> bool {
        // Ordering: Relaxed load, then AcqRel, as above.
        self.sweep_owed.load(Ordering::Relaxed) && self.sweep_owed.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn stats(&self, pinned: &Guard) -> ShardStats {
        let pending = self.len();
        let (node_capacity, nodes) = self.slab.usage(pinned);
        let dead_nodes = usize::try_from(self.dead()).unwrap_or(usize::MAX);
        let mut stats = ShardStats { pending, nodes, node_capacity, dead_nodes, ..ShardStats::default() };
        stats.fired = self.tally.fired.get();
        stats.handed_back = self.tally.handed_back.get();
        stats.cascaded = self.tally.cascaded.get();
        stats.swept = self.tally.swept.get();
        for lane in self.lanes.iter() {
            stats.cancelled += lane.tally.cancelled.get();
            stats.extended += lane.tally.extended.get();
            stats.moved += lane.tally.moved.get();
            stats.reused += lane.tally.reused.get();
            stats.scheduled += lane.tally.scheduled.get();
        }
        stats
    }

    // ---- ending -----------------------------------------------------------------------------------

    pub(crate) fn is_closed(&self) -> bool {
        // Ordering: Relaxed, the callers' fences order it where it matters.
        self.clock.closed.load(Ordering::Relaxed)
    }

    /// Whether the shard is closed, seen after all that the caller has done so far.
    pub(crate) fn is_closed_after_fence(&self) -> bool {
        // Ordering: SeqCst, pairs with the fence in `close`: that sees what we did, or we see `closed`.
        fence(Ordering::SeqCst);
        self.is_closed()
    }

    /// How many timers have been moved to another node. O(threads).
    pub(crate) fn moved(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.tally.moved.get()).sum()
    }

    /// Refuses timers from now on; the caller looks at all nodes next.
    pub(crate) fn close(&self) {
        // Ordering: Relaxed, the fence orders it.
        self.clock.closed.store(true, Ordering::Relaxed);
        // Ordering: SeqCst, pairs with the fence of every insert: an adder sees `closed`, or we its node.
        fence(Ordering::SeqCst);
    }
}

/// The last deadline for which an advancer that sleeps until `answer` has to be woken.
fn below(answer: Option<Tick>) -> Tick {
    answer.map_or(Tick::MAX, |tick| tick.saturating_sub(1))
}

impl Clock {
    fn new(start: Tick) -> Self {
        Self {
            now: AtomicU64::new(start),
            flushed: AtomicU64::new(start),
            wake_below: AtomicU64::new(AWAKE),
            closed: AtomicBool::new(false),
        }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        for wheel in &self.wheels {
            // Ordering: Relaxed, the last owner is here.
            let wheel = wheel.load(Ordering::Relaxed);
            if !wheel.is_null() {
                // SAFETY: it came from `into_raw` in `create_wheel`, and nobody can reach it any more.
                drop(unsafe { Box::from_raw(wheel) });
            }
        }
    }
}
