//! A lane: what one thread has to itself in a shard. These are its counters, its participant in the
//! epochs, its free nodes, and the name of the node that it cancelled last.
//!
//! A thread finds its own lane by its [number](thread_number). When it ends, the next thread with
//! that number has the lane in each shard, with all that is in it. A thread without a number (more
//! than 64 threads have one, or it is ending), a thread that is already in a call (a destructor
//! that the call runs), and a thread whose lane the advancer is revoking use a *common* lane for
//! one call. Their number is the highest number of such calls that ever ran at the same time, and
//! they keep no nodes. So what lanes keep does not grow with the number of threads.
//!
//! Invariant: only the thread that has [entered](Entered) a lane uses its `local` and writes its
//! `tally`, except that the advancer takes nodes from `local` while the lane is revoked.
//!
//! # A call against a revocation
//!
//! The advancer takes the nodes that idle threads keep. A thread sets `busy` and then reads
//! `revoked`. The advancer sets `revoked`, has every thread pass a barrier (`membarrier`), and then
//! reads `busy`. So the thread needs no barrier of its own: either it sees that the lane is
//! revoked, or the advancer sees that it is busy.
//!
//! # Where there is no memory for a lane
//!
//! One common lane is made with the shard. A thread for whose lane the system has no memory waits
//! for that one, so a timer can be cancelled all the same. No other thread waits.

mod thread_number;

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::compiler_fence;

use crossbeam_utils::CachePadded;

use self::thread_number::NUMBERS;
use crate::fallible::{self, List};
use crate::hardware;
use crate::shard::memory::epochs::{Epochs, Participant, Reclaimer};
use crate::shard::memory::slab::{DeadNode, FreeWord};
use crate::shard::shared::stats::Tally;
use crate::size::size;
use crate::sync::plain::{AtomicBool, AtomicPtr};
use crate::sync::{Ordering, yield_now};

/// Dead nodes that a thread leaves before it reports them.
pub(crate) const DEAD_PER_REPORT: u32 = size(8, 1, 1);

/// Whether threads reuse nodes in place. Most models test nodes that stay dead in their lists.
pub(crate) const REUSES_NODES: bool = size(true, true, false);

/// The greatest number of unreported dead nodes in all lanes of a shard together.
pub(crate) const UNREPORTED: u32 = (DEAD_PER_REPORT - 1) * NUMBERS as u32;

/// Bytes; more than crossbeam-epoch requests for a participant.
const PARTICIPANT_BYTES: usize = 4096;

pub(crate) struct Lanes {
    /// The lanes of threads.
    own: List<Lane>,
    /// These by the number of the thread; null until the thread has one.
    by_number: [AtomicPtr<Lane>; NUMBERS],
    common: List<Lane>,
    epochs: Epochs,
    /// Whether threads reuse nodes in place. False in most models.
    may_reuse: AtomicBool,
}

pub(crate) struct Lane {
    /// Whether it is one thread's: the free nodes that a call leaves over then stay in the lane.
    pub(crate) is_own: bool,
    /// Whether a thread is in a call that uses the lane. Written by the thread with the lane's
    /// number; in a common lane, by the thread that sets it first.
    busy: AtomicBool,
    /// Whether the advancer may take the nodes in the lane. Written by the advancer.
    revoked: AtomicBool,
    pub(crate) dead_per_report: u32,
    pub(crate) may_reuse: bool,
    /// Written by the thread in the call, read by any thread.
    pub(crate) tally: CachePadded<Tally>,
    local: UnsafeCell<Local>,
}

/// What the owner of a lane has to itself.
pub(crate) struct Local {
    pub(crate) participant: Participant,
    pub(crate) nodes: LaneNodes,
    /// How many more dead nodes the owner may leave before it reports, and its total at the last
    /// report (see [`counts`](crate::shard::shared::counts)).
    pub(crate) until_report: u32,
    pub(crate) reported: u64,
}

