//! A producer's own corner of a shard: its counters, its epoch, its free nodes, the node that it holds, its hints.
//!
//! What a producer writes at each call it must not share with another. A shard keeps lists of lanes (see [`list`]), and a
//! lane has one owner at a time.
//!
//! - Up to [`KEEPERS`] threads own a lane each for as long as they live, and find it through a thread local (see
//!   [`cache`]). A lane outlives its owner, and the next thread takes it over.
//! - All others are lent a *common* lane for each of their calls: threads beyond that number; a thread that is in a call
//!   already (a destructor that is called within it), or is ending; and one for whose own lane there is no memory. There
//!   are as many of these as such calls were ever under way at once, and not as many as there are threads.
//!
//! So what lanes keep does not grow with the number of threads. A crowd of thousands pays for that with a
//! compare-and-swap more for each call.
//!
//! Invariant: only the thread that brought a lane to [`OWNED`] looks at `local` and writes `tally`; at the nodes that it
//! keeps there, only within a call, for the advancer may take those from an owner that is in none (see
//! [`Lanes::revoke`]).
//!
//! # A lane without an owner
//!
//! A thread that ends leaves the epochs and frees its hints. Its free nodes and the node that it holds stay in the lane
//! for the advancer, which alone may free nodes: the thread rings the bell, and at its next advance the advancer takes
//! such a lane for a moment, gives the nodes back, and enters the lane's counters in its own sum (see
//! [`roll`](crate::shard::advancer::lane_totals)). From then on the lane costs an advance nothing, and keeps some hundred bytes.
//!
//! A common lane keeps no nodes. The first few stay in the epochs and in the advancer's list whether they are lent or
//! not. The others are tidied like those that a thread owned.
//!
//! # Where there is no memory for a lane
//!
//! One common lane is made with the shard. A thread for whose lane the system gives no memory is lent that one, so a timer
//! can be cancelled all the same. Two such threads wait for each other's calls; nobody else does.
//!
//! | from | to | by |
//! |---|---|---|
//! | [`FREE`] | [`OWNED`] | a thread that needs a lane, or the advancer that tidies it |
//! | [`OWNED`] | [`FREE`] | who was lent it, when the call is over, or the advancer |
//! | [`OWNED`] | [`LEAVING`] | the owner, which ends; it then empties `local` |
//! | [`LEAVING`] | [`FREE`] | that owner |
//! | [`OWNED`] | [`ENDED`] | the shard's end, which then empties `local`: no call is under way, and the owner leaves nothing |

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
use crate::shard::memory::slab::FreeWord;
use crate::shard::node::state::Word;
use crate::shard::node::{NIL, NodeId};
use crate::shard::shared::lanes::hints::Hints;
use crate::shard::shared::stats::Tally;
use crate::sync::plain::{Arc, AtomicBool, AtomicPtr, AtomicU32, UnsafeCell};
use crate::sync::{Ordering, Token, fence, thread_token};
use crate::tick::Tick;

/// How many of a shard's lanes threads own, which may keep a node that they hold, and free nodes, from one call to the
/// next. The advancer looks at each advance at held ones whose bucket is past, or is being drawn ahead.
const KEEPERS: u32 = 64;

/// How many common lanes stay in the epochs and in the advancer's list.
const STAYING: u32 = 8;

/// How many dead nodes a lane's owner leaves before it reports them, by the lane's kind, and for a
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

/// Dead nodes that no lane has reported, at most, in all lanes of a shard together.
pub(crate) const UNREPORTED: u32 = 512;

const _: () = {
    let (mut sum, mut number) = (STAYING * (dead_per_report(Kind::Common, 0) - 1), 0);
    // One thread may take a lane while the advancer has another in hand.
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

/// Whose a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A thread's, which keeps nodes and hints in it.
    Own,
    /// Lent for a call. It always takes part in the epochs.
    Common,
    /// Lent for a call where more are under way at once. It takes part until it is tidied.
    Extra,
}

