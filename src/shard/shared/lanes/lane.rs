//! A lane and its lists: which thread may use what the owner has to itself.
//!
//! This file holds all unsafe code of the lanes. Each right to use a lane's `local` is a type that
//! only this file makes:
//!
//! | type | right | made by |
//! |---|---|---|
//! | [`Listed`] | none; the lane lives as long as its lists | [`Lists`] |
//! | [`Owning`] | owns the lane, in no call | [`Listed::try_own`], [`Lists::push`] |
//! | [`OwnedLane`] | as `Owning`, for a thread that keeps the lane | [`Owning::keep`] |
//! | [`Entered`] | owns the lane and is in a call: uses all of `local` | [`Owning::lend`], [`Lists::enter_last`] |
//! | [`Tidied`] | as `Entered`, for the advancer | [`Listed::tidy`] |
//!
//! An owner that is in no call uses only the participant and the hints, because the advancer may be
//! taking the other parts (see [`Lists::revoke`]).

use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr;
use std::sync::Mutex;

use crossbeam_utils::CachePadded;

use super::local::Local;
use super::state::LaneState;
use super::turnover::Turnover;
use super::{Kind, dead_per_report};
use crate::fallible::{Counted, Handle, Linked, List};
use crate::hardware;
use crate::shard::memory::epochs::Participant;
use crate::shard::memory::slab::{FreeWord, Held};
use crate::shard::shared::advancer_waker::PendingWake;
use crate::shard::shared::stats::Tally;
use crate::sync::plain::{Arc, AtomicU64, UnsafeCell};
use crate::sync::{Ordering, fence};

/// The lists of a shard's lanes, one for each kind. They only grow, until the shard ends.
pub(super) struct Lists {
    /// Never used twice in a process, because a thread local may outlive the shard.
    number: u64,
    lists: [List<Lane>; 3],
    /// Locked while lanes are revoked. No thread waits for it.
    revoking: Mutex<()>,
}

pub(crate) struct Lane {
    /// The number of the lists that it is in; 0 before it is in any.
    lists: u64,
    state: LaneState,
    turnover: Arc<Turnover>,
    pub(super) kind: Kind,
    /// How many dead nodes the owner leaves before it reports them.
    pub(crate) dead_per_report: u32,
    /// Whether the owner may hold a node.
    pub(crate) may_hold: bool,
    /// Written by the owner, read by any thread.
    pub(crate) tally: CachePadded<Tally>,
    local: UnsafeCell<Local>,
}

// SAFETY: `local` is used as the table above says, each part by one thread at a time. Taking
// ownership is an Acquire that pairs with the former owner's Release.
unsafe impl Sync for Lane {}

/// A handle to a lane, which may outlive the lists.
pub(crate) type LaneHandle = Handle<Linked<Lane>>;

/// A lane in lists that live for `'l`.
#[derive(Clone, Copy)]
pub(crate) struct Listed<'l>(&'l Counted<Linked<Lane>>);

/// Ownership of a lane, by a thread that is in no call that uses the lane. Dropping it leaves the
/// lane without an owner.
pub(super) struct Owning<'l>(Listed<'l>);

/// A lane that a thread keeps until it ends. It stays with the thread: it is not Send.
pub(super) struct OwnedLane {
    handle: LaneHandle,
    lane: LaneRef,
}

/// A lane in use by its owner. It stays with the thread: it is not Send.
pub(crate) struct Entered<'l> {
    lane: Listed<'l>,
    /// The lane is lent for this call only; it has no owner afterwards.
    is_borrowed: bool,
    thread: PhantomData<*const ()>,
}

/// A lane without an owner, which the advancer has taken to tidy.
pub(crate) struct Tidied<'l>(Entered<'l>);

/// A lane and the number of its lists, which may have ended.
#[derive(Clone, Copy)]
pub(super) struct LaneRef {
    lists: u64,
    lane: *const Counted<Linked<Lane>>,
}

thread_local! {
    /// The lane of the thread's last call, which is the lane of an [`OwnedLane`] of the thread. Has
    /// no destructor, so it is reached in one step.
    static LAST: Cell<LaneRef> = const { Cell::new(LaneRef::NONE) };
}

impl LaneRef {
    /// No lists have number 0.
    pub(super) const NONE: Self = Self { lists: 0, lane: ptr::null() };

    /// The lane, if it is in these lists.
    #[inline]
    pub(super) fn get(self, lists: &Lists) -> Option<Listed<'_>> {
        // SAFETY: `Listed::note` makes it only of a lane in the lists with this number. These are
        // the only lists with the number, and they keep their lanes for as long as they live.
        (self.lists == lists.number).then(|| Listed(unsafe { &*self.lane }))
    }
}

