//! The way from a shard's thread to the consumers, for the models.

#![allow(clippy::new_without_default, reason = "a model makes it where it says so")]

use std::task::{Poll, Waker};

use super::entry::{Boxed, CLOSED, Entry, QueueState};
use super::list::Listing;
use super::waiters::ConsumerId;
use crate::fallible::Stacked;
use crate::shard::{Key, ShardId};
use crate::sync::UnsafeCell;
use crate::timer::TimerKey;

/// A queue of numbers without a timer. Each is in a cell, which notices if it is read by a thread to
/// which it was not published.
pub struct Queue {
    shared: QueueState<UnsafeCell<u64>>,
}

impl Queue {
    /// Makes an empty queue.
    pub fn new() -> Self {
        Self { shared: QueueState::new() }
    }

    /// Passes an expired value to the consumers, as a shard's thread does. Returns what is left to
    /// the caller, because the queue has been dropped.
    pub fn expire(&self, value: u64) -> Vec<u64> {
        let mut left = Vec::new();
        let discard = |entry: Boxed<UnsafeCell<u64>>| left.push(number(&entry));
        let entry = Entry { value: UnsafeCell::new(value), id: 0, deadline: 0, armed_for: 0, expired: None };
        self.shared.pass_on(Stacked::boxed(entry), Waker::wake, discard);
        left
    }

    /// Counts a value that is about to be passed to [`expire`](Self::expire); false if the queue is
    /// closed and refuses it.
    pub fn insert(&self) -> bool {
        let is_open = self.shared.count_insert() < CLOSED;
        if !is_open {
            self.remove();
        }
        is_open
    }

    /// Takes a value out that was inserted and does not expire.
    pub fn remove(&self) {
        self.shared.count_removal();
        self.shared.end_if_empty(Waker::wake);
    }

    /// Takes no more values.
    pub fn close(&self) {
        self.shared.close(Waker::wake);
    }

    /// Takes what has expired, as the drop of the queue does.
    pub fn drop_values(&self) -> Vec<u64> {
        self.shared.note_drop();
        std::iter::from_fn(|| self.shared.due.next()).map(|entry| number(&entry)).collect()
    }

    /// Ends the queue, as a shutdown does.
    pub fn end(&self) {
        self.shared.note_end(Waker::wake);
    }

    /// Makes a consumer that leaves when it is dropped.
    pub fn enter(&self) -> Next<'_> {
        Next { queue: self, consumer: self.shared.waiters.enter() }
    }

    /// The next value, as a stream; `None` at the end.
    pub fn poll(&self, waker: &Waker) -> Poll<Option<u64>> {
        self.poll_for(None, waker)
    }

    fn poll_for(&self, consumer: Option<ConsumerId>, waker: &Waker) -> Poll<Option<u64>> {
        let polled = self.shared.poll(consumer, waker, drop);
        if let Poll::Ready(Some(_)) = polled {
            self.shared.end_if_empty(Waker::wake);
        }
        polled.map(|entry| entry.map(|entry| number(&entry)))
    }
}

fn number(entry: &Boxed<UnsafeCell<u64>>) -> u64 {
    // SAFETY: the entry is this thread's.
    entry.value.value.with_mut(|number| unsafe { *number })
}

/// A consumer that leaves when it is dropped.
pub struct Next<'q> {
    queue: &'q Queue,
    consumer: ConsumerId,
}

impl Next<'_> {
    /// The next value; `None` at the end.
    pub fn poll(&self, waker: &Waker) -> Poll<Option<u64>> {
        self.queue.poll_for(Some(self.consumer), waker)
    }
}

impl Drop for Next<'_> {
    fn drop(&mut self) {
        drop(self.queue.shared.waiters.take(self.consumer));
    }
}

/// A list of numbers. A number's key has the number as its generation.
pub struct Records {
    list: Listing,
}

impl Records {
    /// Makes an empty list.
    pub fn new() -> Self {
        Self { list: Listing::new() }
    }

    /// Adds a number.
    pub fn add(&self, number: u64) {
        self.list.add((number, TimerKey::once(Key::new(ShardId::block(1), 0, number))));
    }

    /// The numbers in the list, in their order, each with the one in its key.
    pub fn numbers(&self) -> Vec<(u64, u64)> {
        let records = self.list.records().into_iter();
        let mut numbers: Vec<_> = records.map(|(number, key)| (number, key.key().generation)).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Takes out the numbers that `has_left`.
    pub fn sweep(&self, has_left: impl Fn(u64) -> bool) {
        self.list.sweep(0, |(number, _)| !has_left(number));
    }
}
