//! The yardstick: a binary heap with lazy cancellation.
//!
//! [`LazyHeap`] keeps the deadline and a handle in the heap and the payloads in a slab whose slots
//! have a generation. A cancel bumps the generation and frees the slot, in O(1); the stale heap
//! entry is skipped when it is popped. Stale entries stay until their deadline: compaction would
//! cost time and favour the wheel where time is measured. So the memory of cancelled timers is not
//! compared.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::structure::{First, Locked, Removal, Structure};

const NO_SLOT: u32 = u32::MAX;

/// An item and its deadline; 16 bytes if the item has 8. The earliest is the greatest, which
/// [`BinaryHeap`] needs. Items are not compared.
pub(crate) struct Due<T> {
    pub(crate) deadline: u64,
    pub(crate) item: T,
}

impl<T> Ord for Due<T> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        other.deadline.cmp(&self.deadline)
    }
}

impl<T> PartialOrd for Due<T> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Self) -> bool {
        self.deadline == other.deadline
    }
}

impl<T> Eq for Due<T> {}

/// Takes the earliest entry off `heap` if it is due by `now`.
#[inline]
pub(crate) fn pop_due<T>(heap: &mut BinaryHeap<Due<T>>, now: u64) -> Option<Due<T>> {
    if heap.peek()?.deadline > now {
        return None;
    }
    heap.pop()
}

/// Names a timer in a [`LazyHeap`].
#[derive(Clone, Copy)]
pub(crate) struct HeapHandle {
    slot: u32,
    generation: u32,
}

struct Slot {
    payload: u64,
    generation: u32,
    next_free: u32,
}

/// A heap and a slab, so that a cancel is O(1).
pub(crate) struct LazyHeap {
    heap: BinaryHeap<Due<HeapHandle>>,
    slots: Vec<Slot>,
    first_free: u32,
}

pub(crate) type Heap = Locked<LazyHeap>;

impl LazyHeap {
    /// Stores a payload in a free slot, or in a new slot if none is free.
    #[inline]
    fn store(&mut self, payload: u64) -> HeapHandle {
        if self.first_free == NO_SLOT {
            let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 timers");
            self.slots.push(Slot { payload, generation: 0, next_free: NO_SLOT });
            return HeapHandle { slot, generation: 0 };
        }
        let slot = self.first_free;
        let free = &mut self.slots[slot as usize];
        self.first_free = free.next_free;
        free.payload = payload;
        HeapHandle { slot, generation: free.generation }
    }

    /// Takes the payload out and frees the slot if `handle` still names the slot's timer.
    #[inline]
    fn take(&mut self, handle: HeapHandle) -> Option<u64> {
        let slot = &mut self.slots[handle.slot as usize];
        if slot.generation != handle.generation {
            return None;
        }
        slot.generation = slot.generation.wrapping_add(1);
        slot.next_free = self.first_free;
        self.first_free = handle.slot;
        Some(slot.payload)
    }
}

impl Structure for LazyHeap {
    const NAMES: [&'static str; 2] = ["heap", "heap without a lock"];

    type Handle = HeapHandle;

    fn new() -> Self {
        Self { heap: BinaryHeap::new(), slots: Vec::new(), first_free: NO_SLOT }
    }

    #[inline]
    fn schedule(&mut self, deadline: u64, payload: u64) -> HeapHandle {
        let handle = self.store(payload);
        self.heap.push(Due { deadline, item: handle });
        handle
    }

    #[inline]
    fn pop(&mut self, now: u64) -> Option<(u64, u64)> {
        loop {
            let Due { deadline, item } = pop_due(&mut self.heap, now)?;
            if let Some(payload) = self.take(item) {
                return Some((deadline, payload));
            }
        }
    }
}

/// The entry may be stale; then no timer is due at its deadline.
impl First for LazyHeap {
    #[inline]
    fn next_expiration(&self) -> Option<u64> {
        self.heap.peek().map(|first| first.deadline)
    }
}

impl Removal for LazyHeap {
    #[inline]
    fn cancel(&mut self, handle: HeapHandle) -> Option<u64> {
        self.take(handle)
    }
}
