//! The user's name for a value, and where the timers of the values are.
//!
//! A value's key stays the same until the value leaves. Its timer's key does not: a reset to an
//! earlier time moves the timer to another node. So a key has the value's number and the key of its
//! first timer, and the [`Index`] knows the present timers of the values that were moved.
//!
//! All moves of a queue are made under the lock of the index. A thread that finds no timer by the
//! first key looks there. It sees that values were moved: `moved` was raised before the move, and
//! the thread has seen the move in the node's word. No user code runs under the lock, and the
//! shards' threads never take it.
//!
//! A moved value leaves the table when it leaves the queue: where it is removed, or where a
//! consumer takes it.
//!
//! # The list
//!
//! A value that waits lies in its timer's node, and the shard's thread may take it from there at
//! any moment. So it cannot be lent out, and the queue, whose timer has other nodes as well, does
//! not look for it there. The index has a list for the calls that are about all values: a record of
//! each. Such a call asks the shard about each record's present timer, under the lock.
//!
//! A producer pushes the record without the lock. The record stays when the value leaves, because
//! the shard's thread would need the lock to take it out. Instead the list is swept: of the values
//! that come and those that leave, one in [`SHARE`] visits some records, if the list is more than
//! twice as long as the queue, and if no other thread has the lock. So no insert waits.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter;
use std::mem;

use crate::clock::unpoisoned;
use crate::fallible::{Stack, Stacked};
use crate::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};
use crate::tick::Tick;
use crate::timer::{ShardHandle, TimerKey};

/// Names a value of a [`DelayQueue`](crate::DelayQueue), until it has left the queue.
///
/// Small and `Copy`. A stale key finds nothing, for ever; neither does a key of another queue.
#[derive(Clone, Copy)]
pub struct QueueKey {
    pub(super) queue: u64,
    /// The value's number in the queue. Queue and number are the identity of the key.
    pub(super) id: u64,
    /// The key of a timer that the value has or had; none for one that the timer's end has left.
    pub(super) timer_key: Option<TimerKey>,
}

impl PartialEq for QueueKey {
    fn eq(&self, other: &Self) -> bool {
        (self.queue, self.id) == (other.queue, other.id)
    }
}

impl Eq for QueueKey {}

impl Hash for QueueKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.queue, self.id).hash(state);
    }
}

impl fmt::Debug for QueueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueKey").field("queue", &self.queue).field("id", &self.id).finish()
    }
}

/// A value's number, and the key of its first timer.
type Record = (u64, TimerKey);

/// Of so many values, one sweeps the list when it comes, and when it leaves.
const SHARE: u64 = 64;

/// Records that one sweep visits: four for each value that comes and for each that leaves. At least
/// every second record of a list that is swept is of a value that has left, so the list becomes
/// shorter, and few records are left when all values of a burst have left.
const SWEPT: u64 = 4 * SHARE;

/// Records of values that have left that are always tolerated.
const SPARE: usize = 2 * SHARE as usize;

/// Where the timers of the values are.
pub(super) struct Index {
    table: Mutex<Table>,
    /// Records that are not in the list yet. Pushed by producers, without the lock.
    fresh: Stack<Record>,
    /// The number of values that were moved; one more during a move. Written under the lock.
    moved: AtomicUsize,
}

#[derive(Default)]
struct Table {
    /// The present timers of the values that were moved.
    moved: BTreeMap<u64, TimerKey>,
    /// A record of each value, and of some that have left.
    list: Vec<Record>,
}

impl Table {
    /// The key of the value's present timer. While the lock is held, no value is moved.
    fn present(&self, (id, first): Record) -> TimerKey {
        self.moved.get(&id).copied().unwrap_or(first)
    }
}

impl Index {
    pub(super) fn new() -> Self {
        Self { table: Mutex::default(), fresh: Stack::new(), moved: AtomicUsize::new(0) }
    }

