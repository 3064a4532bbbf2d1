//! Which thread gets which lane, and when a lane is made.

use super::lane::{Entered, Lane, Listed, Lists, OwnedLane, Owning};
use super::turnover::Turnover;
use super::{Kind, STAYING, cache};
use crate::shard::memory::epochs::{Epochs, Participant, Reclaimer};
use crate::shard::memory::slab::{FreeWord, Held};
use crate::shard::shared::advancer_waker::AdvancerWaker;
use crate::sync::plain::{Arc, AtomicBool, AtomicU32};
use crate::sync::{Ordering, yield_now};

pub(crate) struct Lanes {
    pub(super) lists: Lists,
    /// A count of lanes, for each kind. `Own`: lanes made, and attempts that found no memory.
    /// `Common`: lanes made or being made. `Extra`: not counted.
    made: [AtomicU32; 3],
    /// The epochs in which the owners of lanes are pinned.
    epochs: Epochs,
    /// Whether threads may hold nodes in lanes made from now on. False in most models, which test
    /// nodes that are left in their lists.
    pub(super) holding: AtomicBool,
    pub(super) turnover: Arc<Turnover>,
}

impl Lanes {
    /// Makes lists with a single, common lane; `None` if there is no memory.
    pub(crate) fn new(waker: Arc<AdvancerWaker>) -> Option<Self> {
        let lanes = Self {
            lists: Lists::new(),
            made: [(); 3].map(|()| AtomicU32::new(0)),
            epochs: Epochs::new(),
            holding: AtomicBool::new(!cfg!(shardwheel_loom)),
            turnover: Arc::new(Turnover::new(waker)),
        };
        if !cfg!(shardwheel_loom) {
            // In models, threads have lanes of their own.
            drop(lanes.add_common()?);
        }
        Some(lanes)
    }

    /// How often a lane has been taken over or given up. The advancer reads it after its fence: see
    /// [`lane_totals`](crate::shard::advancer::lane_totals).
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        self.turnover.changes()
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
            Some(entered) => entered,
            None => self.enter_lent(),
        }
    }

    /// A lane for one call.
    #[cold]
    pub(super) fn enter_lent(&self) -> Entered<'_> {
        loop {
            if let Some(entered) = self.borrow() {
                return entered;
            }
            // There is no memory, and another thread is in a call with the one lane that was made
            // with the shard. The thread's own lane may be free again: the advancer takes it away
            // for a moment.
            yield_now();
            if !cfg!(shardwheel_loom)
                && let Some(entered) = cache::enter(self)
            {
                return entered;
            }
        }
    }

    /// A lane for one call; `None` if there is no memory.
    fn borrow(&self) -> Option<Entered<'_>> {
        let owning = if cfg!(shardwheel_loom) { self.find_or_add(Kind::Own) } else { self.common() };
        owning?.lend()
    }

    /// A common or extra lane, which the caller owns for one call; `None` if there is no memory.
    fn common(&self) -> Option<Owning<'_>> {
        // First the lane that the thread was last lent: if many threads are stopped within calls,
        // most of the others are taken.
        let last = cache::lent(&self.lists).and_then(Listed::try_own);
        let owning = match last.or_else(|| self.find(Kind::Common)) {
            Some(owning) => self.join(owning),
            // Ordering: Relaxed, a hint; `add_common` decides.
            None if self.made(Kind::Common).load(Ordering::Relaxed) < STAYING => self.add_common(),
            None => self.find_or_add(Kind::Extra),
        }?;
        if owning.lane().kind == Kind::Common {
            cache::note_lent(owning.lane());
        }
        Some(owning)
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

    /// A lane that the calling thread owns from now on. `None` if as many threads own one as
    /// may, or there is no memory.
    #[cold]
    pub(super) fn acquire(&self) -> Option<OwnedLane> {
        if !self.turnover.take_place() {
            return None;
        }
        let owning = self.find_or_add(Kind::Own);
        if owning.is_none() {
            self.turnover.note_given_up();
        }
        owning.map(Owning::keep)
    }

    /// A lane that has no owner, or else a new lane. The caller owns it. `None` if there is no
    /// memory.
    fn find_or_add(&self, kind: Kind) -> Option<Owning<'_>> {
        match self.find(kind) {
            Some(owning) => self.join(owning),
            None => self.add(kind),
        }
    }

    /// Finds a lane that had no owner; the caller owns it now.
    fn find(&self, kind: Kind) -> Option<Owning<'_>> {
        self.lists.of_kind(kind).find_map(Listed::try_own)
    }

    /// Lets a lane that the caller owns join the epochs. If there is no memory, releases the lane
    /// and returns `None`.
    fn join<'l>(&'l self, mut owning: Owning<'l>) -> Option<Owning<'l>> {
        let is_own = owning.lane().kind == Kind::Own;
        let participant = owning.participant();
        if is_own || !participant.has_joined() {
            // Before the owner's first count: an advancer that sees what the owner has done sees
            // this change.
            self.turnover.note();
        }
        self.epochs.join_again(participant).then_some(owning)
    }

    /// Makes a common lane, or an extra lane if there are [`STAYING`] common ones.
    fn add_common(&self) -> Option<Owning<'_>> {
        let made = self.made(Kind::Common);
        // Ordering: Relaxed for all, a count. The place is taken before the lane is made, so there
        // are never too many common lanes.
        if made.fetch_add(1, Ordering::Relaxed) >= STAYING {
            made.fetch_sub(1, Ordering::Relaxed);
            return self.add(Kind::Extra);
        }
        let owning = self.add(Kind::Common);
        if owning.is_none() {
            made.fetch_sub(1, Ordering::Relaxed);
        }
        owning
    }

    /// Makes a lane that the caller owns; `None` if there is no memory.
    fn add(&self, kind: Kind) -> Option<Owning<'_>> {
        let participant = self.participant()?;
        // Ordering: Relaxed, only the number matters. A number used in vain makes the shares of
        // later lanes smaller.
        let number = if kind == Kind::Own { self.made(kind).fetch_add(1, Ordering::Relaxed) } else { 0 };
        let mut lane = Lane::new(kind, number, Arc::clone(&self.turnover), participant);
        // Ordering: Relaxed, it was set before there were producers.
        lane.may_hold = kind == Kind::Own && self.holding.load(Ordering::Relaxed);
        let owning = self.lists.push(lane)?;
        // Before the owner's first count, as in `join`.
        self.turnover.note();
        Some(owning)
    }

    fn made(&self, kind: Kind) -> &AtomicU32 {
        &self.made[kind as usize]
    }

    /// Takes the nodes that lanes keep (free nodes and held nodes) from owners that are in no call.
    /// Does nothing if the system offers no `membarrier`. For the advancer.
    pub(crate) fn revoke(&self, take_in: impl FnMut((FreeWord, Held))) {
        self.lists.revoke(take_in);
    }

    /// Lets threads hold nodes in lanes made from now on, also in a model.
    #[cfg(any(shardwheel_loom, shardwheel_model))]
    pub(crate) fn let_hold(&self) {
        // Ordering: Relaxed, before there are producers.
        self.holding.store(true, Ordering::Relaxed);
    }

    /// All lanes, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Listed<'_>> {
        self.lists.iter()
    }
}
