//! The engine to compare with: a binary heap behind a mutex, the usual choice without a timing
//! wheel.
//!
//! A cancel is lazy: it clears the order's mark at once and leaves the entry, which is skipped when it
//! reaches the top of the heap. An order has one check, so the order itself names it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shardwheel::Tick;

use crate::engine::{Desk, Driver};
use crate::ledger::OrderRef;

/// Both halves: the mutex lets any thread do anything.
#[derive(Clone, Default)]
pub(crate) struct Heap(Arc<Mutex<Timers>>);

#[derive(Default)]
struct Timers {
    /// Small entries: 16 bytes.
    heap: BinaryHeap<Reverse<(Tick, OrderRef)>>,
    /// By page and slot: whether the check of the order is pending.
    pending: Vec<Vec<bool>>,
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
            let Some(order) = timers.pop_due(now) else { return false };
            if mem::take(timers.mark(order)) {
                due.push(order);
            }
        }
        true
    }

    fn next_expiration(&mut self) -> Option<Tick> {
        let mut timers = self.lock();
        while let Some(&Reverse((deadline, order))) = timers.heap.peek() {
            if *timers.mark(order) {
                return Some(deadline);
            }
            timers.heap.pop();
        }
        None
    }
}

impl Desk for Heap {
    type Handle = OrderRef;

    fn schedule(&self, deadline: Tick, order: OrderRef) -> OrderRef {
        let mut timers = self.lock();
        timers.heap.push(Reverse((deadline, order)));
        *timers.mark(order) = true;
        order
    }

    fn cancel(&self, order: OrderRef) -> bool {
        mem::take(self.lock().mark(order))
    }
}

impl Timers {
    fn pop_due(&mut self, now: Tick) -> Option<OrderRef> {
        self.heap.peek().filter(|Reverse((deadline, _))| *deadline <= now)?;
        self.heap.pop().map(|Reverse((_, order))| order)
    }

    fn mark(&mut self, OrderRef { page, slot }: OrderRef) -> &mut bool {
        let (page, slot) = (page as usize, slot as usize);
        if self.pending.len() <= page {
            self.pending.resize(page + 1, Vec::new());
        }
        let marks = &mut self.pending[page];
        if marks.len() <= slot {
            marks.resize(slot + 1, false);
        }
        &mut marks[slot]
    }
}
