//! What the two halves of a shard share, and the protocol by which a timer gets into a bucket.
//!
//! # The add / flush protocol
//!
//! Two words tell the time (see [`clock`]): `now`, and `flushed`, which lags behind it while an
//! advance is under way.
//!
//! An adder, for a node that it owns and has armed:
//!
//! 1. loads `flushed` (Acquire) and computes the slot, within one revolution after it at each level;
//! 2. marks the list's occupancy bit;
//! 3. passes a SeqCst fence;
//! 4. loads `now`. If the slot's expiration is later, and the wheel is not closed, it pushes; a push fails
//!    where the list has been flushed past the slot's round;
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
//! **One look is enough.** For the same reason a look at the bits, once the fence is passed, holds for the
//! whole advance: among the buckets that expire at or before `now` no further one comes to hold anything.
//!
//! **No bit is cleared under a timer of the next round.** An adder that means a bucket's next round has
//! loaded a `flushed` at or past the bucket's expiration, hence acquired the clearing of the bit and the
//! swap of the list: it sees the bit clear and sets it anew.
//!
//! **No bucket holds two rounds**, for the same reason: what is pushed lies within one revolution after
//! `flushed`, and all before is out.
//!
//! # No memory
//!
//! Where there is no memory for an overflow wheel, the node goes to the inbox as well. The advancer tries again to place
//! it at each advance, and fires it in time: it is told by the inbox's deadlines when to wake. Where it has no memory for
//! its own lists either, it puts the node back on the inbox.
//!
//! # Ending
//!
//! `closed` is set before the advancer's last look at all nodes, with the same pair of fences: an adder
//! either sees it and takes its timer back, or its node is seen. So nothing that was accepted is lost.

pub(crate) mod bell;
pub(crate) mod bound;
pub(crate) mod clock;
mod counts;
pub(crate) mod lanes;
pub(crate) mod stats;

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use crate::config::Config;
use crate::fallible;
use crate::shard::advancer::idle_wheels::FIRST_TO_GO;
use crate::shard::key::ShardId;
use crate::shard::memory::batch::Remains;
use crate::shard::memory::epochs::{Guard, Participant, Unlinked};
use crate::shard::memory::slab::Slab;
use crate::shard::node::{NIL, Node, NodeId};
use crate::shard::shared::bound::Bound;
use crate::shard::shared::clock::Clock;
use crate::shard::shared::counts::DeadReports;
use crate::shard::shared::lanes::Lanes;
use crate::shard::shared::stats::AdvancerTally;
use crate::shard::wheel::geometry::{Geometry, Slot};
use crate::shard::wheel::{Place, STRIPES, Wheel};
use crate::sync::{AtomicBool, AtomicPtr, AtomicU32, Ordering, Trace, UnsafeCell};
use crate::tick::Tick;

pub(crate) struct Shared<T> {
    pub(crate) id: ShardId,
    pub(crate) geometry: Geometry,
    pub(crate) slab: Slab<T>,
    pub(crate) lanes: Lanes,
    pub(crate) clock: Clock,
    /// Written by the advancer.
    pub(crate) tally: CachePadded<AdvancerTally>,
    /// For models: stands for the counters by which something is decided.
    pub(crate) counting: Trace,
    /// For models: stands for the word of a node, between the advancer's look at it and its firing.
    pub(crate) firing: Trace,
    inbox: CachePadded<AtomicU32>,
    /// Whether a sweep has been asked for. Set by cancellers and the advancer, cleared by the advancer.
    pub(crate) sweep_owed: AtomicBool,
    /// Written by cancellers, now and then.
    pub(crate) dead: CachePadded<DeadReports>,
    pub(crate) bound: Bound,
    /// A wheel per level; the overflow wheels are null until somebody needs them.
    wheels: Box<[AtomicPtr<Wheel>]>,
    /// What the advancer took out of reach shortly before it ended; readers may still be pinned.
    graveyard: UnsafeCell<Remains<T>>,
}