/// The nodes that the owner may use for its next timers.
pub(crate) struct LaneNodes {
    pub(crate) free: FreeWord,
    /// Until the next timer is scheduled.
    pub(crate) last_cancelled: Option<DeadNode>,
}

impl Local {
    fn new(participant: Participant) -> Self {
        let nodes = LaneNodes { free: FreeWord::default(), last_cancelled: None };
        Self { participant, nodes, until_report: 0, reported: 0 }
    }
}

// SAFETY: `local` is used by the thread that has entered the lane, or by the advancer while the
// lane is revoked and not busy. A thread that is given a number acquires what the last one with
// that number has released.
unsafe impl Sync for Lane {}

/// A lane in a call. It stays with the thread: it is not Send.
pub(crate) struct Entered<'l> {
    lane: &'l Lane,
    thread: PhantomData<*const ()>,
}

impl Lane {
    fn new(is_own: bool, may_reuse: bool, participant: Participant) -> Self {
        Self {
            is_own,
            // The thread that makes it is in a call.
            busy: AtomicBool::new(true),
            revoked: AtomicBool::new(false),
            dead_per_report: if is_own { DEAD_PER_REPORT } else { 1 },
            may_reuse: is_own && may_reuse,
            tally: CachePadded::default(),
            local: UnsafeCell::new(Local::new(participant)),
        }
    }

    /// Begins a call of the thread with the lane's number. `None` if the thread is already in a
    /// call, or the advancer is revoking the lane.
    #[inline]
    fn enter(&self) -> Option<Entered<'_>> {
        // Ordering: Relaxed, no other thread writes it.
        if self.busy.load(Ordering::Relaxed) {
            return None;
        }
        // Ordering: Relaxed. The compiler fence orders it for the compiler, the advancer's
        // `membarrier` for the processor.
        self.busy.store(true, Ordering::Relaxed);
        compiler_fence(std::sync::atomic::Ordering::SeqCst);
        let entered = Entered { lane: self, thread: PhantomData };
        // Ordering: Acquire, pairs with the end of `revoke`: the advancer has finished with
        // `local`.
        (!self.revoked.load(Ordering::Acquire)).then_some(entered)
    }

    /// Begins a call of any thread in a common lane; `None` if another call uses the lane.
    fn enter_common(&self) -> Option<Entered<'_>> {
        // Ordering: Relaxed for the load, a hint. Acquire, pairs with the end of a call.
        let is_ours = !self.busy.load(Ordering::Relaxed) && !self.busy.swap(true, Ordering::Acquire);
        // Not earlier: its drop ends the call.
        is_ours.then(|| Entered { lane: self, thread: PhantomData })
    }

    /// Takes the free nodes in the lane, unless a call is under way.
    ///
    /// # Safety
    ///
    /// Only the advancer calls this. Every thread has passed a barrier since the lane was revoked.
    unsafe fn take_nodes(&self) -> Option<FreeWord> {
        // Ordering: Acquire, pairs with the end of a call: what it has left in `local` is visible.
        if self.busy.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: no call is under way, and none begins while the lane is revoked.
        Some(std::mem::take(unsafe { &mut (*self.local.get()).nodes.free }))
    }
}

impl Entered<'_> {
    /// The lane, and what its thread has to itself.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&Lane, &mut Local) {
        // SAFETY: the thread is in the one call that uses the lane, and the call has this one
        // handle, which is borrowed exclusively.
        (self.lane, unsafe { &mut *self.lane.local.get() })
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        // Ordering: Release, pairs with `take_nodes` and `enter_common`: what the call has left in
        // `local` is visible. Also where the call has found the lane revoked: an advancer that
        // loads this value has to see what the call before it has left.
        self.lane.busy.store(false, Ordering::Release);
    }
}

