//! A producer's own corner of a shard: its counters, its epoch, its free nodes, the node that it holds, its hints.
//!
//! What a producer writes at each call it must not share with another. A shard keeps a list of lanes. A thread owns one
//! for as long as it lives and finds it through a thread local (see [`cache`]). A lane outlives its owner, and the
//! next thread takes it over.
//!
//! Invariant: only the thread that brought a lane to [`OWNED`] looks at `local` and writes `tally`; at the nodes that it
//! keeps there, only within a call, for the advancer may take those from an owner that is in none (see
//! [`Lanes::revoke`]). A caller that finds its
//! thread's lane busy (a waker or a destructor called while the same thread is in a call) or gone (the thread is ending)
//! borrows another lane for that one call.
//!
//! # A lane without an owner
//!
//! A thread that ends leaves the epochs and frees its hints. Its free nodes and the node that it holds stay in the lane
//! for the advancer, which alone may free nodes: the thread rings the bell, and at its next advance the advancer takes
//! such a lane for a moment, gives the nodes back, and enters the lane's counters in its own sum (see
//! [`roll`](super::roll)). From then on the lane costs an advance nothing, and keeps some hundred bytes. The shard has as
//! many lanes as threads were ever at work on it at once, and one to spare.
//!
//! # Where there is no memory for a lane
//!
//! Two lanes are made with the shard. One is for the first thread that comes. The other is spare: a thread for whose lane
//! the system gives no memory borrows it for each of its calls, so a timer can be cancelled all the same. Two such threads
//! wait for each other's calls; nobody else does.
//!
//! | from | to | by |
//! |---|---|---|
//! | [`FREE`] | [`OWNED`] | a thread that needs a lane, or the advancer that tidies it |
//! | [`OWNED`] | [`FREE`] | the owner, whose one call is over, or the advancer |
//! | [`OWNED`] | [`LEAVING`] | the owner, which ends; it then empties `local` |
//! | [`LEAVING`] | [`FREE`] | that owner |
//! | [`OWNED`] | [`ENDED`] | the shard's end, which then empties `local`: no call is under way, and the owner leaves nothing |

mod cache;

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::compiler_fence;

use crossbeam_utils::CachePadded;

use super::barrier;
use super::bell::Bell;
use super::hints::Hints;
use super::node::{NIL, NodeId};
use super::reclaim::{Epochs, Participant};
use super::slab::FreeWord;
use super::state::Word;
use super::stats::Tally;
use crate::Tick;
use crate::fallible::{Counted, Handle};
use crate::sync::plain::{Arc, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, UnsafeCell};
use crate::sync::{Ordering, Token, fence, thread_token, yield_now};

/// How many of a shard's lanes may keep a node that they hold, and free nodes, from one call to the next. The advancer
/// looks at each advance at held ones whose bucket is past, or is being drawn ahead; and what lanes keep does not grow with
/// the number of threads.
const KEEPERS: u32 = 64;

/// States of a lane.
const FREE: u32 = 0;
const OWNED: u32 = 1;
const LEAVING: u32 = 2;
const ENDED: u32 = 3;

/// The list of a shard's lanes. It only grows, to the number of threads that were ever at work at once.
pub(crate) struct Lanes {
    /// Never used twice in a process, for a thread local may outlive the shard.
    id: u64,
    head: AtomicPtr<Counted<Lane>>,
    /// How many lanes there are, or are being made, but for the spare one.
    count: AtomicU32,
    /// What the owners of lanes are pinned in.
    epochs: Epochs,
    /// Whether the owners of lanes made from now on may hold nodes. Not so in most models, which are about nodes that
    /// are left.
    holding: AtomicBool,
    turnover: Arc<Turnover>,
}

/// What the threads that take lanes over or give them up tell the advancer.
struct Turnover {
    /// How often a lane has been taken over or given up.
    changes: AtomicU64,
    bell: Arc<Bell>,
}