pub(crate) struct Lane {
    /// The lane added before this one. Written before this one is published, never after.
    next: AtomicPtr<Counted<Lane>>,
    state: AtomicU32,
    maker: Token,
    turnover: Arc<Turnover>,
    kind: Kind,
    /// How many dead nodes the owner leaves before it reports them.
    pub(crate) dead_per_report: u32,
    /// Whether its owner may hold a node.
    pub(crate) may_hold: bool,
    /// Whether the owner is in a call that uses `local`. Written by the owner, of a lane that is a thread's.
    busy: AtomicBool,
    /// Whether the advancer is about to take what the lane keeps: the owner then goes elsewhere for the call.
    revoked: AtomicBool,
    /// Written by the owner, read by anyone.
    pub(crate) tally: CachePadded<Tally>,
    local: UnsafeCell<Local>,
}

// SAFETY: `next` points to a lane that lives as long as the list. `local` is looked at by the owner only, or by the advancer
// and the shard's end once they have taken it, or a part of it, from the owner; taking ownership is an Acquire that pairs
// with the former owner's Release.
unsafe impl Send for Lane {}
// SAFETY: as above.
unsafe impl Sync for Lane {}

/// What the owner of a lane has to itself.
pub(crate) struct Local {
    pub(crate) participant: Participant,
    pub(crate) free: FreeWord,
    pub(crate) held: Held,
    pub(crate) hints: Hints,
    /// Dead nodes that the owner may leave until it reports how many there are, and what it reported last (see
    /// [`counts`](crate::shard::shared::counts)).
    pub(crate) until_report: u32,
    pub(crate) reported: u64,
}

impl Local {
    fn new(participant: Participant, keeps: bool) -> Self {
        let (free, held, hints) = (FreeWord::default(), Held::default(), Hints::new(keeps));
        Self { participant, free, held, hints, until_report: 0, reported: 0 }
    }

    /// Gives up what the advancer is not needed for, of a lane whose owner leaves it; returns the participant.
    ///
    /// # Safety
    ///
    /// The caller has left [`OWNED`] and is in no call: nobody else looks at those parts. The advancer may be taking the
    /// others.
    unsafe fn leave(local: *mut Self) -> Participant {
        // SAFETY: as the caller says.
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
    /// No call is under way that uses the lane, nor is one begun: nobody else looks at those parts.
    unsafe fn take_nodes(local: *mut Self) -> (FreeWord, Held) {
        // SAFETY: as the caller says.
        let free = unsafe { &mut (*local).free };
        // SAFETY: likewise.
        let held = unsafe { &mut (*local).held };
        (std::mem::take(free), std::mem::take(held))
    }
}

/// A dead node that the owner of a lane keeps for its next timer.
///
/// Looked at field by field: a copy of the whole would be loaded in one piece that the stores just before were not
/// made in, which stalls a processor.
#[derive(Default)]
pub(crate) struct Held {
    /// `NIL` if there is none.
    pub(crate) node: NodeId,
    /// The node's word before its timer was cancelled.
    pub(crate) word: Word,
    /// The earliest tick that the next timer may be due at.
    pub(crate) linked_for: Tick,
}

impl Held {
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.node == NIL
    }
}

/// A lane in use by its owner.
pub(crate) struct Entered<'l> {
    lane: &'l Lane,
    /// For this one call: it is nobody's afterwards.
    is_borrowed: bool,
    /// It stays with the thread.
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
        // SAFETY: the caller owns the lane and is not in another call that uses it, or `enter` would have given it
        // another; and it has this one handle, which is borrowed exclusively.
        (self.lane, unsafe { &mut *self.lane.local.get() })
    }
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        // Ordering: Release, pairs with `revoke_nodes`: what the call has left in `local`.
        self.lane.busy.store(false, Ordering::Release);
        if self.is_borrowed {
            self.lane.release(OWNED);
        }
    }
}

impl Lane {
    /// One that is in no list yet, and the caller's.
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

    /// Whether its owner keeps the free nodes that a call leaves over.
    #[inline]
    pub(crate) fn may_keep(&self) -> bool {
        self.kind == Kind::Own
    }

