//! The lists of a shard's lanes, and which thread gets which lane. Lists only grow, until the shard
//! ends.

use std::ptr::NonNull;

use super::{Entered, KEEPERS, Kind, Lane, OWNED, STAYING, cache};
use crate::fallible::{Counted, Handle};
use crate::hardware;
use crate::shard::memory::epochs::{Epochs, Participant, Reclaimer};
use crate::shard::memory::slab::{FreeWord, Held};
use crate::shard::shared::advancer_waker::AdvancerWaker;
use crate::sync::plain::{Arc, AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use crate::sync::{Ordering, yield_now};

pub(crate) struct Lanes {
    /// Never used twice in a process, because a thread local may outlive the shard.
    pub(super) id: u64,
    /// One list for each kind of lane. They only grow.
    lists: [List; 3],
    /// The epochs in which the owners of lanes are pinned.
    epochs: Epochs,
    /// Whether threads may hold nodes in lanes made from now on. False in most models, which test
    /// nodes that are left in their lists.
    pub(super) holding: AtomicBool,
    pub(super) turnover: Arc<Turnover>,
}

struct List {
    head: AtomicPtr<Counted<Lane>>,
    /// A count of lanes. `Own`: lanes made, and attempts that found no memory. `Common`: lanes made
    /// or being made. `Extra`: not counted.
    made: AtomicU32,
}

/// The changes of ownership in all lanes of a shard. Written by threads that take lanes over or
/// give them up, read by those threads and the advancer.
pub(super) struct Turnover {
    /// How often a lane has been taken over or given up.
    changes: AtomicU64,
    /// How many lanes threads own, or are about to own.
    owned: AtomicU32,
    pub(super) waker: Arc<AdvancerWaker>,
}

impl Turnover {
    /// Makes the advancer recount its lane totals.
    fn note(&self) {
        // Ordering: Release, pairs with `Lanes::changes`. The fence with which the lane's owner
        // inserts its first timer comes after it.
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Notes that a thread no longer owns its lane.
    pub(super) fn note_given_up(&self) {
        // Ordering: Relaxed, only the number matters; the lane's state says whether the lane is
        // free.
        self.owned.fetch_sub(1, Ordering::Relaxed);
        self.note();
    }

    /// Whether one more thread may own a lane.
    fn has_place(&self) -> bool {
        // Ordering: Relaxed, as above.
        self.owned.load(Ordering::Relaxed) < KEEPERS
    }

    /// Takes one of the [`KEEPERS`] places; false if all are taken.
    fn take_place(&self) -> bool {
        // Ordering: Relaxed, as above.
        if self.owned.fetch_add(1, Ordering::Relaxed) < KEEPERS {
            return true;
        }
        // Ordering: Relaxed, as above.
        self.owned.fetch_sub(1, Ordering::Relaxed);
        false
    }
}

impl Lanes {
    /// Makes lists with a single, common lane; `None` if there is no memory.
    pub(crate) fn new(waker: Arc<AdvancerWaker>) -> Option<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Ordering: Relaxed, only the number matters.
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let holding = AtomicBool::new(!cfg!(shardwheel_loom));
        let turnover = Arc::new(Turnover { changes: AtomicU64::new(0), owned: AtomicU32::new(0), waker });
        let lanes =
            Self { id, lists: [(); 3].map(|()| List::new()), epochs: Epochs::new(), holding, turnover };
        // In models, threads have lanes of their own.
        let _first = cfg!(shardwheel_loom) || {
            // SAFETY: the list holds the lane.
            unsafe { lanes.add_common()?.as_ref() }.release(OWNED)
        };
        Some(lanes)
    }

    /// How often a lane has been taken over or given up. The advancer reads it after its fence: see
    /// [`lane_totals`](crate::shard::advancer::lane_totals).
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        // Ordering: Acquire, pairs with `Turnover::note`: the lane that was taken over is in the
        // list.
        self.turnover.changes.load(Ordering::Acquire)
    }

    /// Adds a participant, which may read memory that the advancer takes away; `None` if there is
    /// no memory.
    pub(crate) fn participant(&self) -> Option<Participant> {
        self.epochs.join()
    }

    /// A lane that the caller alone uses while it keeps the returned handle. Lock-free while there
    /// is memory.
    #[inline]
    pub(crate) fn enter(&self) -> Entered<'_> {
        // Models end before the locals of their threads do. So a model's call is lent a lane, which
        // keeps nodes all the same.
        let own = if cfg!(shardwheel_loom) { None } else { cache::enter(self) };
        match own {
            // SAFETY: this list holds the lane for as long as it lives.
            Some(lane) => Entered::new(unsafe { lane.as_ref() }, false),
            None => self.enter_lent(),
        }
    }

    /// A lane for one call.
    #[cold]
    pub(super) fn enter_lent(&self) -> Entered<'_> {
        loop {
            if let Some(lane) = self.borrow() {
                return Entered::new(lane, true);
            }
            // There is no memory, and another thread is in a call with the one lane that was made
            // with the shard. The thread's own lane may be free again: the advancer takes it away
            // for a moment.
            yield_now();
            if let Some(lane) = cache::enter(self).filter(|_| !cfg!(shardwheel_loom)) {
                // SAFETY: this list holds the lane for as long as it lives.
                return Entered::new(unsafe { lane.as_ref() }, false);
            }
        }
    }

    /// A lane for one call; `None` if there is no memory.
    pub(super) fn borrow(&self) -> Option<&Lane> {
        let lane = if cfg!(shardwheel_loom) { self.find_or_add(Kind::Own) } else { self.common() };
        // SAFETY: this list holds the lane for as long as it lives.
        lane.map(|lane| &**unsafe { lane.as_ref() })
    }

    /// A common or extra lane, which the caller owns for one call; `None` if there is no memory.
    fn common(&self) -> Option<NonNull<Counted<Lane>>> {
        // First the lane that the thread was last lent: if many threads are stopped within calls,
        // most of the others are taken.
        let last = cache::lent(self).filter(|&lane| self.try_own(lane));
        let lane = match last.or_else(|| self.find(Kind::Common)) {
            Some(lane) => self.join(lane),
            // Ordering: Relaxed, a hint; `add_common` decides.
            None if self.list(Kind::Common).made.load(Ordering::Relaxed) < STAYING => self.add_common(),
            None => self.find_or_add(Kind::Extra),
        }?;
        // SAFETY: this list holds the lane for as long as it lives.
        if unsafe { lane.as_ref() }.kind == Kind::Common {
            cache::note_lent(self, lane);
        }
        Some(lane)
    }

    /// Whether [`acquire`](Self::acquire) may have a lane for one more thread.
    #[inline]
    pub(super) fn has_place(&self) -> bool {
        self.turnover.has_place()
    }

    /// The right to take memory away; `None` if it is given out, or there is no memory.
    pub(in crate::shard::shared) fn reclaimer(&self) -> Option<Reclaimer> {
        self.epochs.reclaimer()
    }

    /// A lane that the calling thread owns from now on. `None` if [`KEEPERS`] threads own one, or
    /// there is no memory.
    #[cold]
    pub(super) fn acquire(&self) -> Option<Handle<Lane>> {
        if !self.turnover.take_place() {
            return None;
        }
        let lane = self.find_or_add(Kind::Own);
        if lane.is_none() {
            self.turnover.note_given_up();
        }
        // SAFETY: this list holds the lane for as long as it lives.
        lane.map(|lane| unsafe { Handle::further(lane) })
    }

    /// A lane that has no owner, or else a new lane. The caller owns it. `None` if there is no
    /// memory.
    fn find_or_add(&self, kind: Kind) -> Option<NonNull<Counted<Lane>>> {
        match self.find(kind) {
            Some(lane) => self.join(lane),
            None => self.add(kind),
        }
    }

    /// Finds a lane that had no owner; the caller owns it now.
    fn find(&self, kind: Kind) -> Option<NonNull<Counted<Lane>>> {
        self.list(kind).lanes().find(|&lane| self.try_own(lane))
    }

    fn try_own(&self, lane: NonNull<Counted<Lane>>) -> bool {
        // SAFETY: this list holds the lane for as long as it lives.
        unsafe { lane.as_ref() }.try_own()
    }

    /// Lets a lane that the caller owns join the epochs. If there is no memory, releases the lane
    /// and returns `None`.
    fn join(&self, of_list: NonNull<Counted<Lane>>) -> Option<NonNull<Counted<Lane>>> {
        // SAFETY: this list holds the lane for as long as it lives.
        let lane = unsafe { of_list.as_ref() };
        // SAFETY: the caller owns the lane and is in no call that uses it; the advancer takes only
        // other parts.
        let participant = unsafe { &mut (*lane.local.get()).participant };
        if lane.kind == Kind::Own || !participant.has_joined() {
            // Before the owner's first count: an advancer that sees what the owner has done sees
            // this change.
            self.turnover.note();
        }
        (self.epochs.join_again(participant) || lane.release(OWNED)).then_some(of_list)
    }

    /// Makes a common lane, or an extra lane if there are [`STAYING`] common ones.
    fn add_common(&self) -> Option<NonNull<Counted<Lane>>> {
        let made = &self.list(Kind::Common).made;
        // Ordering: Relaxed for all, a count. The place is taken before the lane is made, so there
        // are never too many common lanes.
        if made.fetch_add(1, Ordering::Relaxed) >= STAYING {
            made.fetch_sub(1, Ordering::Relaxed);
            return self.add(Kind::Extra);
        }
        let lane = self.add(Kind::Common);
        if lane.is_none() {
            made.fetch_sub(1, Ordering::Relaxed);
        }
        lane
    }

    /// Makes a lane that the caller owns; `None` if there is no memory.
    fn add(&self, kind: Kind) -> Option<NonNull<Counted<Lane>>> {
        let participant = self.participant()?;
        // Ordering: Relaxed, only the number matters. A number used in vain makes the shares of
        // later lanes smaller.
        let number = if kind == Kind::Own { self.list(kind).made.fetch_add(1, Ordering::Relaxed) } else { 0 };
        let mut lane = Lane::owned(kind, number, Arc::clone(&self.turnover), participant);
        // Ordering: Relaxed, it was set before there were producers.
        lane.may_hold = kind == Kind::Own && self.holding.load(Ordering::Relaxed);
        let lane = self.list(kind).publish(Handle::new(lane)?);
        // Before the owner's first count, as in `join`.
        self.turnover.note();
        lane
    }

    fn list(&self, kind: Kind) -> &List {
        &self.lists[kind as usize]
    }

    /// Takes the nodes that lanes keep (free nodes and held nodes) from owners that are in no call.
    /// Does nothing if the system offers no `membarrier`. For the advancer.
    pub(crate) fn revoke(&self, mut take_in: impl FnMut((FreeWord, Held))) {
        if !hardware::has_membarrier() {
            return;
        }
        let keepers = || self.list(Kind::Own).iter();
        // Ordering: Relaxed, the barrier orders it.
        keepers().for_each(|lane| lane.revoked.store(true, Ordering::Relaxed));
        let has_passed = hardware::membarrier();
        for lane in keepers() {
            if let Some(kept) = has_passed.then(|| lane.revoke_nodes()).flatten() {
                take_in(kept);
            }
            // Ordering: Release, pairs with `begin_call`: the advancer has finished with `local`.
            lane.revoked.store(false, Ordering::Release);
        }
    }

    /// Lets threads hold nodes in lanes made from now on, also in a model.
    #[cfg(feature = "model")]
    pub(crate) fn let_hold(&self) {
        // Ordering: Relaxed, before there are producers.
        self.holding.store(true, Ordering::Relaxed);
    }

    /// All lanes, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Lane> {
        self.lists.iter().flat_map(List::iter)
    }

    /// A further handle to each lane.
    pub(in crate::shard) fn handles(&self) -> impl Iterator<Item = Handle<Lane>> {
        // SAFETY: the list holds each lane for as long as `self` lives.
        self.lists.iter().flat_map(List::lanes).map(|lane| unsafe { Handle::further(lane) })
    }
}

