//! A producer's own corner of a shard: its counters, its epoch, its free nodes, the node that it holds, its hints.
//!
//! What a producer writes at each call it must not share with another. A shard keeps a list of lanes; a
//! thread owns one for as long as it lives (or until it needs the place in its small cache for another
//! shard), found through a thread local. A lane outlives its owner: the next thread takes it over with all
//! that is in it, so nothing has to be handed back.
//!
//! Invariant: only the thread that set `owned` looks at `local` and writes `tally`. A caller that finds its
//! thread's lane busy (a destructor run by the reclaimer while the same thread is in a call) or gone (the
//! thread is ending) borrows another lane for that one call.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use crossbeam_utils::CachePadded;

use super::hints::Hints;
use super::node::{NIL, NodeId};
use super::reclaim::{Epochs, Participant};
use super::slab::FreeWord;
use super::state::Word;
use super::stats::Tally;
use crate::Tick;
use crate::sync::plain::{Arc, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, UnsafeCell};
use crate::sync::{Ordering, Token, thread_token};

/// How many shards a thread remembers its lane of.
const SLOTS: usize = 32;

/// How many of a shard's lanes may hold a node. The advancer looks at each advance at those whose bucket is past, or is
/// being drawn ahead.
const HOLDERS: u32 = 64;

/// The list of a shard's lanes. It only grows, to the number of threads that were ever at work at once.
pub(crate) struct Lanes {
    /// Never used twice in a process, for a thread local may outlive the shard.
    id: u64,
    head: AtomicPtr<Lane>,
    /// How many lanes there are, or are being made.
    count: AtomicU32,
    /// What the owners of lanes are pinned in.
    epochs: Epochs,
    /// Whether the owners of lanes made from now on may hold nodes. Not so in most models, which are about nodes that
    /// are left.
    holding: AtomicBool,
}

pub(crate) struct Lane {
    /// The lane added before this one. Written before this one is published, never after.
    next: *mut Lane,
    owned: AtomicBool,
    maker: Token,
    /// Whether its owner may hold a node.
    pub(crate) may_hold: bool,
    /// Whether the owner is in a call that uses `local`. Looked at by the owner only.
    busy: Cell<bool>,
    /// Written by the owner, read by anyone.
    pub(crate) tally: CachePadded<Tally>,
    local: UnsafeCell<Local>,
}

// SAFETY: `next` points to a lane that lives as long as the list, and `local` and `busy` are looked at by the
// owner only; taking ownership is an Acquire that pairs with the former owner's Release.
unsafe impl Send for Lane {}
// SAFETY: as above.
unsafe impl Sync for Lane {}

/// What the owner of a lane has to itself.
pub(crate) struct Local {
    pub(crate) participant: Participant,
    pub(crate) free: FreeWord,
    pub(crate) held: Held,
    pub(crate) hints: Hints,
    /// Cancels until the owner looks whether a sweep is owed.
    pub(crate) cancels_until_check: u32,
}

impl Local {
    fn new(participant: Participant) -> Self {
        let (free, held, hints) = (FreeWord::default(), Held::default(), Hints::default());
        Self { participant, free, held, hints, cancels_until_check: 0 }
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
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Ordering: Relaxed, the number alone matters.
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let holding = AtomicBool::new(!cfg!(shardwheel_loom));
        let (head, count) = (AtomicPtr::new(std::ptr::null_mut()), AtomicU32::new(0));
        Self { id, head, count, epochs: Epochs::new(), holding }
    }

    /// One more who may read what the advancer takes away.
    pub(crate) fn participant(&self) -> Participant {
        self.epochs.join()
    }