impl Lists {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Ordering: Relaxed, only the number matters.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { number, lists: [(); 3].map(|()| List::new()), revoking: Mutex::new(()) }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Adds a lane, which the caller owns; `None` if there is no memory.
    pub(super) fn push(&self, mut lane: Lane) -> Option<Owning<'_>> {
        lane.lists = self.number;
        Some(Owning(Listed(self.lists[lane.kind as usize].push(lane)?)))
    }

    /// All lanes.
    pub(super) fn iter(&self) -> impl Iterator<Item = Listed<'_>> {
        self.lists.iter().flat_map(List::iter).map(Listed)
    }

    pub(super) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = Listed<'_>> {
        self.lists[kind as usize].iter().map(Listed)
    }

    /// Whether the lane of the thread's last call is in these lists.
    #[inline]
    pub(super) fn have_last(&self) -> bool {
        LAST.get().lists == self.number
    }

    /// Enters the lane of the thread's last call. `None` if that is in other lists, the thread is
    /// already in a call that uses the lane, or the advancer is revoking the lane.
    #[inline]
    pub(super) fn enter_last(&self) -> Option<Entered<'_>> {
        // The thread owns the lane: the drop of its `OwnedLane` clears `LAST`.
        let lane = LAST.get().get(self)?;
        lane.state.begin_call().then(|| Entered::new(lane, false))
    }

    /// Takes the nodes that lanes keep (free nodes and held nodes) from owners that are in no call.
    /// Does nothing if the system offers no `membarrier`, or a revocation is under way. For the
    /// advancer.
    pub(super) fn revoke(&self, mut take_in: impl FnMut((FreeWord, Held))) {
        if !hardware::has_membarrier() {
            return;
        }
        let Ok(_alone) = self.revoking.try_lock() else { return };
        let keepers = || self.of_kind(Kind::Own);
        keepers().for_each(|lane| lane.state.revoke());
        let has_passed = hardware::membarrier();
        for lane in keepers() {
            // SAFETY: the barrier has passed, and the lock keeps other revocations away.
            if let Some(kept) = has_passed.then(|| unsafe { lane.revoke_nodes() }).flatten() {
                take_in(kept);
            }
            lane.state.restore();
        }
    }
}

impl Drop for Lists {
    /// Frees what the lanes keep besides nodes, because threads may keep the lanes.
    fn drop(&mut self) {
        for lane in self.iter().filter(|lane| lane.state.end()) {
            // SAFETY: the owner has just lost the lane. It is in no call, because calls borrow the
            // lists.
            drop(unsafe { lane.leave() });
        }
    }
}

impl Lane {
    /// A lane that is in no list yet.
    pub(super) fn new(kind: Kind, number: u32, turnover: Arc<Turnover>, participant: Participant) -> Self {
        Self {
            lists: 0,
            state: LaneState::owned(),
            turnover,
            kind,
            dead_per_report: dead_per_report(kind, number),
            may_hold: false,
            tally: CachePadded::new(Tally::new()),
            local: UnsafeCell::new(Local::new(participant, kind == Kind::Own)),
        }
    }

    /// Whether the owner keeps the free nodes that a call leaves over.
    #[inline]
    pub(crate) fn may_keep(&self) -> bool {
        self.kind == Kind::Own
    }

    /// Takes what the lane keeps, unless its owner is in a call.
    ///
    /// # Safety
    ///
    /// Every thread has passed a barrier since the lane was revoked, and only one revocation is
    /// under way.
    unsafe fn revoke_nodes(&self) -> Option<(FreeWord, Held)> {
        if !self.state.is_revoked() {
            return None;
        }
        let local = self.local.get();
        // SAFETY: no call is under way, and none begins while the lane is revoked, whichever thread
        // owns it. Outside calls, only a revocation uses this part.
        let free = unsafe { &mut (*local).nodes.free };
        // SAFETY: likewise.
        let held = unsafe { &mut (*local).nodes.held };
        Some((std::mem::take(free), std::mem::take(held)))
    }

    /// Gives up the parts of a lane that the advancer is not needed for. Returns the participant.
    ///
    /// # Safety
    ///
    /// The caller has brought the lane to `LEAVING` or `ENDED`, and no call that uses the lane is
    /// under way. The advancer may be taking the other parts.
    unsafe fn leave(&self) -> Participant {
        let local = self.local.get();
        // SAFETY: by the caller's promise.
        let hints = unsafe { &mut (*local).nodes.hints };
        // SAFETY: likewise.
        let participant = unsafe { &mut (*local).participant };
        hints.forget();
        participant.leave()
    }
}

impl Deref for Listed<'_> {
    type Target = Lane;

    #[inline]
    fn deref(&self) -> &Lane {
        self.0
    }
}