pub(crate) struct Lane {
    /// The lane added before this one. Written before this one is published, never after.
    next: AtomicPtr<Counted<Lane>>,
    state: AtomicU32,
    maker: Token,
    turnover: Arc<Turnover>,
    /// Whether it has been made with the shard, for the first thread that comes, and takes part in the epochs until then.
    is_first: bool,
    /// Whether it is for those for whose own lane there is no memory, and always takes part.
    is_spare: bool,
    /// Whether its owner may hold a node.
    pub(crate) may_hold: bool,
    /// Whether its owner keeps the free nodes that a call leaves over.
    pub(crate) may_keep: bool,
    /// Whether the owner is in a call that uses `local`. Written by the owner.
    busy: AtomicBool,
    /// Whether the advancer is about to take what the lane keeps: the owner then goes elsewhere for the call.
    revoked: AtomicBool,
    /// Written by the owner, read by anyone.
    pub(crate) tally: CachePadded<Tally>,
    local: UnsafeCell<Local>,
}

// SAFETY: `next` points to a lane that lives as long as the list, and `local` is looked at by the owner only, or by the
// advancer and the shard's end once they have taken it, or a part of it, from the owner; taking ownership is an Acquire that pairs with the former owner's Release.
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
    /// [`counts`](super::counts)).
    pub(crate) until_report: u32,
    pub(crate) reported: u64,
}

impl Local {
    fn new(participant: Participant) -> Self {
        let (free, held, hints) = (FreeWord::default(), Held::default(), Hints::default());
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
        *hints = Hints::default();
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

impl Lanes {
    /// An empty list; none if there is no memory.
    pub(crate) fn new(bell: Arc<Bell>) -> Option<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Ordering: Relaxed, the number alone matters.
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let holding = AtomicBool::new(!cfg!(shardwheel_loom));
        let (head, count) = (AtomicPtr::new(std::ptr::null_mut()), AtomicU32::new(0));
        let turnover = Arc::new(Turnover { changes: AtomicU64::new(0), bell });
        let lanes = Self { id, head, count, epochs: Epochs::new(), holding, turnover };
        if !cfg!(shardwheel_loom) {
            lanes.prepare(false)?;
            lanes.prepare(true)?;
        }
        Some(lanes)
    }

    /// Makes one of the two lanes that a shard has from the beginning.
    fn prepare(&self, is_spare: bool) -> Option<()> {
        let mut lane = Lane::owned(Arc::clone(&self.turnover), self.participant()?);
        (lane.is_first, lane.is_spare) = (!is_spare, is_spare);
        if !is_spare {
            // Ordering: Relaxed, nobody else is here.
            self.count.store(1, Ordering::Relaxed);
            (lane.may_hold, lane.may_keep) = (true, true);
        }
        self.publish(lane).map(|lane| _ = lane.release(OWNED))
    }

    /// How often a lane has been taken over or given up. For the advancer, which looks after its fence: see
    /// [`roll`](super::roll).
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        // Ordering: Acquire, pairs with `Turnover::note`: the lane that was taken over is in the list.
        self.turnover.changes.load(Ordering::Acquire)
    }

    /// The part of `total` that falls to each lane, from 1 to 64.
    pub(crate) fn share_of(&self, total: u32) -> u32 {
        // Ordering: Relaxed, a count.
        (total / self.count.load(Ordering::Relaxed).max(1)).clamp(1, 64)
    }

    /// One more who may read what the advancer takes away; none if there is no memory.
    pub(crate) fn participant(&self) -> Option<Participant> {
        self.epochs.join()
    }

