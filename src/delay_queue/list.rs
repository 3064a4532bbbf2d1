//! The list of a queue's values, for the calls that are about all of them.
//!
//! A value that waits lies in its timer's node, and the queue's timer has other nodes as well. So
//! the queue keeps a record of each value: its number, and the key of its first timer. The call
//! asks the shard about the timers (see [`keys`](super::keys)).
//!
//! A producer adds the record when it has the timer's key. The value may have left by then. Nothing
//! marks the record of a value that leaves: a key is harmless for ever, so the record then stands
//! for nothing. A sweep takes such records out.
//!
//! *Invariant*: each value that waits, and whose insert has returned, has its record in `records`
//! or in `late`. Records go from `late` to `records` under the lock, and a record is taken out after
//! the shard has said that its timer has ended, which stays so.
//!
//! No user code runs under the lock. Inserts, receives and removals do not wait for it: a producer
//! that finds it taken pushes the record to `late`, and a sweep is left to a later value. A call
//! about all values waits for it, and holds it while it copies the records.
//!
//! # The earliest
//!
//! The call that asks for the earliest value sorts: it pushes the records that it has not seen to a
//! heap, each with its deadline, and the first time that is all. A timer's deadline never becomes
//! earlier (see `Node::extend`), so a deadline in the heap is never later than the truth, until the
//! value is moved. The values that were moved since are listed by [`keys`](super::keys), and are
//! pushed again. So the call corrects what stands on top, or takes it out if it has left, until a
//! deadline is true: that is the earliest. A value that is in the heap twice does no harm.
//!
//! Each record that is pushed, corrected or taken out pays for an insert, a reset, or a value that
//! has left. A heap that is twice as long as the list goes, and the next call sorts all again: by
//! then so many were pushed, or have left, as it looks at.
//!
//! # The cost
//!
//! A record takes 24 bytes, and one in the heap 32. There are at most about twice as many records
//! as values, and some more while a sweep lags behind: [`SWEPT`] is twice as large as it must be
//! for that. The list is a ring: a sweep moves what still waits to the back. If all delays are the
//! same, it finds the values that have left at the front.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};
use std::iter;

use crossbeam_utils::CachePadded;

use super::keys::Record;
use crate::clock::unpoisoned;
use crate::fallible::{Stack, Stacked};
use crate::sync::{Mutex, MutexGuard};
use crate::tick::Tick;

/// Of so many values, one sweeps when it leaves.
pub(super) const SHARE: u64 = 64;

/// Records that one sweep visits at most. At least half of them are of values that have left, and
/// each value that leaves allows for two records less.
const SWEPT: usize = 4 * SHARE as usize;

/// Records of values that have left that are always tolerated.
const SPARE: usize = if cfg!(shardwheel_loom) { 0 } else { 2 * SHARE as usize };

/// A list of records.
pub(super) struct Listing {
    records: CachePadded<Mutex<Records>>,
    /// What producers have pushed that found the lock taken.
    late: Stack<Record>,
}

#[derive(Default)]
struct Records {
    all: VecDeque<Record>,
    /// So many at the front of `all` have been pushed to `by_time`.
    sorted: usize,
    /// The earliest deadline is on top.
    by_time: BinaryHeap<Reverse<(Tick, Record)>>,
}

impl Listing {
    pub(super) fn new() -> Self {
        Self { records: CachePadded::default(), late: Stack::new() }
    }

    /// Adds the record of a value.
    pub(super) fn add(&self, record: Record) {
        match self.records.try_lock() {
            Ok(mut records) => records.all.push_back(record),
            Err(_) => self.late.push(Stacked::boxed(record)),
        }
    }

    /// The records of all values that wait, and of some that have left.
    pub(super) fn records(&self) -> VecDeque<Record> {
        self.lock().all.clone()
    }

    /// The earliest deadline. `due` returns that of a record, unless its value has left. `moved`
    /// are the records of the values that were moved since the last call.
    pub(super) fn earliest(&self, moved: Vec<Record>, due: impl Fn(Record) -> Option<Tick>) -> Option<Tick> {
        let mut records = self.lock();
        let Records { all, sorted, by_time } = &mut *records;
        let unsorted = all.range(*sorted..).copied().chain(moved);
        by_time.extend(unsorted.filter_map(|record| Some(Reverse((due(record)?, record)))));
        *sorted = all.len();
        loop {
            let mut top = by_time.peek_mut()?;
            let Reverse((tick, record)) = *top;
            match due(record) {
                Some(present) if present == tick => return Some(tick),
                Some(present) => top.0.0 = present,
                None => _ = PeekMut::pop(top),
            }
        }
    }

    /// Takes records out of a list that is long for a queue of `len` values: those that do not
    /// wait. Not inlined, because only one of [`SHARE`] values calls it.
    #[inline(never)]
    pub(super) fn sweep(&self, len: usize, waits: impl Fn(Record) -> bool) {
        let Ok(mut records) = self.records.try_lock() else { return };
        self.add_late(&mut records);
        let Records { all, sorted, .. } = &mut *records;
        let limit = 2 * len + SPARE;
        for _ in 0..SWEPT.min(all.len().saturating_sub(limit)) {
            let Some(record) = all.pop_front() else { break };
            *sorted = sorted.saturating_sub(1);
            if waits(record) {
                all.push_back(record);
            }
        }
        if all.capacity() / 4 > limit {
            all.shrink_to(2 * limit);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        let mut records = unpoisoned(self.records.lock());
        self.add_late(&mut records);
        records
    }

    /// Adds what came late. A heap that is too long then goes.
    fn add_late(&self, records: &mut Records) {
        let mut late = self.late.take_all();
        records.all.extend(iter::from_fn(|| late.pop()).map(|record| record.value));
        if records.by_time.len() > 2 * records.all.len() + SPARE {
            (records.by_time, records.sorted) = Default::default();
        }
    }

    /// How many records there are, and for how many there is room.
    #[cfg(all(test, not(shardwheel_loom)))]
    pub(super) fn size(&self) -> (usize, usize) {
        let records = self.lock();
        (records.all.len(), records.all.capacity())
    }

    /// How many records are in the heap.
    #[cfg(all(test, not(shardwheel_loom)))]
    pub(super) fn order_len(&self) -> usize {
        self.lock().by_time.len()
    }

    /// Calls `act` while another thread seems to have the lock.
    #[cfg(all(test, not(shardwheel_loom)))]
    pub(super) fn while_locked<R>(&self, act: impl FnOnce() -> R) -> R {
        let _records = self.records.lock();
        act()
    }
}