    /// A lane that is the caller's alone for as long as it keeps what this returns. Lock-free.
    #[inline]
    pub(crate) fn enter(&self) -> Entered<'_> {
        // Models end before their threads' locals do; they borrow a lane for each call.
        let own = if cfg!(shardwheel_loom) { None } else { self.enter_own() };
        match own {
            // SAFETY: this list holds the lane for as long as it lives.
            Some(lane) => Entered::new(unsafe { lane.as_ref() }, false),
            None => Entered::new(self.borrow(), true),
        }
    }

    /// The thread's lane, marked as busy; none if it is busy in a call further out, or the thread is ending.
    #[inline]
    fn enter_own(&self) -> Option<NonNull<Lane>> {
        let (lanes, lane) = LAST.get();
        if lanes != self.id {
            return CACHE.try_with(|cache| cache.enter(self)).ok().flatten();
        }
        // SAFETY: the thread's cache holds the lane, or its `Owned` would have cleared `LAST`.
        (!unsafe { lane.as_ref() }.busy.replace(true)).then_some(lane)
    }

    /// A lane for one call, where the thread local cannot serve.
    #[cold]
    fn borrow(&self) -> &Lane {
        let lane = self.acquire();
        // SAFETY: this list holds the lane for as long as it lives.
        unsafe { &*Arc::as_ptr(&lane) }
    }

    /// A lane that nobody owns, or else a new one.
    #[cold]
    fn acquire(&self) -> Arc<Lane> {
        // SAFETY: this list holds the lane for as long as it lives.
        let unowned = self.listed().find(|lane| unsafe { lane.as_ref() }.try_own());
        // SAFETY: as above, and the list's handle is what the pointer was made of.
        unowned.map_or_else(|| self.add(), |lane| unsafe { share(lane.as_ptr()) })
    }

    fn add(&self) -> Arc<Lane> {
        // Ordering: Relaxed for both: the number alone matters; the other was set before there were producers.
        let is_early = self.count.fetch_add(1, Ordering::Relaxed) < HOLDERS;
        let may_hold = is_early && self.holding.load(Ordering::Relaxed);
        let lane = Arc::into_raw(Arc::new(Lane::owned(may_hold, self.participant()))).cast_mut();
        // Ordering: Relaxed, the value is only linked to.
        let mut seen = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: nobody else can reach the lane yet.
            unsafe { (*lane).next = seen };
            // Ordering: Release, pairs with the Acquire of `listed`: the lane is whole. So are those behind it, for each
            // that came later continues the release sequences of those before.
            match self.head.compare_exchange_weak(seen, lane, Ordering::Release, Ordering::Relaxed) {
                // SAFETY: the list holds it for as long as `self` lives, by the handle that the pointer was made of.
                Ok(_) => return unsafe { share(lane) },
                Err(now) => seen = now,
            }
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
        self.listed().map(|lane| unsafe { lane.as_ref() })
    }

    /// The same, by the pointers that a further handle can be made of.
    fn listed(&self) -> impl Iterator<Item = NonNull<Lane>> {
        // Ordering: Acquire, pairs with the Release in `add`.
        let head = NonNull::new(self.head.load(Ordering::Acquire));
        // SAFETY: the list holds the lane for as long as it lives.
        std::iter::successors(head, |lane| NonNull::new(unsafe { lane.as_ref() }.next))
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
        if self.is_borrowed {
            self.lane.release();
        } else {
            self.lane.busy.set(false);
        }
    }
}

/// A further handle to a lane of a list.
///
/// # Safety
///
/// The pointer is the one that `Arc::into_raw` gave, not one to what a reference borrows, and the list lives.
unsafe fn share(lane: *const Lane) -> Arc<Lane> {
    // SAFETY: as the caller says; the list's own handle is not given up.
    let listed = ManuallyDrop::new(unsafe { Arc::from_raw(lane) });
    Arc::clone(&listed)
}

impl Drop for Lanes {
    fn drop(&mut self) {
        // Ordering: Relaxed, the last owner looks.
        let mut next = self.head.load(Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: the list's own handle, given up once; a thread local may hold another.
            let lane = unsafe { Arc::from_raw(next) };
            next = lane.next;
        }
    }
}

impl Lane {
    /// One that is in no list yet.
    fn owned(may_hold: bool, participant: Participant) -> Self {
        Self {
            next: std::ptr::null_mut(),
            may_hold,
            owned: AtomicBool::new(true),
            maker: thread_token(),
            busy: Cell::new(false),
            tally: CachePadded::new(Tally::new()),
            local: UnsafeCell::new(Local::new(participant)),
        }
    }

    fn try_own(&self) -> bool {
        // Ordering: Acquire, pairs with `release`: what the former owner left in `local` is visible. The
        // load before it keeps the search from writing to lanes that are owned.
        self.maker == thread_token()
            && !self.owned.load(Ordering::Relaxed)
            && self.owned.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn release(&self) {
        // Ordering: Release, pairs with `try_own`.
        self.owned.store(false, Ordering::Release);
    }
}

thread_local! {
    static CACHE: Cache = const { Cache([const { RefCell::new(None) }; SLOTS]) };
    /// The list and the lane of the thread's last call, one of those in its cache. It has no destructor, so it is
    /// reached in one step; 0 is no list.
    static LAST: Cell<(u64, NonNull<Lane>)> = const { Cell::new((0, NonNull::dangling())) };
}

/// The lanes that a thread owns, found by the shard's number.
struct Cache([RefCell<Option<Owned>>; SLOTS]);

struct Owned {
    lanes: u64,
    lane: Arc<Lane>,
}

impl Cache {
    /// The thread's lane of that list, marked as busy; none if it is busy in a call further out.
    #[inline]
    fn enter(&self, lanes: &Lanes) -> Option<NonNull<Lane>> {
        let slot = &self.0[lanes.id as usize % SLOTS];
        if let Some(owned) = &*slot.try_borrow().ok()?
            && owned.lanes == lanes.id
        {
            LAST.set((lanes.id, NonNull::from(&*owned.lane)));
            return (!owned.lane.busy.replace(true)).then(|| NonNull::from(&*owned.lane));
        }
        Self::refill(slot, lanes)
    }

    /// Puts a lane of that list in the place of another shard's, unless that one is busy.
    #[cold]
    fn refill(slot: &RefCell<Option<Owned>>, lanes: &Lanes) -> Option<NonNull<Lane>> {
        let is_busy = |owned: &Owned| owned.lane.busy.get();
        if slot.borrow().as_ref().is_some_and(is_busy) {
            return None;
        }
        let lane = lanes.acquire();
        lane.busy.set(true);
        let entered = NonNull::from(&*lane);
        let former = slot.replace(Some(Owned { lanes: lanes.id, lane }));
        drop(former);
        LAST.set((lanes.id, entered));
        Some(entered)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if LAST.get().0 == self.lanes {
            LAST.set((0, NonNull::dangling()));
        }
        self.lane.release();
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests;