impl<'l> Listed<'l> {
    pub(crate) fn handle(self) -> LaneHandle {
        Handle::further(self.0)
    }

    /// A reference that a thread local may keep.
    pub(super) fn note(self) -> LaneRef {
        LaneRef { lists: self.lists, lane: self.0 }
    }

    /// Takes ownership; `None` if the lane has an owner.
    pub(super) fn try_own(self) -> Option<Owning<'l>> {
        self.state.try_own().then(|| Owning(self))
    }

    /// Takes a lane that has no owner for a moment, to tidy up after its last owner. For the
    /// advancer, which releases it by dropping. `None` if the lane has an owner, or a thread took
    /// it first, or it is a common lane, which stays as it is.
    pub(crate) fn tidy(self) -> Option<Tidied<'l>> {
        let owning = if self.kind == Kind::Common { None } else { self.try_own() };
        owning?.lend().map(Tidied)
    }
}

impl<'l> Owning<'l> {
    pub(super) fn lane(&self) -> Listed<'l> {
        self.0
    }

    pub(super) fn participant(&mut self) -> &mut Participant {
        // SAFETY: the owner alone uses it, and is in no call; the advancer takes only other parts.
        unsafe { &mut (*self.0.local.get()).participant }
    }

    /// Lends the lane for a call. `None` if the advancer is revoking it.
    pub(super) fn lend(self) -> Option<Entered<'l>> {
        // Lanes of the other kinds are not revoked.
        if self.0.may_keep() && !self.0.state.begin_call() {
            return None;
        }
        Some(Entered::new(ManuallyDrop::new(self).0, true))
    }

    /// Makes the calling thread the owner until it ends.
    pub(super) fn keep(self) -> OwnedLane {
        let lane = ManuallyDrop::new(self).0;
        OwnedLane { handle: lane.handle(), lane: lane.note() }
    }
}

impl Drop for Owning<'_> {
    fn drop(&mut self) {
        self.0.state.release();
    }
}

impl OwnedLane {
    /// The number of the lane's lists.
    pub(super) fn lists(&self) -> u64 {
        self.lane.lists
    }

    /// Whether the lists may still exist.
    pub(super) fn is_alive(&self) -> bool {
        self.handle.count() > 1
    }

    /// Makes it the lane that [`Lists::enter_last`] enters.
    pub(super) fn note_last(&self) {
        LAST.set(self.lane);
    }
}

impl Drop for OwnedLane {
    /// Gives the lane up when the owner's thread ends. Wakes the advancer, which tidies the lane.
    fn drop(&mut self) {
        if LAST.get().lists == self.lists() {
            LAST.set(LaneRef::NONE);
        }
        let lane = &self.handle;
        if !lane.state.begin_leaving() {
            // A call has not ended and never will; or the shard has ended and has emptied the lane.
            return;
        }
        // SAFETY: the lane is `LEAVING`, and its owner is here, in no call.
        let participant = unsafe { lane.leave() };
        lane.state.finish_leaving();
        lane.turnover.note_given_up();
        // Ordering: SeqCst, pairs with the fence in `publish_wake_at`: the advancer sees the change
        // before it sleeps, or this thread sees the sleep.
        fence(Ordering::SeqCst);
        // It is not pinned while the waker runs.
        while lane.turnover.waker.pending_wake_at_end(&participant).is_some_and(PendingWake::wake) {}
    }
}

impl<'l> Entered<'l> {
    /// Makes the handle of a call that has begun; the calling thread owns the lane.
    #[inline]
    fn new(lane: Listed<'l>, is_borrowed: bool) -> Self {
        Self { lane, is_borrowed, thread: PhantomData }
    }

    /// The lane, and what its owner has to itself.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&Lane, &mut Local) {
        // SAFETY: the thread owns the lane and is in no other call that uses it. The call has this
        // one handle, which is borrowed exclusively.
        (&self.lane, unsafe { &mut *self.lane.local.get() })
    }

    /// The lane, and whether it is lent for this call only.
    #[cfg(test)]
    pub(super) fn look(&self) -> (Listed<'l>, bool) {
        (self.lane, self.is_borrowed)
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lane.state.end_call();
        if self.is_borrowed {
            self.lane.state.release();
        }
    }
}

impl Tidied<'_> {
    /// Takes the leftover free nodes and the held node.
    pub(crate) fn take_nodes(&mut self) -> (FreeWord, Held) {
        let (_, local) = self.0.parts();
        local.nodes.hints.forget();
        // A lane that was lent for a call has not left the epochs.
        drop(local.participant.leave());
        (std::mem::take(&mut local.nodes.free), std::mem::take(&mut local.nodes.held))
    }
}