impl List {
    fn new() -> Self {
        Self { head: AtomicPtr::new(std::ptr::null_mut()), made: AtomicU32::new(0) }
    }

    /// Puts a lane into the list, which keeps the handle. Returns the pointer from which a further
    /// handle can be made.
    fn publish(&self, lane: Handle<Lane>) -> Option<NonNull<Counted<Lane>>> {
        // Ordering: Relaxed, the value is only linked to.
        let mut seen = self.head.load(Ordering::Relaxed);
        let lane = NonNull::new(lane.into_raw())?;
        loop {
            // Ordering: Relaxed, published below.
            // SAFETY: the handle is the list's, which holds it for as long as it lives.
            unsafe { lane.as_ref() }.next.store(seen, Ordering::Relaxed);
            // Ordering: Release, pairs with the Acquire of `lanes`: the lane is complete. So are
            // the lanes behind it, because each later push continues the release sequences of the
            // earlier ones.
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            match self.head.compare_exchange_weak(seen, lane.as_ptr(), success, failure) {
                Ok(_) => return Some(lane),
                Err(now) => seen = now,
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Lane> {
        // SAFETY: the list holds each lane for as long as `self` lives.
        self.lanes().map(|lane| &**unsafe { lane.as_ref() })
    }

    /// The lanes, as pointers from which a further handle can be made.
    fn lanes(&self) -> impl Iterator<Item = NonNull<Counted<Lane>>> {
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

impl Drop for List {
    fn drop(&mut self) {
        // Ordering: Relaxed, the last owner is here.
        let mut next = NonNull::new(self.head.load(Ordering::Relaxed));
        while let Some(lane) = next {
            // SAFETY: the list's own handle, given up once; a thread local may hold another.
            let lane = unsafe { Handle::from_raw(lane) };
            // Ordering: Relaxed, as above.
            next = NonNull::new(lane.next.load(Ordering::Relaxed));
            lane.end();
        }
    }
}
