//! A lane: what one producer has to itself. Its counters, its epoch, its free nodes, the node that
//! it holds, its hints.
//!
//! A producer must not share with another what it writes at each call. A shard keeps lists of lanes
//! (see [`list`]), and a lane has one owner at a time.
//!
//! - Up to [`KEEPERS`] threads own a lane each until they end, and find it through a thread local
//!   (see [`cache`]). A lane outlives its owner, and another thread takes it over.
//! - In all other cases a call is lent a *common* lane: for a thread beyond that number; for a
//!   thread that is already in a call (a destructor that the call runs) or is ending; for a thread
//!   whose lane the advancer is revoking; and for a thread that has no memory for a lane of its
//!   own. There are as many of these lanes as such calls were ever under way at once, not as many
//!   as threads.
//!
//! So what lanes keep does not grow with the number of threads. With thousands of threads, each
//! call pays for that with one more compare-and-swap.
//!
//! Invariant: only the thread that brought a lane to [`OWNED`] uses `local` and writes `tally`. It
//! uses the nodes kept in `local` only within a call, because the advancer may take those from an
//! owner that is in no call (see [`Lanes::revoke`]).
//!
//! # A lane without an owner
//!
//! A thread that ends leaves the epochs and frees its hints. Its free nodes and the node that it
//! holds stay in the lane for the advancer, because only the advancer frees a dead node. The thread
//! wakes the advancer. At its next advance the advancer takes such a lane for a moment, gives the
//! nodes back, and adds the lane's counters to its own sum (see
//! [`lane_totals`](crate::shard::advancer::lane_totals)). From then on the lane costs an advance
//! nothing, and keeps some hundred bytes.
//!
//! A common lane keeps no nodes. The first [`STAYING`] of them stay in the epochs and in the
//! advancer's list, lent or not. The others (*extra* lanes) are tidied like lanes that a thread
//! owned.
//!
//! # Where there is no memory for a lane
//!
//! One common lane is made with the shard. A thread for whose lane the system has no memory is lent
//! that one, so a timer can be cancelled all the same. Two such threads wait for each other's
//! calls; no other thread waits.
//!
//! # States
//!
//! | from | to | by |
//! |---|---|---|
//! | [`FREE`] | [`OWNED`] | a thread that needs a lane, or the advancer that tidies it |
//! | [`OWNED`] | [`FREE`] | a borrower after its call, a thread that cannot join the epochs, the advancer |
//! | [`OWNED`] | [`LEAVING`] | the owner, which ends; it then empties `local` |
//! | [`LEAVING`] | [`FREE`] | that owner |
//! | [`OWNED`] | [`ENDED`] | the shard's end, which then empties `local`: no call is under way |

mod cache;
mod hints;
mod list;

use std::marker::PhantomData;
use std::sync::atomic::compiler_fence;

use crossbeam_utils::CachePadded;

pub(crate) use self::list::Lanes;
use self::list::Turnover;
use crate::fallible::Counted;
use crate::shard::memory::epochs::Participant;
use crate::shard::memory::slab::{FreeWord, Held};
use crate::shard::shared::advancer_waker::PendingWake;
use crate::shard::shared::lanes::hints::Hints;
use crate::shard::shared::stats::Tally;
use crate::sync::plain::{Arc, AtomicBool, AtomicPtr, AtomicU32, UnsafeCell};
use crate::sync::{Ordering, Token, fence, thread_token};

/// How many of a shard's lanes threads may own. An owner may keep free nodes and a held node from
/// one call to the next. At each advance the advancer looks at held nodes whose bucket is past or
/// under early cascade.
const KEEPERS: u32 = 64;

/// How many common lanes stay in the epochs and in the advancer's list.
const STAYING: u32 = 8;

/// How many dead nodes a lane's owner leaves before it reports them: by the lane's kind, and for a
/// thread's own lane by its number. Most shards have few producers, and these report seldom.
const fn dead_per_report(kind: Kind, number: u32) -> u32 {
    if cfg!(shardwheel_loom) || crate::config::SMALL {
        return 1;
    }
    match kind {
        Kind::Own if number < 4 => 64,
        Kind::Own if number < 20 => 8,
        Kind::Own => 2,
        Kind::Common => 8,
        Kind::Extra => 1,
    }
}

/// The greatest number of unreported dead nodes in all lanes of a shard together.
pub(crate) const UNREPORTED: u32 = if cfg!(shardwheel_loom) || crate::config::SMALL { 1 } else { 512 };

const _: () = {
    let (mut sum, mut number) = (STAYING * (dead_per_report(Kind::Common, 0) - 1), 0);
    // One lane more than `KEEPERS`: a thread may take a lane while the advancer tidies another.
    while number <= KEEPERS {
        sum += dead_per_report(Kind::Own, number) - 1;
        number += 1;
    }
    assert!(sum <= UNREPORTED);
};

/// States of a lane.
const FREE: u32 = 0;
const OWNED: u32 = 1;
const LEAVING: u32 = 2;
const ENDED: u32 = 3;

