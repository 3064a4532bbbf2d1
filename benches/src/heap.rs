//! The yardstick: a binary heap with lazy cancellation, behind a mutex or not.
//!
//! The heap holds the deadline and a handle; payloads stand in a slab, whose slots carry a generation.
//! Cancelling bumps the generation and frees the slot, in O(1); the heap's entry goes stale and is skipped
//! when it is popped. Extending bumps the generation and pushes a second entry.
//!
//! Stale entries stay in the heap until their deadline: there is no compaction, which would cost time and
//! would flatter the wheel in the runs that measure time. So this heap's memory grows with the number of
//! timers cancelled, and the memory of cancelled timers is not compared. A generation has 32 bits and may
//! come round; for a benchmark that is good enough.

use std::collections::BinaryHeap;

use crate::bare_heap::{Due, pop_due};
use crate::structure::{Locked, Removal, Structure};

const NO_SLOT: u32 = u32::MAX;

/// Names a timer in a [`LazyHeap`].
#[derive(Clone, Copy)]
pub struct HeapHandle {
    slot: u32,
    generation: u32,
}

struct Slot {
    payload: u64,
    generation: u32,
    next_free: u32,
}

/// A heap with a slab beside it, so that a timer can be cancelled in O(1).
pub struct LazyHeap {
    heap: BinaryHeap<Due<HeapHandle>>,
    slots: Vec<Slot>,
    first_free: u32,
}

impl LazyHeap {
    /// Puts a payload into a free slot, or into a new one where none is free.
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

    /// Takes the payload out if `handle` is still the slot's timer, and frees the slot.
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

/// A [`LazyHeap`] behind a mutex.
pub type Heap = Locked<LazyHeap>;

impl Structure for LazyHeap {
    const NAME: &'static str = "heap, no lock";
    const NAME_LOCKED: &'static str = "heap";

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

    /// Stale entries on the way to the earliest timer are dropped.
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

impl Removal for LazyHeap {
    #[inline]
    fn cancel(&mut self, handle: HeapHandle) -> Option<u64> {
        self.take(handle)
    }

    #[inline]
    fn extend(&mut self, handle: HeapHandle, deadline: u64) -> Option<HeapHandle> {
        let slot = &mut self.slots[handle.slot as usize];
        if slot.generation != handle.generation {
            return None;
        }
        slot.generation = slot.generation.wrapping_add(1);
        let renewed = HeapHandle { generation: slot.generation, ..handle };
        self.heap.push(Due { deadline, item: renewed });
        Some(renewed)
    }
}
