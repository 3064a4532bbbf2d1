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
use std::ptr::NonNull;

use super::{Lane, Lanes};
use crate::fallible::{Counted, Handle};

/// The table's first size; a power of two.
const SLOTS: usize = 16;

thread_local! {
    static CACHE: RefCell<Cache> = const { RefCell::new(Cache { slots: Vec::new(), used: 0 }) };
    /// The number of the lists and the lane of the thread's last call; the lane is in the cache.
    /// This thread local has no destructor, so it is reached in one step. Number 0 means no lane.
    static LAST: Cell<(u64, NonNull<Lane>)> = const { Cell::new((0, NonNull::dangling())) };
    /// The number of the lists from which the thread was last lent a lane, and that lane.
    static LENT: Cell<(u64, NonNull<Counted<Lane>>)> = const { Cell::new((0, NonNull::dangling())) };
}

/// The lane of these lists that the thread was last lent.
pub(super) fn lent(lanes: &Lanes) -> Option<NonNull<Counted<Lane>>> {
    let (list, lane) = LENT.get();
    // The lists exist, so the lane does.
    (list == lanes.id).then_some(lane)
}

pub(super) fn note_lent(lanes: &Lanes, lane: NonNull<Counted<Lane>>) {
    LENT.set((lanes.id, lane));
}

/// The calling thread's own lane of these lists, marked as busy. `None` if the thread is already in
/// a call that uses it, the advancer is revoking it, or the thread has none.
#[inline]
pub(super) fn enter(lanes: &Lanes) -> Option<NonNull<Lane>> {
    let (list, lane) = LAST.get();
    let lane = if list == lanes.id { lane } else { find(lanes)? };
    // SAFETY: the thread's cache holds the lane; otherwise the drop of its `Owned` would have
    // cleared `LAST`.
    unsafe { lane.as_ref() }.begin_call().then_some(lane)
}

#[cold]
fn find(lanes: &Lanes) -> Option<NonNull<Lane>> {
    // The thread may be ending. Nothing called while the cache is borrowed uses the cache again.
    let look = |cache: &RefCell<Cache>| cache.try_borrow().ok().map(|cache| cache.find(lanes.id));
    let lane = match CACHE.try_with(look).ok().flatten()? {
        Some(lane) => lane,
        None => add(lanes)?,
    };
    LAST.set((lanes.id, lane));
    Some(lane)
}

/// Gives the thread a lane of these lists.
fn add(lanes: &Lanes) -> Option<NonNull<Lane>> {
    if !lanes.has_place() {
        return None;
    }
    let has_room = |cache: &RefCell<Cache>| cache.try_borrow_mut().is_ok_and(|mut cache| cache.make_room());
    if !CACHE.try_with(has_room).ok()? {
        return None;
    }
    let owned = Owned { lanes: lanes.id, lane: lanes.acquire()? };
    let lane = NonNull::from(&*owned.lane);
    CACHE.try_with(|cache| cache.borrow_mut().insert(owned)).ok()?;
    Some(lane)
}

struct Owned {
    lanes: u64,
    lane: Handle<Lane>,
}

struct Cache {
    /// Empty, or a power of two of slots, less than half of them in use.
    slots: Vec<Option<Owned>>,
    used: usize,
}

impl Cache {
    fn find(&self, lanes: u64) -> Option<NonNull<Lane>> {
        let mask = self.slots.len().checked_sub(1)?;
        let slots = (lanes as usize..).map(|at| &self.slots[at & mask]);
        // The search ends: there is an empty slot.
        let owned = slots.map_while(Option::as_ref).find(|owned| owned.lanes == lanes)?;
        Some(NonNull::from(&*owned.lane))
    }

    /// Makes room for one more lane; false if there is no memory.
    fn make_room(&mut self) -> bool {
        if 2 * (self.used + 1) < self.slots.len() {
            return true;
        }
        let is_alive = |owned: &Owned| owned.lane.count() > 1;
        let alive = self.slots.iter().flatten().filter(|owned| is_alive(owned)).count();
        let size = (4 * (alive + 1)).next_power_of_two().max(SLOTS);
        let mut slots = Vec::new();
        if slots.try_reserve_exact(size).is_err() {
            return false;
        }
        slots.resize_with(size, || None);
        let former = std::mem::replace(&mut self.slots, slots);
        self.used = 0;
        // Giving up a lane whose shard has ended calls no other code.
        former.into_iter().flatten().filter(is_alive).for_each(|owned| self.insert(owned));
        true
    }

    fn insert(&mut self, owned: Owned) {
        let mask = self.slots.len() - 1;
        let empty = (owned.lanes as usize..).map(|at| at & mask).find(|&at| self.slots[at].is_none());
        if let Some(at) = empty {
            self.slots[at] = Some(owned);
            self.used += 1;
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if LAST.get().0 == self.lanes {
            LAST.set((0, NonNull::dangling()));
        }
        self.lane.give_up();
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
            assert!(all.iter().all(|lanes| !lanes.enter().is_borrowed));
        }
        assert!(all.iter().all(|lanes| lanes.iter().count() == 2));
        assert!(size() <= 4 * 1024);
    }

    #[test]
    fn lanes_of_shards_that_have_ended_leave_the_table() {
        for _ in 0..10 * SLOTS {
            assert!(!lanes().enter().is_borrowed);
        }
        assert!(size() <= 2 * SLOTS, "{} slots", size());
    }
}
