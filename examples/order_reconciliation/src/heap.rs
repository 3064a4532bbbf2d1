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

use crate::clock;
use crate::engine::{Desk, Driver};
use crate::ledger::{Micros, OrderRef};

/// The single thread's half.
pub(crate) struct HeapDriver {
    timers: Arc<Mutex<Timers>>,
}

/// The producers' half.
#[derive(Clone)]
pub(crate) struct HeapDesk {
    timers: Arc<Mutex<Timers>>,
}

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

impl HeapDriver {
    pub(crate) fn new() -> Self {
        Self { timers: Arc::default() }
    }
}

impl Driver for HeapDriver {
    type Desk = HeapDesk;

    fn desk(&self, _: u32) -> HeapDesk {
        HeapDesk { timers: Arc::clone(&self.timers) }
    }

    fn advance(&mut self, now: Tick, limit: usize, due: &mut Vec<OrderRef>) -> bool {
        let mut timers = lock(&self.timers);
        for _ in 0..limit {
            let Some(entry) = timers.pop_due(now) else { return false };
            due.extend(timers.take(entry.slot, entry.generation));
        }
        true
    }

    fn next_expiration(&mut self) -> Option<Tick> {
        let mut timers = lock(&self.timers);
        timers.skip_cancelled();
        timers.heap.peek().map(|Reverse(entry)| entry.deadline)
    }
}

impl Desk for HeapDesk {
    type Deadline = Tick;
    type Handle = HeapHandle;

    fn deadline(&self, due: Micros) -> Tick {
        clock::tick_from(due)
    }

    fn schedule(&self, deadline: Tick, order: OrderRef) -> Option<HeapHandle> {
        let mut timers = lock(&self.timers);
        let slot = timers.fill_slot(order)?;
        let generation = timers.slots[slot as usize].generation;
        timers.heap.push(Reverse(Entry { deadline, slot, generation }));
        Some(HeapHandle { slot, generation })
    }

    fn cancel(&self, handle: HeapHandle) -> bool {
        lock(&self.timers).take(handle.slot, handle.generation).is_some()
    }
}

impl Timers {
    /// Fills a free slot; `None` if no slot number is left.
    fn fill_slot(&mut self, order: OrderRef) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize].order = Some(order);
            return Some(slot);
        }
        let slot = u32::try_from(self.slots.len()).ok()?;
        self.slots.push(Slot { generation: 0, order: Some(order) });
        Some(slot)
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

fn lock(timers: &Mutex<Timers>) -> MutexGuard<'_, Timers> {
    timers.lock().unwrap_or_else(PoisonError::into_inner)
}