    /// Takes a lane that has no owner for a moment, to see to what its last owner has left; for the advancer, which
    /// [releases](Tidied) it. None if it has an owner, or a thread came first, or it stays as it is.
    pub(crate) fn tidy(&self) -> Option<Tidied<'_>> {
        (self.kind != Kind::Common && self.try_own()).then(|| Tidied(self))
    }

    /// Begins a call of the owner's; false if it is in one already, or the advancer is at the lane.
    ///
    /// Against [`Lanes::revoke`]: the owner says that it is busy, then looks whether the lane is revoked; the advancer
    /// revokes it, has the system pass a barrier in every thread, then looks whether the owner is busy. So the owner needs
    /// no barrier of its own: either it sees that the lane is revoked, or the advancer that it is busy.
    #[inline]
    fn begin_call(&self) -> bool {
        // Ordering: Relaxed, the owner alone writes it.
        if self.busy.load(Ordering::Relaxed) {
            return false;
        }
        // Ordering: Relaxed; the compiler keeps the order, and the processor where the advancer asks it to.
        self.busy.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // Ordering: Acquire, pairs with `revoke_nodes`: the advancer has done with `local`.
        if self.revoked.load(Ordering::Acquire) {
            // Ordering: Relaxed, `local` has not been looked at.
            self.busy.store(false, Ordering::Relaxed);
            return false;
        }
        true
    }

    /// Takes what the lane keeps, unless its owner is at work; for the advancer, once the barrier has been passed.
    fn revoke_nodes(&self) -> Option<(FreeWord, Held)> {
        // Ordering: Relaxed, the advancer alone writes it. A lane that has come since then is not revoked.
        let is_revoked = self.revoked.load(Ordering::Relaxed);
        // Ordering: Acquire, pairs with the end of a call: what it has left in `local` is visible.
        let is_idle = is_revoked && !self.busy.load(Ordering::Acquire);
        // SAFETY: no call is under way, and none is begun while the lane is revoked, whoever its owner is.
        is_idle.then(|| unsafe { Local::take_nodes(self.local.get()) })
    }

    fn try_own(&self) -> bool {
        // Ordering: Relaxed for the load, which keeps the search from writing to lanes that are owned.
        self.maker == thread_token() && self.state.load(Ordering::Relaxed) == FREE && self.pass(FREE, OWNED)
    }

    /// Goes from one state to another, if it is in that one.
    fn pass(&self, from: u32, to: u32) -> bool {
        // Ordering: Acquire, pairs with `release`: what the former owner left in `local` is visible.
        self.state.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Has no owner from now on; it was in that state, unless the shard has ended. Says false: it is nobody's.
    fn release(&self, from: u32) -> bool {
        // Ordering: Release, pairs with `pass`. Where it fails the shard has ended, and nothing is looked at.
        let _ = self.state.compare_exchange(from, FREE, Ordering::Release, Ordering::Relaxed);
        false
    }

    /// Gives the lane up, as the owner's thread ends; the advancer is woken to see to what is left in it.
    fn give_up(&self) {
        if !self.pass(OWNED, LEAVING) {
            // The shard has ended, and has emptied the lane.
            return;
        }
        // SAFETY: the owner is here, in no call.
        let participant = unsafe { Local::leave(self.local.get()) };
        self.release(LEAVING);
        self.turnover.note_given_up();
        // Ordering: SeqCst, pairs with the fence in `publish_wake_at`: the advancer sees the change before it sleeps, or
        // this sees its sleep.
        fence(Ordering::SeqCst);
        let pending = self.turnover.waker.pending_wake(&participant);
        drop(participant);
        if let Some(pending) = pending {
            pending.wake();
        }
    }

    /// Frees what the lane holds beside nodes; for the shard's end. No call is under way.
    fn end(&self) {
        if self.pass(OWNED, ENDED) {
            // SAFETY: the owner, which is in no call, has lost the lane just now.
            drop(unsafe { Local::leave(self.local.get()) });
        }
    }
}

/// A lane without an owner, in the advancer's hands.
pub(crate) struct Tidied<'l>(&'l Lane);

impl Tidied<'_> {
    /// The free nodes that were left over, and the node that was held.
    pub(crate) fn take_nodes(&mut self) -> (FreeWord, Held) {
        let local = self.0.local.get();
        // One that was lent for a call has not left.
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
