//! A thread's keys, and the time that they have: the store and the shard of timers together.
//!
//! Each key with a deadline has a timer in the thread's own shard, whose payload is the key's place
//! in the store. When the timer fires, the key goes at once, with its memory and its event. A later
//! deadline puts the same timer off, in place. A key that is looked at between its deadline and its
//! timer goes then.

use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::sync::Arc;

use shardwheel::{Advancer, Config, Key, Scheduler, shard};

use crate::clock::{Deadline, TICK, Time};
use crate::events::{Class, Events};
use crate::stats::{Figure, Stats};
use crate::store::{Entry, Hash, Place, Store, TABLES, Table};

/// Keys, and empty tables, that a thread looks at in one round of a longer task.
const STEP: usize = 512;

/// What a timer of a thread's shard is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// A key with this hash, which has this timer.
    Key(Hash),
    /// The connection in this slot has been silent for too long.
    Idle(u32),
}

/// A shard whose ticks are the clock's.
pub(crate) fn timers() -> (Scheduler<Due>, Advancer<Due>) {
    // The default tick is a millisecond.
    debug_assert_eq!(Config::default().tick(), TICK);
    shard(&Config::default())
}

/// Which thread has a key, and where that thread finds it.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    hasher: RandomState,
    threads: usize,
}

impl Placement {
    pub(crate) fn new(threads: usize) -> Self {
        Self { hasher: RandomState::new(), threads }
    }

    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The hash of a key, and the thread that has it.
    pub(crate) fn of(&self, key: &[u8]) -> (u64, usize) {
        let hash = self.hash(key);
        (hash, ((u128::from(hash) * self.threads as u128) >> u64::BITS) as usize)
    }
}

#[derive(Debug)]
pub(crate) struct Keyspace {
    store: Store,
    timers: Scheduler<Due>,
    pub(crate) time: Time,
    pub(crate) events: Events,
    stats: Arc<Stats>,
    /// What a flush has left to be dropped, a step a round.
    discarded: Vec<Table>,
    /// After the wall clock was set: the next table whose deadlines may have other ticks now.
    recheck: usize,
}

impl Keyspace {
    pub(crate) fn new(time: Time, timers: Scheduler<Due>, placement: Placement, stats: Arc<Stats>) -> Self {
        let store = Store::new(placement, stats.clone());
        Self { store, timers, time, events: Events::default(), stats, discarded: Vec::new(), recheck: TABLES }
    }

    /// Reads the clocks.
    pub(crate) fn wake(&mut self) {
        if self.time.refresh() {
            self.clock_was_set();
        }
    }

    /// The wall clock was set: dates are at other ticks now.
    fn clock_was_set(&mut self) {
        self.recheck = 0;
    }

    /// The place of a key that has not expired.
    pub(crate) fn find(&mut self, hash: u64, key: &[u8]) -> Option<Place> {
        let place = self.store.find(hash, key)?;
        if self.has_expired(self.get(place)) {
            self.expire(place);
            return None;
        }
        Some(place)
    }

    /// As `find`, counted as a hit or a miss.
    pub(crate) fn look_up(&mut self, hash: u64, key: &[u8]) -> Option<Place> {
        let found = self.find(hash, key);
        self.stats.add(if found.is_some() { Figure::Hits } else { Figure::Misses }, 1);
        found
    }

    pub(crate) fn get(&self, place: Place) -> &Entry {
        self.store.get(place)
    }

    /// Sets the value of a key, at the place where it has been found, or anew.
    pub(crate) fn set_value(&mut self, hash: u64, key: &[u8], value: &[u8], found: Option<Place>) -> Place {
        let Some(place) = found else { return self.store.insert(hash, key, value) };
        self.store.set_value(place, value);
        place
    }

    /// Gives a key a deadline, or another one: its timer moves in place if the deadline is later.
    pub(crate) fn set_deadline(&mut self, place: Place, deadline: Deadline) {
        let Self { store, timers, time, .. } = self;
        let due = time.due(deadline);
        store.set_expiry(place, |entry| {
            let moved = entry.timer.and_then(|timer| timers.reschedule(timer, due));
            // Without memory for a timer, the key goes when it is looked at.
            entry.timer = moved.or_else(|| timers.schedule(due, Due::Key(place.hash)).ok());
            entry.expires = Some(deadline);
        });
    }

