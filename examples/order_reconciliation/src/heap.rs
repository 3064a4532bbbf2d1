//! The engine to compare with: a binary heap behind a mutex, the usual choice without a timing
//! wheel.
//!
//! Entries are small (16 bytes). A slab beside the heap says which entries are still valid. A
//! cancel is lazy: it clears the slab's slot at once and leaves the entry, which is skipped when it
//! reaches the top of the heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shardwheel::Tick;

use crate::engine::{Desk, Driver};
use crate::ledger::OrderRef;

/// Both halves: the mutex lets any thread do anything.
#[derive(Clone, Default)]
pub(crate) struct Heap(Arc<Mutex<Timers>>);

/// Names a scheduled check. The generation distinguishes it from other checks in the same slot.
#[derive(Clone, Copy)]
pub(crate) struct HeapHandle {
    slot: u32,
    generation: u32,
}

#[derive(Default)]
struct Timers {
    heap: BinaryHeap<Reverse<Entry>>,
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    deadline: Tick,
    slot: u32,
    generation: u32,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    order: Option<OrderRef>,
}

impl Heap {
    fn lock(&self) -> MutexGuard<'_, Timers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver for Heap {
    type Desk = Self;

    fn desk(&self, _: u32) -> Self {
        self.clone()
    }

    fn advance(&mut self, now: Tick, limit: usize, due: &mut Vec<OrderRef>) -> bool {
        let mut timers = self.lock();
        for _ in 0..limit {
            let Some(entry) = timers.pop_due(now) else { return false };
            due.extend(timers.take(entry.slot, entry.generation));
        }
        true
    }

    fn next_expiration(&mut self) -> Option<Tick> {
        let mut timers = self.lock();
        timers.skip_cancelled();
        timers.heap.peek().map(|Reverse(entry)| entry.deadline)
    }
}

impl Desk for Heap {
    type Handle = HeapHandle;

    fn schedule(&self, deadline: Tick, order: OrderRef) -> HeapHandle {
        let mut timers = self.lock();
        let slot = timers.fill_slot(order);
        let generation = timers.slots[slot as usize].generation;
        timers.heap.push(Reverse(Entry { deadline, slot, generation }));
        HeapHandle { slot, generation }
    }

    fn cancel(&self, handle: HeapHandle) -> bool {
        self.lock().take(handle.slot, handle.generation).is_some()
    }
}

impl Timers {
    fn fill_slot(&mut self, order: OrderRef) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize].order = Some(order);
            return slot;
        }
        let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 checks are pending");
        self.slots.push(Slot { generation: 0, order: Some(order) });
        slot
    }

    /// Empties a slot and gives it a new generation. `None` if `generation` is past.
    fn take(&mut self, slot: u32, generation: u32) -> Option<OrderRef> {
        let place = &mut self.slots[slot as usize];
        if place.generation != generation {
            return None;
        }
        let order = place.order.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(slot);
        Some(order)
    }

    fn pop_due(&mut self, now: Tick) -> Option<Entry> {
        self.heap.peek().filter(|Reverse(entry)| entry.deadline <= now)?;
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    fn skip_cancelled(&mut self) {
        while let Some(Reverse(entry)) = self.heap.peek() {
            if self.slots[entry.slot as usize].generation == entry.generation {
                return;
            }
            self.heap.pop();
        }
    }
}
