//! The fastest heap that can be put behind a lock: deadline and payload, nothing else.
//!
//! It has no slab and cannot cancel, so push and pop cost it less than they cost [`Heap`](crate::Heap). It is
//! here so that the comparison of schedule and fire does not rest on the price of cancelling.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::structure::BATCH;
use crate::{Checksum, Engine, Producer};

/// An item and when it is due: 16 bytes with an item of 8. The earliest is the greatest, as
/// [`BinaryHeap`] wants it; items do not take part in the comparison.
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

/// A heap behind a mutex, without a way to cancel.
#[derive(Clone, Default)]
pub struct BareHeap {
    heap: Arc<Mutex<BinaryHeap<Due<u64>>>>,
}

impl BareHeap {
    fn lock(&self) -> MutexGuard<'_, BinaryHeap<Due<u64>>> {
        self.heap.lock().expect("nobody panics while holding the heap")
    }
}

impl Engine for BareHeap {
    const NAME: &'static str = "bare heap";

    type Producer = Self;

    fn new() -> Self {
        Self::default()
    }

    fn producer(&self) -> Self {
        self.clone()
    }

    fn advance(&mut self, now: u64, fired: &mut Checksum) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            {
                let mut heap = self.lock();
                batch.extend(std::iter::from_fn(|| pop_due(&mut heap, now)).take(BATCH));
            }
            if batch.is_empty() {
                return;
            }
            batch.drain(..).for_each(|due: Due<u64>| fired.add(due.deadline, due.item));
        }
    }
}

impl Producer for BareHeap {
    type Handle = ();

    #[inline]
    fn schedule(&self, deadline: u64, payload: u64) {
        self.lock().push(Due { deadline, item: payload });
    }
}
