//! The user's name for a value, and where the timers of moved values are.
//!
//! A value's key stays the same until the value leaves. Its timer's key does not: a reset to an
//! earlier time moves the timer to another node. So a key has the value's number and the key of its
//! first timer, and [`Moved`] knows the present timers of the values that were moved.
//!
//! All moves of a queue are made under the lock of `Moved`. A thread that finds no timer by the
//! first key looks into `Moved`. It sees there that values were moved: `count` was raised before
//! the move, and the thread has seen the move in the node's word. No user code runs under the lock,
//! and the shards' threads never take it.
//!
//! For the call that sorts (see [`list`](super::list)), the table also lists which values were moved
//! since the last such call, from the first one on.
//!
//! A moved value leaves the table when it leaves the queue: where it is removed, or where a
//! consumer takes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::clock::unpoisoned;
use crate::shard::Key;
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
pub(super) type Record = (u64, TimerKey);

/// Where the timers of moved values are.
#[derive(Default)]
pub(super) struct Moved {
    table: Mutex<MovedTimers>,
    /// The number of values in the table; one more during a move. Written under the lock.
    count: AtomicUsize,
}

#[derive(Default)]
struct MovedTimers {
    timers: BTreeMap<u64, TimerKey>,
    /// Those of them that were moved since the last call that sorts, if there was one.
    unsorted: Option<BTreeSet<u64>>,
}

impl Moved {
    pub(super) fn is_empty(&self) -> bool {
        // Ordering: Relaxed. A thread that asks because a timer was moved has acquired the node's
        // word, which the mover released after it had raised the count.
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Takes the value `id` out of the table. Returns where its timer is, or was, if it was moved.
    pub(super) fn forget(&self, id: u64) -> Option<TimerKey> {
        if self.is_empty() {
            return None;
        }
        let mut table = self.lock();
        table.unsorted.as_mut().map(|unsorted| unsorted.remove(&id));
        let timer_key = table.timers.remove(&id);
        self.note(table.timers.len());
        timer_key
    }

    /// Calls `see` with the key of the value's first timer. If that has ended and the value was
    /// moved, calls it with the key of the present one: the value is not moved meanwhile.
    pub(super) fn at_present<R>(&self, record: Record, see: impl Fn(TimerKey) -> Option<R>) -> Option<R> {
        see(record.1).or_else(|| {
            let table = (!self.is_empty()).then(|| self.lock())?;
            see(*table.timers.get(&record.0)?)
        })
    }

    /// The records of the values that were moved since the last call, with their present timers.
    pub(super) fn take_unsorted(&self) -> Vec<Record> {
        let mut table = self.lock();
        let ids = table.unsorted.replace(BTreeSet::new()).unwrap_or_default();
        ids.into_iter().filter_map(|id| Some((id, *table.timers.get(&id)?))).collect()
    }

    /// Moves the value's timer; false if it has ended.
    pub(super) fn relocate(&self, handle: &ShardHandle, key: &QueueKey, tick: Tick) -> bool {
        let mut table = self.lock();
        let Some(present) = table.timers.get(&key.id).copied().or(key.timer_key) else { return false };
        self.note(table.timers.len() + 1);
        // The lock is released before the wake of the shard, which may be user code.
        let note = |moved: Option<Key>| {
            let moved = moved.map(TimerKey::once);
            match moved.filter(|_| moved != key.timer_key) {
                Some(timer_key) => {
                    table.unsorted.as_mut().map(|unsorted| unsorted.insert(key.id));
                    table.timers.insert(key.id, timer_key)
                }
                None => table.timers.remove(&key.id),
            };
            self.note(table.timers.len());
            drop(table);
            moved.is_some()
        };
        handle.scheduler.reschedule_and(present.key(), tick, |_| (), note)
    }

    fn note(&self, count: usize) {
        // Ordering: Relaxed, see `is_empty`.
        self.count.store(count, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, MovedTimers> {
        unpoisoned(self.table.lock())
    }
}
