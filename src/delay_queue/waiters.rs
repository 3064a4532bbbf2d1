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

use std::collections::BTreeMap;
use std::mem;
use std::task::Waker;

use crate::clock::unpoisoned;
use crate::future::WakerId;
use crate::sync::plain::AtomicU64;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

/// The consumers of a queue that wait.
#[derive(Default)]
pub(super) struct Waiters {
    /// Whether `wakers` may hold a waker. Set by consumers, cleared by the shards' threads.
    is_awaited: AtomicBool,
    /// One waker for each consumer that waits.
    wakers: Mutex<BTreeMap<ConsumerId, Waker>>,
    /// How many consumers have entered.
    entered: AtomicU64,
}

/// Names a consumer that waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConsumerId {
    /// The queue itself as a stream, of which there is one.
    #[cfg(feature = "stream")]
    Owner,
    /// A consumer that takes its waker out when it leaves.
    Entered(u64),
    /// A stream by reference, of which the queue knows the clone of the waker alone.
    Task(WakerId),
}

impl Waiters {
    /// The identity of a new consumer, which takes its waker out when it leaves.
    pub(super) fn enter(&self) -> ConsumerId {
        // Ordering: Relaxed, the number alone matters.
        ConsumerId::Entered(self.entered.fetch_add(1, Ordering::Relaxed))
    }

    /// Makes the next wake wake `waker`, instead of the consumer's former waker, which is passed
    /// to `discard`. Without an identity the consumer is a stream by reference.
    pub(super) fn register(&self, consumer: Option<ConsumerId>, waker: &Waker, discard: impl Fn(Waker)) {
        let clone = waker.clone();
        // The clone keeps its data alive while it is in the list, so no other one has its identity.
        let consumer = consumer.unwrap_or_else(|| ConsumerId::Task(WakerId::of(&clone)));
        let former = self.lock().insert(consumer, clone);
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
        mem::take(&mut *self.lock()).into_values()
    }

    /// Takes the consumer's waker out.
    pub(super) fn take(&self, consumer: ConsumerId) -> Option<Waker> {
        self.lock().remove(&consumer)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ConsumerId, Waker>> {
        unpoisoned(self.wakers.lock())
    }
}