/// Who uses a lane, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Owned by a thread, which keeps nodes and hints in it.
    Own,
    /// Lent for a call. It always takes part in the epochs.
    Common,
    /// Lent for a call while all common lanes are taken. It takes part in the epochs until it is
    /// tidied.
    Extra,
}

pub(crate) struct Lane {
    /// The lane added before this one. Written before this lane is published, never after.
    next: AtomicPtr<Counted<Lane>>,
    state: AtomicU32,
    maker: Token,
    turnover: Arc<Turnover>,
    kind: Kind,
    /// How many dead nodes the owner leaves before it reports them.
    pub(crate) dead_per_report: u32,
    /// Whether the owner may hold a node.
    pub(crate) may_hold: bool,
    /// Whether the owner is in a call that uses `local`. Written by the owner. Used in lanes that
    /// threads own.
    busy: AtomicBool,
    /// Whether the advancer is about to take the nodes that the lane keeps. The owner's call then
    /// uses another lane. Written by the advancer.
    revoked: AtomicBool,
    /// Written by the owner, read by any thread.
    pub(crate) tally: CachePadded<Tally>,
    local: UnsafeCell<Local>,
}

// SAFETY: `next` points to a lane that lives as long as the list. Only the owner uses `local`, or
// the advancer or the shard's end after it has taken `local`, or a part of it, from the owner.
// Taking ownership is an Acquire that pairs with the former owner's Release.
unsafe impl Send for Lane {}
// SAFETY: as above.
unsafe impl Sync for Lane {}

/// What the owner of a lane has to itself.
pub(crate) struct Local {
    pub(crate) participant: Participant,
    pub(crate) free: FreeWord,
    pub(crate) held: Held,
    pub(crate) hints: Hints,
    /// How many more dead nodes the owner may leave before it reports, and its total at the last
    /// report (see [`counts`](crate::shard::shared::counts)).
    pub(crate) until_report: u32,
    pub(crate) reported: u64,
}

impl Local {
    fn new(participant: Participant, keeps: bool) -> Self {
        let (free, held, hints) = (FreeWord::default(), Held::default(), Hints::new(keeps));
        Self { participant, free, held, hints, until_report: 0, reported: 0 }
    }

    /// Gives up the parts of a lane that the advancer is not needed for: the owner leaves the lane.
    /// Returns the participant.
    ///
    /// # Safety
    ///
    /// The caller has left [`OWNED`], or owns the lane, and is in no call that uses it: no other
    /// thread uses these parts. The advancer may be taking the other parts.
    unsafe fn leave(local: *mut Self) -> Participant {
        // SAFETY: by the caller's promise.
        let hints = unsafe { &mut (*local).hints };
        // SAFETY: likewise.
        let participant = unsafe { &mut (*local).participant };
        hints.forget();
        participant.leave()
    }

    /// Takes the nodes that a lane keeps.
    ///
    /// # Safety
    ///
    /// No call that uses the lane is under way, and none begins: no other thread uses these parts.
    unsafe fn take_nodes(local: *mut Self) -> (FreeWord, Held) {
        // SAFETY: by the caller's promise.
        let free = unsafe { &mut (*local).free };
        // SAFETY: likewise.
        let held = unsafe { &mut (*local).held };
        (std::mem::take(free), std::mem::take(held))
    }
}

/// A lane in use by its owner.
pub(crate) struct Entered<'l> {
    lane: &'l Lane,
    /// The lane is lent for this call only; it has no owner afterwards.
    is_borrowed: bool,
    /// The handle stays with the thread: it is not Send.
    thread: PhantomData<*const ()>,
}

impl<'l> Entered<'l> {
    #[inline]
    fn new(lane: &'l Lane, is_borrowed: bool) -> Self {
        Self { lane, is_borrowed, thread: PhantomData }
    }

    /// The lane, and what its owner has to itself.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&Lane, &mut Local) {
        // SAFETY: the caller owns the lane and is in no other call that uses it, otherwise `enter`
        // would have returned another lane. The lane has this one handle, which is borrowed
        // exclusively.
        (self.lane, unsafe { &mut *self.lane.local.get() })
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        // Ordering: Release, pairs with `revoke_nodes`: what the call has left in `local` is
        // visible.
        self.lane.busy.store(false, Ordering::Release);
        if self.is_borrowed {
            self.lane.release(OWNED);
        }
    }
}

impl Lane {
    /// A lane that is in no list yet, owned by the caller.
    fn owned(kind: Kind, number: u32, turnover: Arc<Turnover>, participant: Participant) -> Self {
        Self {
            next: AtomicPtr::new(std::ptr::null_mut()),
            state: AtomicU32::new(OWNED),
            maker: thread_token(),
            turnover,
            kind,
            dead_per_report: dead_per_report(kind, number),
            may_hold: false,
            busy: AtomicBool::new(false),
            revoked: AtomicBool::new(false),
            tally: CachePadded::new(Tally::new()),
            local: UnsafeCell::new(Local::new(participant, kind == Kind::Own)),
        }
    }