    pub(super) fn is_empty(&self) -> bool {
        // Ordering: Relaxed. A thread that asks because a timer was moved has acquired the node's
        // word, which the mover released after it had raised the count.
        self.moved.load(Ordering::Relaxed) == 0
    }

    /// Takes the value `id` out of the table of the moved ones. Returns where its timer is, or was,
    /// if it was moved.
    pub(super) fn forget(&self, id: u64) -> Option<TimerKey> {
        if self.is_empty() {
            return None;
        }
        let moved = &mut unpoisoned(self.table.lock()).moved;
        let timer_key = moved.remove(&id);
        self.note(moved.len());
        timer_key
    }

    /// Moves the value's timer; false if it has ended.
    pub(super) fn relocate(&self, handle: &ShardHandle, key: &QueueKey, tick: Tick) -> bool {
        let mut table = unpoisoned(self.table.lock());
        let Some(present) = table.moved.get(&key.id).copied().or(key.timer_key) else { return false };
        self.note(table.moved.len() + 1);
        // The lock is released before the wake of the shard, which may be user code.
        handle.scheduler.reschedule_and(present.key(), tick, |moved| {
            let moved = moved.map(TimerKey::once);
            match moved.filter(|_| moved != key.timer_key) {
                Some(timer_key) => table.moved.insert(key.id, timer_key),
                None => table.moved.remove(&key.id),
            };
            self.note(table.moved.len());
            drop(table);
            moved.is_some()
        })
    }

    fn note(&self, count: usize) {
        // Ordering: Relaxed, see `is_empty`.
        self.moved.store(count, Ordering::Relaxed);
    }

    /// Lists a value that was inserted.
    pub(super) fn add(&self, id: u64, first: TimerKey) {
        self.fresh.push(Stacked::boxed((id, first)));
    }

    /// Locks the table, whose list then has a record of each value that was added.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.listing(unpoisoned(self.table.lock()))
    }

    fn listing<'t>(&self, mut table: MutexGuard<'t, Table>) -> MutexGuard<'t, Table> {
        let mut fresh = self.fresh.take_all();
        table.list.extend(iter::from_fn(|| fresh.pop()).map(|record| record.value));
        table
    }

    /// How long the list is, and for how many records it has room.
    #[cfg(all(test, not(shardwheel_loom)))]
    pub(super) fn listed(&self) -> (usize, usize) {
        let list = &self.lock().list;
        (list.len(), list.capacity())
    }

    /// Takes the records out of the list.
    pub(super) fn take_list(&self) -> Vec<Record> {
        mem::take(&mut self.lock().list)
    }

    /// Calls `see` with each record and its present timer. Forgets the records for which `see`
    /// returns false.
    pub(super) fn retain(&self, mut see: impl FnMut(Record, TimerKey) -> bool) {
        let mut table = self.lock();
        let mut list = mem::take(&mut table.list);
        list.retain(|&record| see(record, table.present(record)));
        table.list = list;
    }

    /// Sweeps a part of the list, if it is the turn of value `id`, which comes or leaves, and the
    /// list is long for a queue of `len` values. Does nothing if another thread has the lock.
    pub(super) fn sweep(&self, id: u64, len: usize, waits: impl Fn(TimerKey) -> bool) {
        if !id.is_multiple_of(SHARE) {
            return;
        }
        let Ok(table) = self.table.try_lock() else { return };
        let table = &mut *self.listing(table);
        // Later values go on where this one ends.
        let mut place = (id / SHARE).wrapping_mul(SWEPT) as usize;
        for _ in 0..SWEPT {
            if table.list.len().saturating_sub(SPARE) / 2 <= len {
                break;
            }
            place %= table.list.len();
            if waits(table.present(table.list[place])) {
                place += 1;
            } else {
                table.list.swap_remove(place);
            }
        }
        let len = table.list.len();
        if table.list.capacity() / 4 > len {
            table.list.shrink_to(2 * len)
        }
    }
}
