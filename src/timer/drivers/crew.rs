//! The drivers of a timer, and the slots in which the shards' workers lie.
//!
//! A worker lies in its shard's slot, unless a thread is at work with it. The driver that *holds*
//! the shard takes the worker out for a visit and puts it back. A hand-over changes the holder
//! under the slot's lock, and only while the worker is in. So one thread at a time has a worker,
//! and a driver that is blocked in a callback keeps one shard: any thread can take the others from
//! it.
//!
//! The lock is held for a few instructions, and never while user code runs. A thread that takes
//! shards from another driver does not wait for the lock.
//!
//! At the end, the shutdown takes the advancer out of each worker that is in. The worker itself
//! stays for its holder, which ends it: its drop may run user code (the drop of an executor).

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::Nanos;
use super::board::Board;
use crate::clock::unpoisoned;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

pub(crate) struct Crew<W> {
    pub(crate) board: Arc<Board>,
    slots: Box<[CachePadded<Mutex<Slot<W>>>]>,
    stopping: AtomicBool,
}

pub(super) enum Slot<W> {
    In(W),
    /// A thread is at work with it.
    Out,
    /// It is over, or about to be.
    Ended,
}

impl<W> Slot<W> {
    /// Takes the worker out, and leaves `other`. Leaves everything as it is if the worker is not
    /// in.
    fn replace(&mut self, other: Self) -> Option<W> {
        if !matches!(self, Self::In(_)) {
            return None;
        }
        if let Self::In(worker) = std::mem::replace(self, other) { Some(worker) } else { None }
    }
}

impl<W> Crew<W> {
    pub(crate) fn new(board: Arc<Board>, workers: impl IntoIterator<Item = W>) -> Self {
        let slot = |worker| CachePadded::new(Mutex::new(Slot::In(worker)));
        let slots = workers.into_iter().map(slot).collect();
        Self { board, slots, stopping: AtomicBool::new(false) }
    }

    /// Ends all hand-overs and makes all drivers leave.
    pub(crate) fn stop(&self) {
        // Ordering: Release, pairs with `is_stopping`. A driver that leaves has seen it, so a later
        // hand-over, which takes the lock of a slot after that driver, sees it too.
        self.stopping.store(true, Ordering::Release);
        (0..self.board.drivers()).for_each(|driver| self.board.seat(driver).parker.notify());
    }

    pub(crate) fn is_stopping(&self) -> bool {
        // Ordering: Acquire, pairs with `stop`.
        self.stopping.load(Ordering::Acquire)
    }

    /// Takes the worker of a shard that the driver holds. Calls `note` under the slot's lock.
    pub(crate) fn take(&self, driver: usize, shard: usize, note: impl FnOnce(&W)) -> Option<W> {
        let slot = self.slot(shard);
        if self.board.holder(shard) == driver { self.take_out(slot, shard, note) } else { None }
    }

    /// As [`take`](Self::take), of any shard; for a shutdown, which puts the worker back.
    pub(crate) fn take_to_close(&self, shard: usize, note: impl FnOnce(&W)) -> Option<W> {
        self.take_out(self.slot(shard), shard, note)
    }

    fn take_out(&self, mut slot: MutexGuard<'_, Slot<W>>, shard: usize, note: impl FnOnce(&W)) -> Option<W> {
        let worker = slot.replace(Slot::Out)?;
        note(&worker);
        self.board.take(shard);
        Some(worker)
    }

    /// Puts a worker back. It is due at `due`.
    pub(crate) fn put_back(&self, shard: usize, worker: W, due: Nanos) {
        let mut slot = self.slot(shard);
        *slot = Slot::In(worker);
        self.board.put_back(shard, due);
    }

    /// Takes the worker of a shard for good, if the driver holds the shard. `Err` if another thread
    /// has the worker. The timer is stopping: a hand-over either comes before this call, or sees
    /// that the timer is stopping. Calls `note` under the slot's lock.
    pub(crate) fn take_to_end(
        &self,
        driver: usize,
        shard: usize,
        note: impl FnOnce(&W),
    ) -> Result<Option<W>, Busy> {
        let mut slot = self.slot(shard);
        match *slot {
            _ if self.board.holder(shard) != driver => Ok(None),
            Slot::Out => Err(Busy),
            _ => Ok(slot.replace(Slot::Ended).inspect(note)),
        }
    }

    /// Hands a shard over to another driver, if `from` holds it and it is not at work.
    pub(crate) fn hand_over(&self, shard: usize, from: usize, to: usize) -> bool {
        let slot = self.slot(shard);
        self.hand_over_locked(&slot, shard, from, to)
    }

    /// As [`hand_over`](Self::hand_over), but does not wait for a thread that has the lock.
    pub(crate) fn take_over(&self, shard: usize, from: usize, to: usize) -> bool {
        let Ok(slot) = self.slots[shard].try_lock() else { return false };
        self.hand_over_locked(&slot, shard, from, to)
    }

    fn hand_over_locked(&self, slot: &Slot<W>, shard: usize, from: usize, to: usize) -> bool {
        let is_there = matches!(slot, Slot::In(_)) && self.board.holder(shard) == from;
        let moves = is_there && !self.is_stopping();
        if moves {
            self.board.set_holder(shard, to);
        }
        moves
    }

    fn slot(&self, shard: usize) -> MutexGuard<'_, Slot<W>> {
        unpoisoned(self.slots[shard].lock())
    }
}

/// Another thread has the worker.
#[derive(Debug)]
pub(crate) struct Busy;