    /// Whether the owner keeps the free nodes that a call leaves over.
    #[inline]
    pub(crate) fn may_keep(&self) -> bool {
        self.kind == Kind::Own
    }

    /// Takes a lane that has no owner for a moment, to tidy up after its last owner. For the
    /// advancer, which [releases](Tidied) it. `None` if the lane has an owner, or a thread took it
    /// first, or it is a common lane, which stays as it is.
    pub(crate) fn tidy(&self) -> Option<Tidied<'_>> {
        (self.kind != Kind::Common && self.try_own()).then(|| Tidied(self))
    }

    /// Begins a call of the owner; false if the owner is already in a call, or the advancer is
    /// revoking the lane.
    ///
    /// Against [`Lanes::revoke`]: the owner sets `busy`, then reads `revoked`. The advancer sets
    /// `revoked`, has every thread pass a barrier (`membarrier`), then reads `busy`. So the owner
    /// needs no barrier of its own: either it sees that the lane is revoked, or the advancer sees
    /// that it is busy.
    #[inline]
    fn begin_call(&self) -> bool {
        // Ordering: Relaxed, only the owner writes it.
        if self.busy.load(Ordering::Relaxed) {
            return false;
        }
        // Ordering: Relaxed. The compiler fence orders it for the compiler, the advancer's
        // `membarrier` for the processor.
        self.busy.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // Ordering: Acquire, pairs with the Release in `Lanes::revoke`: the advancer has finished
        // with `local`.
        if self.revoked.load(Ordering::Acquire) {
            // Ordering: Relaxed, the call has not used `local`.
            self.busy.store(false, Ordering::Relaxed);
            return false;
        }
        true
    }

    /// Takes what the lane keeps, unless its owner is in a call. For the advancer, after the
    /// barrier.
    fn revoke_nodes(&self) -> Option<(FreeWord, Held)> {
        // Ordering: Relaxed, only the advancer writes it. A lane added since then is not revoked.
        let is_revoked = self.revoked.load(Ordering::Relaxed);
        // Ordering: Acquire, pairs with the end of a call: what the call has left in `local` is
        // visible.
        let is_idle = is_revoked && !self.busy.load(Ordering::Acquire);
        // SAFETY: no call is under way, and none begins while the lane is revoked, whichever thread
        // owns it.
        is_idle.then(|| unsafe { Local::take_nodes(self.local.get()) })
    }

    fn try_own(&self) -> bool {
        // Ordering: Relaxed for the load, which keeps the search from writing to lanes that are
        // owned.
        self.maker == thread_token() && self.state.load(Ordering::Relaxed) == FREE && self.pass(FREE, OWNED)
    }

    /// Changes the state from `from` to `to`; false if the lane is in another state.
    fn pass(&self, from: u32, to: u32) -> bool {
        // Ordering: Acquire, pairs with `release`: what the former owner left in `local` is
        // visible.
        self.state.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Leaves the lane without an owner. Its state is `from`, unless the shard has ended. Returns
    /// false: the caller no longer owns the lane.
    fn release(&self, from: u32) -> bool {
        // Ordering: Release, pairs with `pass`. If it fails, the shard has ended, and nothing is
        // read.
        let _ = self.state.compare_exchange(from, FREE, Ordering::Release, Ordering::Relaxed);
        false
    }

    /// Gives the lane up when the owner's thread ends. Wakes the advancer, which tidies the lane.
    fn give_up(&self) {
        if !self.pass(OWNED, LEAVING) {
            // The shard has ended and has emptied the lane.
            return;
        }
        // SAFETY: the owner is here, in no call.
        let participant = unsafe { Local::leave(self.local.get()) };
        self.release(LEAVING);
        self.turnover.note_given_up();
        // Ordering: SeqCst, pairs with the fence in `publish_wake_at`: the advancer sees the change
        // before it sleeps, or this thread sees the sleep.
        fence(Ordering::SeqCst);
        // It is not pinned while the waker runs.
        while self.turnover.waker.pending_wake(&participant).is_some_and(PendingWake::wake) {}
    }

    /// Frees what the lane keeps besides nodes; for the shard's end. No call is under way.
    fn end(&self) {
        if self.pass(OWNED, ENDED) {
            // SAFETY: the owner is in no call and has just lost the lane.
            drop(unsafe { Local::leave(self.local.get()) });
        }
    }
}

/// A lane without an owner, which the advancer has taken to tidy.
pub(crate) struct Tidied<'l>(&'l Lane);

impl Tidied<'_> {
    /// Takes the leftover free nodes and the held node.
    pub(crate) fn take_nodes(&mut self) -> (FreeWord, Held) {
        let local = self.0.local.get();
        // A lane that was lent for a call has not left the epochs.
        // SAFETY: the advancer owns the lane for the moment.
        drop(unsafe { Local::leave(local) });
        // SAFETY: as above.
        unsafe { Local::take_nodes(local) }
    }
}

impl Drop for Tidied<'_> {
    fn drop(&mut self) {
        self.0.release(OWNED);
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests;