impl Lanes {
    /// Makes the lanes with a single, common one, and the right to take memory away from their
    /// threads.
    pub(crate) fn new() -> (Self, Reclaimer) {
        let (epochs, reclaimer) = Epochs::with_reclaimer();
        let lanes = Self {
            own: List::new(),
            by_number: [const { AtomicPtr::new(ptr::null_mut()) }; NUMBERS],
            common: List::new(),
            epochs,
            may_reuse: AtomicBool::new(REUSES_NODES),
        };
        drop(lanes.add(false));
        (lanes, reclaimer)
    }

    /// A lane that the caller alone uses while it keeps the returned handle. Lock-free while there
    /// is memory.
    #[inline]
    pub(crate) fn enter(&self) -> Entered<'_> {
        let number = thread_number::get();
        match self.own(number).and_then(Lane::enter) {
            Some(entered) => entered,
            None => self.enter_slowly(number),
        }
    }

    #[inline]
    fn own(&self, number: usize) -> Option<&Lane> {
        // Ordering: Relaxed, only the thread with the number uses it.
        let lane = self.by_number.get(number)?.load(Ordering::Relaxed);
        // SAFETY: null, or a lane that lives as long as `self`.
        unsafe { lane.as_ref() }
    }

    #[cold]
    fn enter_slowly(&self, number: usize) -> Entered<'_> {
        if let Some(place) = self.by_number.get(number)
            && self.own(number).is_none()
            && let Some(entered) = self.add(true)
        {
            // Ordering: Relaxed, see `own`.
            place.store(ptr::from_ref(entered.lane).cast_mut(), Ordering::Relaxed);
            return entered;
        }
        loop {
            let free = self.common.iter().find_map(Lane::enter_common);
            if let Some(entered) = free.or_else(|| self.add(false)) {
                return entered;
            }
            // There is no memory.
            yield_now();
        }
    }

    /// Makes a lane, which the caller has entered; `None` if there is no memory.
    ///
    /// The lane's first count comes after it is in the list, so an advancer that sees what the
    /// thread has done finds the lane.
    fn add(&self, is_own: bool) -> Option<Entered<'_>> {
        // Ordering: Relaxed, it was set before there were producers.
        let may_reuse = self.may_reuse.load(Ordering::Relaxed);
        let lanes = if is_own { &self.own } else { &self.common };
        let lane = lanes.push(Lane::new(is_own, may_reuse, self.participant()?))?;
        Some(Entered { lane, thread: PhantomData })
    }

    /// A participant for a new lane; `None` if there is no memory. crossbeam-epoch would end the
    /// process.
    fn participant(&self) -> Option<Participant> {
        fallible::has_memory(PARTICIPANT_BYTES).then(|| self.epochs.join())
    }

    /// Takes the free nodes that threads keep if they are in no call. Does nothing if the system
    /// offers no `membarrier`. For the advancer.
    pub(crate) fn revoke(&self, _: &Reclaimer, take_in: impl FnMut(FreeWord)) {
        if !hardware::has_membarrier() {
            return;
        }
        // Ordering: Relaxed, the barrier orders it.
        self.own.iter().for_each(|lane| lane.revoked.store(true, Ordering::Relaxed));
        if hardware::membarrier() {
            // A lane that is made only now is not revoked: it is new, so it is left out.
            // Ordering: Relaxed, only the advancer writes it.
            let revoked = self.own.iter().filter(|lane| lane.revoked.load(Ordering::Relaxed));
            // SAFETY: the advancer's right is here, and the barrier has passed.
            revoked.filter_map(|lane| unsafe { lane.take_nodes() }).for_each(take_in);
        }
        // Ordering: Release, pairs with `enter`: the advancer has finished with `local`.
        self.own.iter().for_each(|lane| lane.revoked.store(false, Ordering::Release));
    }

    /// All lanes, in no particular order.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Lane> {
        self.own.iter().chain(self.common.iter())
    }

    /// Lets threads reuse nodes in place in lanes made from now on, also in a model.
    #[cfg(any(shardwheel_loom, shardwheel_model))]
    pub(crate) fn let_reuse(&self) {
        // Ordering: Relaxed, before there are producers.
        self.may_reuse.store(true, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