    /// Takes a key's deadline away. False if it has none.
    pub(crate) fn persist(&mut self, place: Place) -> bool {
        let Self { store, timers, .. } = self;
        let mut had_one = false;
        store.set_expiry(place, |entry| {
            had_one = entry.expires.take().is_some();
            entry.timer.take().and_then(|timer| timers.cancel(timer));
        });
        had_one
    }

    /// Removes a key.
    pub(crate) fn remove(&mut self, place: Place) -> Entry {
        let entry = self.store.remove(place);
        // It returns nothing if the timer has fired.
        entry.timer.and_then(|timer| self.timers.cancel(timer));
        entry
    }

    /// Reads what the expiry of these keys will read. Nearly all of it is out of the processor's caches;
    /// here the loads of several keys run at the same time, and not one after the other.
    pub(crate) fn warm(&self, timers: impl Iterator<Item = (Key, Hash)>) {
        let places: Vec<_> = timers.filter_map(|(timer, hash)| self.store.find_timer(hash, timer)).collect();
        places.iter().for_each(|&place| _ = black_box(self.get(place).key().first()));
    }

    /// A key's timer has fired. The key may be gone: a flush cancels timers later.
    pub(crate) fn fired(&mut self, timer: Key, hash: Hash) {
        let Some(place) = self.store.find_timer(hash, timer) else { return };
        match self.get(place).expires {
            // The wall clock was set back.
            Some(deadline) if !self.time.has_passed(deadline) => self.set_deadline(place, deadline),
            _ => self.expire(place),
        }
    }

    fn has_expired(&self, entry: &Entry) -> bool {
        entry.expires.is_some_and(|deadline| self.time.has_passed(deadline))
    }

    /// Removes a key that has expired.
    fn expire(&mut self, place: Place) {
        let entry = self.remove(place);
        self.stats.add(Figure::Expired, 1);
        self.events.add(Class::EXPIRED, "expired", entry.key());
    }

    /// Removes all keys. Their memory comes back step by step, in `step`.
    pub(crate) fn flush(&mut self) {
        self.discarded.append(&mut self.store.clear());
    }

    /// Does a step of the tasks that take long. True if there is more to do.
    pub(crate) fn step(&mut self) -> bool {
        let mut left = STEP;
        while left > 0
            && let Some(mut table) = self.discarded.pop()
        {
            left = left.saturating_sub(1 + table.len());
            for entry in table.drain() {
                entry.timer.and_then(|timer| self.timers.cancel(timer));
            }
        }
        while left > 0 && self.recheck < TABLES {
            let table = self.store.table_mut(self.recheck);
            left = left.saturating_sub(1 + table.len());
            for entry in table.iter_mut() {
                if let Some(date) = entry.expires.filter(|it| it.is_date()) {
                    entry.timer =
                        entry.timer.and_then(|timer| self.timers.reschedule(timer, self.time.due(date)));
                }
            }
            self.recheck += 1;
        }
        !self.discarded.is_empty() || self.recheck < TABLES
    }

    /// The keys of a table that have not expired.
    pub(crate) fn living(&self, table: usize) -> impl Iterator<Item = &[u8]> {
        self.store.table(table).iter().filter(|entry| !self.has_expired(entry)).map(Entry::key)
    }

    /// Panics unless each key with a deadline has a timer, and each timer a key.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn check(&self) {
        let mut all = (0, 0);
        for entry in (0..TABLES).flat_map(|table| self.store.table(table)) {
            let hash = self.store.placement.hash(entry.key());
            let found = self.store.find(hash, entry.key()).expect("each key is found");
            assert_eq!(self.get(found).key(), entry.key());
            assert_eq!(entry.timer.is_some(), entry.expires.is_some());
            all = (all.0 + 1, all.1 + usize::from(entry.timer.is_some()));
        }
        assert_eq!(all, (self.stats.get(Figure::Keys), self.stats.get(Figure::ExpiringKeys)));
        if self.discarded.is_empty() {
            assert_eq!(self.timers.len(), all.1, "timers");
        }
    }
}

#[cfg(test)]
mod tests;
