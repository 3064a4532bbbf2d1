//! The wakers of the consumers that wait.
//!
//! Each value wakes all consumers that wait, and each of them looks again. So no consumer has to
//! pass a wake on: one that leaves after its wake, or whose task is gone, keeps nothing from the
//! others. (A stream that is shared by reference could not pass a wake on, because nothing tells
//! the queue that its task has given up.) A thread or a [`next`](crate::DelayQueue::next) that
//! leaves takes its waker out.
//!
//! # The wake-up
//!
//! A consumer looks for a value, registers its waker, and looks again before it waits. A shard's
//! thread pushes a value, then wakes. Both swap `is_awaited`, so one of the swaps comes first:
//!
//! - *The shard's swap comes first.* The consumer's swap acquires what the shard's has released, so
//!   the second look finds the value.
//! - *The consumer's swap comes first.* The shard finds the flag set. It has acquired the
//!   consumer's unlock, so its lock comes later and it finds the waker.
//!
//! Several shards' threads may push and wake at once. A shard that finds the flag clear leaves the
//! waking to the one that has cleared it, which takes the wakers after both pushes. A consumer that
//! registers in between sets the flag again, so that both may take it; one of them does. The end of
//! the timer is announced in the same way: the flag `has_ended` first, then the wake.
//!
//! No user code runs under the lock: a waker that goes is passed to the caller, who drops it under
//! the timer's guard. A shard takes the lock only where a consumer waits, a consumer for as long as
//! it registers or leaves.

use std::mem;
use std::task::Waker;

use crate::clock::unpoisoned;
use crate::sync::plain::AtomicU64;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

/// The consumers of a queue that wait.
pub(super) struct Waiters {
    /// Whether `list` may hold a waker. Set by consumers, cleared by the shards' threads.
    is_awaited: AtomicBool,
    /// Consumers' numbers, and what wakes them.
    list: Mutex<Vec<(u64, Waker)>>,
    /// The last number of a consumer that is no stream.
    last: AtomicU64,
}

/// The number of all consumers of which the queue knows the wakers alone: streams by reference.
pub(super) const STREAM: u64 = 0;

/// The number of the queue itself as a stream, of which there is one: it has one waker at most.
#[cfg(feature = "stream")]
pub(super) const OWNER: u64 = 1;

impl Waiters {
    pub(super) fn new() -> Self {
        let (is_awaited, list) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        Self { is_awaited, list, last: AtomicU64::new(1) }
    }

    /// The number of a new consumer, which takes its waker out when it leaves.
    pub(super) fn enter(&self) -> u64 {
        // Ordering: Relaxed, the number alone matters.
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Makes the next wake wake `waker`: instead of the waiter's former waker, or beside the other
    /// wakers of streams. The former waker is passed to `discard`.
    pub(super) fn register(&self, waiter: u64, waker: &Waker, discard: impl Fn(Waker)) {
        let clone = waker.clone();
        let is_same =
            |(known, its): &&mut (u64, Waker)| *known == waiter && (waiter != STREAM || its.will_wake(waker));
        let mut list = self.lock();
        let former = match list.iter_mut().find(is_same) {
            Some((_, known)) => Some(mem::replace(known, clone)),
            None => {
                list.push((waiter, clone));
                None
            }
        };
        drop(list);
        // Ordering: AcqRel, pairs with `wake_all`: see the module documentation.
        self.is_awaited.swap(true, Ordering::AcqRel);
        former.into_iter().for_each(discard);
    }

    /// Passes each registered waker to `wake`.
    pub(super) fn wake_all(&self, wake: impl Fn(Waker)) {
        // Ordering: AcqRel, pairs with `register`: see the module documentation.
        if self.is_awaited.swap(false, Ordering::AcqRel) {
            self.take_all().for_each(wake);
        }
    }

    /// Takes all wakers out.
    pub(super) fn take_all(&self) -> impl Iterator<Item = Waker> + use<> {
        mem::take(&mut *self.lock()).into_iter().map(|(_, waker)| waker)
    }

    /// Takes the waiter's waker out.
    pub(super) fn take(&self, waiter: u64) -> Option<Waker> {
        let mut list = self.lock();
        let at = list.iter().position(|&(known, _)| known == waiter)?;
        Some(list.swap_remove(at).1)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Waker)>> {
        unpoisoned(self.list.lock())
    }
}
