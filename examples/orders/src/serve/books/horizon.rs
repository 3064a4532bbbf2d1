//! Which pending orders are in memory.
//!
//! The store has all of them, sorted by the time of the check. In memory are those before the *horizon*,
//! some [`Shop::in_memory`](super::Shop::in_memory) of them. As they end, the books read on: they take the
//! next part from the store, and the horizon moves behind it. They do so at the latest when the horizon's own
//! check is due, so no check is late. If a new order finds the memory full, the horizon moves to it.
//!
//! An order that was placed or paid since the last commit is in memory wherever it stands, for the store's
//! record of it is old. Once it is committed, it leaves the memory if it is not before the horizon.
//!
//! Checks that fell due before the books began are never before the horizon. After an absence there may be
//! millions, and they would all come before the next check that falls due. They are read part by part, and
//! decided at once.

use std::ops::Range;

use crate::store::{Open, Store, StoreError, open_key};

/// The largest number of orders that are read on at once: a ms of work, so that nobody waits for it.
const PART: usize = 1_024;

pub(super) struct Horizon {
    /// Orders with keys from here on are in the store alone, but for those that have changed. `None` if
    /// there are none.
    from: Option<u128>,
    /// The keys of orders that were overdue at the beginning, and are not read yet.
    overdue: Range<u128>,
    /// How many orders are in memory, about.
    in_memory: usize,
}

impl Horizon {
    /// The horizon of books that begin at `began` and have nothing in memory.
    pub(super) fn new(pending: usize, began: u64, in_memory: usize) -> Self {
        let now = open_key(began, 0);
        let (from, overdue) = if pending > 0 { (Some(now), 0..now) } else { (None, 0..0) };
        Self { from, overdue, in_memory }
    }

    /// Whether an order stays in memory once the store has it.
    pub(super) fn is_before(&self, key: u128) -> bool {
        self.from.is_none_or(|from| key < from)
    }

    /// The check of the first order that is not before the horizon is due at this time, or later.
    pub(super) fn check_at(&self) -> Option<u64> {
        self.from.map(|key| (key >> u64::BITS) as u64)
    }

    /// A new order is in memory, with `held` orders in all.
    pub(super) fn placed(&mut self, key: u128, held: usize) {
        if held > self.in_memory {
            self.from = Some(self.from.map_or(key, |from| from.min(key)));
        }
    }

    /// Whether the next part has room beside the orders that are in memory.
    pub(super) fn has_room(&self, held: usize) -> bool {
        self.from.is_some() && held + self.part() <= self.in_memory
    }

    fn part(&self) -> usize {
        self.in_memory.div_ceil(2).clamp(1, PART)
    }

    /// Reads the next part, and moves behind it. Some of it may be in memory, or have ended.
    pub(super) fn read_on(&mut self, store: &dyn Store) -> Result<Vec<Open>, StoreError> {
        let Some(from) = self.from else { return Ok(Vec::new()) };
        let part = store.pending(from..u128::MAX, self.part())?;
        self.from = part.next;
        Ok(part.orders)
    }

    /// Reads orders that were overdue at the beginning, each once.
    pub(super) fn overdue(&mut self, store: &dyn Store, limit: usize) -> Result<Vec<Open>, StoreError> {
        if limit == 0 || !self.is_behind() {
            return Ok(Vec::new());
        }
        let part = store.pending(self.overdue.clone(), limit)?;
        self.overdue.start = part.next.unwrap_or(self.overdue.end);
        Ok(part.orders)
    }

    /// Whether there may be more of these.
    pub(super) fn is_behind(&self) -> bool {
        !self.overdue.is_empty()
    }
}
