//! The yardstick: a binary heap behind a mutex, with lazy cancellation.
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
use std::sync::{Arc, Mutex, MutexGuard};

use crate::bare_heap::{BATCH, Due, pop_due};
use crate::{Cancel, Checksum, Engine, Producer};

const NO_SLOT: u32 = u32::MAX;

/// Names a timer in a [`Heap`].
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

struct State {
    heap: BinaryHeap<Due<HeapHandle>>,
    slots: Vec<Slot>,
    first_free: u32,
}

impl State {
    fn new() -> Self {
        Self { heap: BinaryHeap::new(), slots: Vec::new(), first_free: NO_SLOT }
    }

    #[inline]
    fn schedule(&mut self, deadline: u64, payload: u64) -> HeapHandle {
        let handle = self.store(payload);
        self.heap.push(Due { deadline, item: handle });
        handle
    }

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

    /// The earliest timer due by `now`; stale entries on the way to it are dropped.
    #[inline]
    fn pop(&mut self, now: u64) -> Option<Due<u64>> {
        loop {
            let Due { deadline, item } = pop_due(&mut self.heap, now)?;
            if let Some(payload) = self.take(item) {
                return Some(Due { deadline, item: payload });
            }
        }
    }
}

/// A heap behind a mutex, with a slab beside it so that a timer can be cancelled in O(1).
#[derive(Clone)]
pub struct Heap {
    state: Arc<Mutex<State>>,
}

impl Heap {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding the heap")
    }
}

impl Engine for Heap {
    const NAME: &'static str = "heap";

    type Producer = Self;

    fn new() -> Self {
        Self { state: Arc::new(Mutex::new(State::new())) }
    }

    fn producer(&self) -> Self {
        self.clone()
    }

    fn advance(&mut self, now: u64, fired: &mut Checksum) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            {
                let mut state = self.lock();
                batch.extend(std::iter::from_fn(|| state.pop(now)).take(BATCH));
            }
            if batch.is_empty() {
                return;
            }
            batch.drain(..).for_each(|due: Due<u64>| fired.add(due.deadline, due.item));
        }
    }
}

impl Producer for Heap {
    type Handle = HeapHandle;

    #[inline]
    fn schedule(&self, deadline: u64, payload: u64) -> HeapHandle {
        self.lock().schedule(deadline, payload)
    }
}

impl Cancel for Heap {
    #[inline]
    fn cancel(&self, handle: HeapHandle) -> Option<u64> {
        self.lock().take(handle)
    }

    #[inline]
    fn extend(&self, handle: HeapHandle, deadline: u64) -> Option<HeapHandle> {
        self.lock().extend(handle, deadline)
    }
}
