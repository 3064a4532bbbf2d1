//! The lanes that a thread owns, found by the number of the shard's lists.
//!
//! A call looks at the lane of the thread's last call first, which is reached in one step. If that
//! is another shard's, the call searches a table of the thread's own, by open addressing. Shards
//! are numbered consecutively, so those in use at once rarely collide. The table grows with the
//! number of shards that the thread uses. Before it grows, lanes whose shard has ended leave it.
//!
//! If there is no memory for the table, or the thread is ending, or enough threads own a lane, the
//! call is lent a lane.
//!
//! Only the thread itself uses its table.

use std::cell::{Cell, RefCell};

use super::Lanes;
use super::lane::{Entered, LaneRef, Listed, Lists, OwnedLane};

/// The table's first size; a power of two.
const SLOTS: usize = 16;

thread_local! {
    static CACHE: RefCell<Cache> = const { RefCell::new(Cache { slots: Vec::new(), used: 0 }) };
    /// The lane that the thread was last lent.
    static LENT: Cell<LaneRef> = const { Cell::new(LaneRef::NONE) };
}

/// The lane that the thread was last lent, if it is in these lists.
pub(super) fn lent(lists: &Lists) -> Option<Listed<'_>> {
    LENT.get().get(lists)
}

pub(super) fn note_lent(lane: Listed<'_>) {
    LENT.set(lane.note());
}

/// Enters the calling thread's own lane. `None` if the thread is already in a call that uses it,
/// the advancer is revoking it, or the thread has none.
#[inline]
pub(super) fn enter(lanes: &Lanes) -> Option<Entered<'_>> {
    if !lanes.lists.have_last() && !find(lanes) {
        return None;
    }
    lanes.lists.enter_last()
}

/// Makes the thread's own lane the lane of its last call; false if the thread has none.
#[cold]
fn find(lanes: &Lanes) -> bool {
    // The thread may be ending. Nothing called while the cache is borrowed uses the cache again.
    let look = |cache: &RefCell<Cache>| {
        let cache = cache.try_borrow().ok()?;
        Some(cache.find(lanes.lists.number()).map(OwnedLane::note_last).is_some())
    };
    match CACHE.try_with(look).ok().flatten() {
        Some(is_there) => is_there || add(lanes),
        None => false,
    }
}

/// Gives the thread a lane; false if it has to be lent one.
fn add(lanes: &Lanes) -> bool {
    if !lanes.has_place() {
        return false;
    }
    let has_room = |cache: &RefCell<Cache>| cache.try_borrow_mut().is_ok_and(|mut cache| cache.make_room());
    if !CACHE.try_with(has_room).unwrap_or(false) {
        return false;
    }
    let Some(owned) = lanes.acquire() else { return false };
    owned.note_last();
    CACHE.try_with(|cache| cache.borrow_mut().insert(owned)).is_ok()
}

struct Cache {
    /// Empty, or a power of two of slots, less than half of them in use.
    slots: Vec<Option<OwnedLane>>,
    used: usize,
}

impl Cache {
    /// The thread's lane in the lists with this number.
    fn find(&self, lists: u64) -> Option<&OwnedLane> {
        let mask = self.slots.len().checked_sub(1)?;
        let slots = (lists as usize..).map(|at| &self.slots[at & mask]);
        // The search ends: there is an empty slot.
        slots.map_while(Option::as_ref).find(|owned| owned.lists() == lists)
    }

    /// Makes room for one more lane; false if there is no memory.
    fn make_room(&mut self) -> bool {
        if 2 * (self.used + 1) < self.slots.len() {
            return true;
        }
        let alive = self.slots.iter().flatten().filter(|owned| owned.is_alive()).count();
        let size = (4 * (alive + 1)).next_power_of_two().max(SLOTS);
        let mut slots = Vec::new();
        if slots.try_reserve_exact(size).is_err() {
            return false;
        }
        slots.resize_with(size, || None);
        let former = std::mem::replace(&mut self.slots, slots);
        self.used = 0;
        // Giving up a lane whose shard has ended calls no other code.
        former.into_iter().flatten().filter(OwnedLane::is_alive).for_each(|owned| self.insert(owned));
        true
    }

    fn insert(&mut self, owned: OwnedLane) {
        let mask = self.slots.len() - 1;
        let empty = (owned.lists() as usize..).map(|at| at & mask).find(|&at| self.slots[at].is_none());
        if let Some(at) = empty {
            self.slots[at] = Some(owned);
            self.used += 1;
        }
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use super::*;
    use crate::shard::shared::advancer_waker::AdvancerWaker;
    use crate::sync::plain::Arc;

    fn lanes() -> Lanes {
        Lanes::new(Arc::new(AdvancerWaker::new().expect("there is memory"))).expect("there is memory")
    }

    fn size() -> usize {
        CACHE.with_borrow(|cache| cache.slots.len())
    }

    #[test]
    fn a_thread_keeps_its_lanes_of_hundreds_of_shards() {
        let all: Vec<_> = (0..500).map(|_| lanes()).collect();
        for _ in 0..3 {
            assert!(all.iter().all(|lanes| !lanes.enter().look().1));
        }
        assert!(all.iter().all(|lanes| lanes.iter().count() == 2));
        assert!(size() <= 4 * 1024);
    }

    #[test]
    fn lanes_of_shards_that_have_ended_leave_the_table() {
        for _ in 0..10 * SLOTS {
            assert!(!lanes().enter().look().1);
        }
        assert!(size() <= 2 * SLOTS, "{} slots", size());
    }
}