    /// A lane that is the caller's alone for as long as it keeps what this returns. Lock-free.
    #[inline]
    pub(crate) fn enter(&self) -> Entered<'_> {
        // Models end before their threads' locals do; they borrow a lane for each call.
        let own = if cfg!(shardwheel_loom) { None } else { cache::enter(self) };
        match own {
            // SAFETY: this list holds the lane for as long as it lives.
            Some(lane) => Entered::new(unsafe { lane.as_ref() }, false),
            None => Entered::new(self.borrow(), true),
        }
    }

    /// A lane for one call, where the thread local cannot serve; marked as busy.
    #[cold]
    fn borrow(&self) -> &Lane {
        loop {
            let lane = self.acquire(true);
            let lane = lane.filter(|lane| lane.begin_call() || lane.release(OWNED));
            // Where the advancer is at it: it is not at one that is made now, and is left alone, not waited for.
            let lane =
                lane.or_else(|| self.acquire(false).filter(|lane| lane.begin_call() || lane.release(OWNED)));
            let lane = lane.or_else(|| self.borrow_spare());
            if let Some(lane) = lane {
                // SAFETY: this list holds the lane for as long as it lives.
                return unsafe { &*std::ptr::from_ref(&*lane) };
            }
            yield_now();
        }
    }

    fn borrow_spare(&self) -> Option<Handle<Lane>> {
        let lane = self.take_over(|lane| lane.is_spare)?;
        self.turnover.note();
        (lane.begin_call() || lane.release(OWNED)).then_some(lane)
    }

    /// A lane, of which the caller is the owner: one that nobody owns if `used` will do, first one that may keep nodes, or else
    /// a new one. None if there is no memory.
    #[cold]
    fn acquire(&self, used: bool) -> Option<Handle<Lane>> {
        let take_over =
            |may_keep: bool| self.take_over(|lane| used && !lane.is_spare && (lane.may_keep || !may_keep));
        let lane = take_over(true).or_else(|| take_over(false)).or_else(|| self.add())?;
        // Before the first count: an advancer that sees what the owner has done sees this.
        self.turnover.note();
        let local = lane.local.get();
        // SAFETY: the caller owns the lane, and is in no call that uses it; the advancer takes other parts at most.
        let hints = unsafe { &mut (*local).hints };
        // SAFETY: likewise.
        let participant = unsafe { &mut (*local).participant };
        hints.are_off = !lane.may_keep;
        (self.epochs.join_again(participant) || lane.release(OWNED)).then_some(lane)
    }

    fn take_over(&self, is_meant: impl Fn(&Lane) -> bool) -> Option<Handle<Lane>> {
        // SAFETY: this list holds the lane for as long as it lives.
        let is_taken = |lane: &NonNull<Counted<Lane>>| unsafe { lane.as_ref() }.try_own_if(&is_meant);
        // SAFETY: as above.
        self.listed().find(is_taken).map(|lane| unsafe { Handle::further(lane) })
    }

    /// Makes a lane; none if there is no memory.
    fn add(&self) -> Option<Handle<Lane>> {
        let mut lane = Lane::owned(Arc::clone(&self.turnover), self.participant()?);
        // Ordering: Relaxed for both: the number alone matters; the other was set before there were producers.
        lane.may_keep = self.count.fetch_add(1, Ordering::Relaxed) < KEEPERS;
        lane.may_hold = lane.may_keep && self.holding.load(Ordering::Relaxed);
        let lane = self.publish(lane);
        if lane.is_none() {
            // Ordering: as above.
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        lane
    }

    /// Puts a lane into the list; none if there is no memory.
    fn publish(&self, lane: Lane) -> Option<Handle<Lane>> {
        let lane = Handle::new(lane)?;
        let further = lane.clone();
        let lane = lane.into_raw();
        // Ordering: Relaxed, the value is only linked to.
        let mut seen = self.head.load(Ordering::Relaxed);
        loop {
            // Ordering: Relaxed, published below.
            further.next.store(seen, Ordering::Relaxed);
            // Ordering: Release, pairs with the Acquire of `listed`: the lane is whole. So are those behind it, for each
            // that came later continues the release sequences of those before.
            match self.head.compare_exchange_weak(seen, lane, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Some(further),
                Err(now) => seen = now,
            }
        }
    }

    /// Takes what lanes keep from owners that are in no call: their free nodes, and the nodes that they hold. Nothing
    /// happens where the system has no barrier to offer. For the advancer.
    pub(crate) fn revoke(&self, mut take_in: impl FnMut((FreeWord, Held))) {
        if !barrier::is_there() {
            return;
        }
        // Ordering: Relaxed, the barrier orders it.
        self.iter().for_each(|lane| lane.revoked.store(true, Ordering::Relaxed));
        let has_passed = barrier::pass();
        for lane in self.iter() {
            if let Some(kept) = has_passed.then(|| lane.revoke_nodes()).flatten() {
                take_in(kept);
            }
            // Ordering: Release, pairs with `begin_call` and `give_up`.
            lane.revoked.store(false, Ordering::Release);
        }
    }

    /// Has the owners of lanes that are made from now on hold nodes, also in a model.
    #[cfg(feature = "model")]
    pub(crate) fn let_hold(&self) {
        // Ordering: Relaxed, before there are producers.
        self.holding.store(true, Ordering::Relaxed);
    }

    /// All lanes, in no order that means anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Lane> {
        // SAFETY: the list holds each for as long as `self` lives.
        self.listed().map(|lane| &**unsafe { lane.as_ref() })
    }

    /// A further handle to each.
    pub(super) fn handles(&self) -> impl Iterator<Item = Handle<Lane>> {
        // SAFETY: the list holds each for as long as `self` lives.
        self.listed().map(|lane| unsafe { Handle::further(lane) })
    }

    /// The same, by the pointers that a further handle can be made of.
    fn listed(&self) -> impl Iterator<Item = NonNull<Counted<Lane>>> {
        // Ordering: Acquire, pairs with the Release in `publish`.
        let head = NonNull::new(self.head.load(Ordering::Acquire));
        std::iter::successors(head, |lane| {
            // SAFETY: the list holds the lane for as long as it lives.
            let lane = unsafe { lane.as_ref() };
            // Ordering: Relaxed, written before the lane was published.
            NonNull::new(lane.next.load(Ordering::Relaxed))
        })
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

impl Drop for Lanes {
    fn drop(&mut self) {
        // Ordering: Relaxed, the last owner looks.
        let mut next = NonNull::new(self.head.load(Ordering::Relaxed));
        while let Some(lane) = next {
            // SAFETY: the list's own handle, given up once; a thread local may hold another.
            let lane = unsafe { Handle::from_raw(lane) };
            // Ordering: as above.
            next = NonNull::new(lane.next.load(Ordering::Relaxed));
            lane.end();
        }
    }
}

impl Turnover {
    fn note(&self) {
        // Ordering: Release, pairs with `Lanes::changes`; the fence with which the owner of a lane puts in its first timer
        // comes after it.
        self.changes.fetch_add(1, Ordering::Release);
    }
}

impl Lane {
    /// One that is in no list yet.
    fn owned(turnover: Arc<Turnover>, participant: Participant) -> Self {
        Self {
            next: AtomicPtr::new(std::ptr::null_mut()),
            state: AtomicU32::new(OWNED),
            maker: thread_token(),
            turnover,
            is_first: false,
            is_spare: false,
            may_hold: false,
            may_keep: false,
            busy: AtomicBool::new(false),
            revoked: AtomicBool::new(false),
            tally: CachePadded::new(Tally::new()),
            local: UnsafeCell::new(Local::new(participant)),
        }
    }

    /// Takes a lane that has no owner for a moment, to see to what its last owner has left; for the advancer, which
    /// [releases](Tidied) it. None if it has an owner, or a thread came first.
    pub(crate) fn tidy(&self) -> Option<Tidied<'_>> {
        self.try_own_if(|_| true).then(|| Tidied(self))
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

    fn try_own_if(&self, is_meant: impl Fn(&Self) -> bool) -> bool {
        // Ordering: Relaxed for the load, which keeps the search from writing to lanes that are owned.
        self.maker == thread_token()
            && self.state.load(Ordering::Relaxed) == FREE
            && is_meant(self)
            && self.pass(FREE, OWNED)
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
        self.turnover.note();
        // Ordering: SeqCst, pairs with the fence in `publish_wake_at`: the advancer sees the change before it sleeps, or
        // this sees its sleep.
        fence(Ordering::SeqCst);
        let call = self.turnover.bell.answer(&participant);
        drop(participant);
        if let Some(call) = call {
            call.ring();
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
        let is_new = self.0.is_first && self.0.tally.scheduled.get() == 0;
        if !(is_new || self.0.is_spare) {
            // One that was borrowed for a call has not left.
            // SAFETY: the advancer owns the lane for the moment.
            drop(unsafe { Local::leave(local) });
        }
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