// SAFETY: every part but the graveyard is Send and Sync for a payload that is Send; the graveyard is written
// by the advancer at its end and dropped by the last owner.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// An empty shard; none if there is no memory.
    pub(crate) fn new(config: &Config, bound: &Bound, id: ShardId) -> Option<Self> {
        let geometry = Geometry::new(config.wheel_size());
        let start = config.start();
        let clock = Clock::new(start);
        let finest = new_wheel(geometry, 0, start)?;
        let mut wheels = fallible::slice(geometry.levels(), || AtomicPtr::new(NO_WHEEL))?;
        let (slab, lanes) = (Slab::new()?, Lanes::new(Arc::clone(&clock.bell))?);
        wheels[0] = AtomicPtr::new(Box::into_raw(finest));
        Some(Self {
            id,
            geometry,
            slab,
            lanes,
            clock,
            tally: CachePadded::new(AdvancerTally::new()),
            counting: Trace::begin(),
            firing: Trace::begin(),
            inbox: CachePadded::new(AtomicU32::new(NIL)),
            sweep_owed: AtomicBool::new(false),
            dead: CachePadded::new(DeadReports::new()),
            bound: bound.clone(),
            wheels,
            graveyard: UnsafeCell::new(Remains::default()),
        })
    }

    // ---- adding -----------------------------------------------------------------------------------

    /// The adder's protocol, and the look at `wake_below`: true if the caller owes the advancer a ring. Lock-free.
    #[inline]
    #[must_use]
    pub(crate) fn insert(&self, id: NodeId, node: &Node<T>, deadline: Tick, who: &Participant) -> bool {
        let flushed = self.clock.flushed();
        if deadline > flushed {
            let slot = self.geometry.place(flushed, deadline);
            // Protects: a wheel that the advancer may give back meanwhile.
            let pinned = (slot.level >= FIRST_TO_GO).then(|| who.pin());
            // SAFETY: pinned if the wheel does not stay, for as long as it is used.
            if let Some(wheel) = unsafe { self.wheel_or_new(slot, flushed) } {
                let place = self.place(slot, id);
                wheel.mark(place.index, place.stripe);
                let reading = self.clock.read();
                if reading.now < self.geometry.expiration(slot)
                    && !wheel.is_closed()
                    && wheel.push(place, id, node.next())
                {
                    drop(pinned);
                    return reading.owes_ring(deadline);
                }
            }
        }
        self.push_to_inbox(id, id);
        self.owes_ring(deadline)
    }

    /// The look at `wake_below` for a timer that is in its list already: reused where it stands, or in the
    /// inbox. True if the caller owes the advancer a ring.
    #[inline]
    #[must_use]
    pub(crate) fn owes_ring(&self, deadline: Tick) -> bool {
        self.clock.read().owes_ring(deadline)
    }

    /// Puts a chain of nodes on the inbox, from the first to the last one. Their owner is the caller, which may be the
    /// advancer where it has no memory for their place.
    #[cold]
    pub(crate) fn push_to_inbox(&self, first: NodeId, last: NodeId) {
        // SAFETY: the caller owns the node.
        let (last, _) = unsafe { self.slab.owned(last) };
        // It is nearly always empty. Without a look first loom sees that another's look may come after this (see `Trace`).
        let mut seen = NIL;
        loop {
            // Ordering: Relaxed, published by the compare-and-swap.
            last.next().store(seen, Ordering::Relaxed);
            // Ordering: Release, pairs with the Acquire of `take_inbox`.
            match self.inbox.compare_exchange_weak(seen, first, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
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
    ///
    /// # Safety
    ///
    /// The caller is the advancer, which alone takes wheels out of reach, or is pinned for as long as it uses
    /// the wheel, or asks for a level below [`FIRST_TO_GO`].
    #[inline]
    pub(crate) unsafe fn wheel(&self, level: usize) -> Option<&Wheel> {
        // Ordering: Acquire, pairs with the Release in `create_wheel`.
        let wheel = self.wheels[level].load(Ordering::Acquire);
        // SAFETY: null, or a wheel that lives for as long as the caller looks at it, by its promise.
        unsafe { wheel.as_ref() }
    }

    /// # Safety
    ///
    /// As [`wheel`](Self::wheel).
    #[inline]
    unsafe fn wheel_or_new(&self, slot: Slot, flushed: Tick) -> Option<&Wheel> {
        // SAFETY: by the caller's promise.
        match unsafe { self.wheel(slot.level) } {
            Some(wheel) => Some(wheel),
            // SAFETY: likewise.
            None => unsafe { self.create_wheel(slot.level, flushed) },
        }
    }

    /// Creates an overflow wheel, if there is memory for it. Against another adder: the loser drops its own and uses the
    /// winner's.
    ///
    /// The new wheel's lists belong to the round of `flushed`, which may be old by now: an empty list of an
    /// older round takes any later one, so this is as good as the newest.
    ///
    /// # Safety
    ///
    /// As [`wheel`](Self::wheel).
    #[cold]
    unsafe fn create_wheel(&self, level: usize, flushed: Tick) -> Option<&Wheel> {
        let wheel = Box::into_raw(new_wheel(self.geometry, level, flushed)?);
        // Ordering: Release, pairs with `wheel`; Acquire on failure, for the winner's wheel is used.
        let (success, failure) = (Ordering::Release, Ordering::Acquire);
        let wheel = match self.wheels[level].compare_exchange(NO_WHEEL, wheel, success, failure) {
            Ok(_) => wheel,
            Err(winner) => {
                // SAFETY: it came from `into_raw` just now and was not published.
                drop(unsafe { Box::from_raw(wheel) });
                winner
            }
        };
        // SAFETY: published, and kept by the caller's promise.
        Some(unsafe { &*wheel })
    }

    /// Takes an overflow wheel out of reach of those who come later; for the advancer.
    pub(crate) fn unlink_wheel(&self, level: usize) -> Option<Unlinked<Wheel>> {
        debug_assert!(level >= FIRST_TO_GO, "finer wheels stay");
        // Ordering: Relaxed, nothing is published, and only the advancer takes wheels away.
        let wheel = self.wheels[level].swap(NO_WHEEL, Ordering::Relaxed);
        // SAFETY: null, or it came from `into_raw`; nobody finds it any more, and it is unlinked once.
        unsafe { Unlinked::new(wheel) }
    }

    /// How many wheels there are.
    pub(crate) fn wheels(&self, _pinned: &Guard) -> usize {
        // Ordering: Relaxed, a count.
        self.wheels.iter().filter(|wheel| !wheel.load(Ordering::Relaxed).is_null()).count()
    }

    /// The earliest tick within `from..=to` at which a bucket that may hold something expires; for the
    /// advancer.
    pub(crate) fn next_occupied(&self, from: Tick, to: Tick) -> Option<Tick> {
        (0..self.wheels.len()).filter_map(|level| self.next_occupied_at(level, from, to)).min()
    }

    fn next_occupied_at(&self, level: usize, from: Tick, to: Tick) -> Option<Tick> {
        // SAFETY: the advancer is here.
        let wheel = unsafe { self.wheel(level) }?;
        let count = self.geometry.starts_within(level, from, to);
        self.geometry.expiration_of(level, from, |slot| wheel.next_occupied(self.geometry.index(slot), count))
    }

    /// Keeps what the advancer took out of reach until the shard ends; for the advancer's end.
    pub(crate) fn keep(&self, remains: Remains<T>) {
        self.graveyard.with_mut(|graveyard| {
            // SAFETY: only the one advancer comes here, once, and the last owner drops it after.
            unsafe { *graveyard = remains };
        });
    }
}

const NO_WHEEL: *mut Wheel = std::ptr::null_mut();

/// A wheel whose lists belong to the round of `tick`; none if there is no memory.
fn new_wheel(geometry: Geometry, level: usize, tick: Tick) -> Option<Box<Wheel>> {
    let round = geometry.round(geometry.slot(level, tick));
    fallible::boxed(Wheel::new(geometry.wheel_size(), round)?)
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        for wheel in &self.wheels {
            // Ordering: Relaxed, the last owner is here.
            let wheel = wheel.load(Ordering::Relaxed);
            if !wheel.is_null() {
                // SAFETY: it came from `into_raw` in `new_wheel`, and nobody can reach it any more.
                drop(unsafe { Box::from_raw(wheel) });
            }
        }
    }
}
