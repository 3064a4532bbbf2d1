//! A thread's keys, and the time that they have: the store and the shard of timers together.
//!
//! Each key with a deadline has a timer in the thread's own shard, whose payload is the key's place
//! in the store. When the timer fires, the key goes at once, with its memory and its event. A later
//! deadline puts the same timer off, in place. A key that is looked at between its deadline and its
//! timer goes then.

use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;

use shardwheel::{Advancer, Config, Key, Scheduler, shard};

use crate::clock::{Deadline, TICK, Time};
use crate::events::{Class, Events};
use crate::store::{Entry, Slab, Store};

/// Slots that a thread looks at in one round of a longer task.
const STEP: usize = 512;

/// What a timer of a thread's shard is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// The key at this place of the store.
    Key(u32),
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

/// Counts for INFO.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) expired: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

#[derive(Debug)]
pub(crate) struct Keyspace {
    /// To be read: each key with a deadline has a timer.
    pub(crate) store: Store,
    timers: Scheduler<Due>,
    placement: Placement,
    pub(crate) time: Time,
    pub(crate) events: Events,
    pub(crate) counts: Counts,
    /// What a flush has left to be dropped, a step a round.
    discarded: Vec<(Slab, u32)>,
    /// After the wall clock was set: the next place whose deadline may have another tick now.
    recheck: Option<u32>,
}

impl Keyspace {
    pub(crate) fn new(time: Time, timers: Scheduler<Due>, placement: Placement) -> Self {
        let (store, events, counts) = Default::default();
        Self { store, timers, placement, time, events, counts, discarded: Vec::new(), recheck: None }
    }

    /// The place of a key that has not expired.
    pub(crate) fn find(&mut self, hash: u64, key: &[u8]) -> Option<u32> {
        let place = self.store.find(hash, key)?;
        let has_expired = self.store.slab.get(place).is_some_and(|entry| self.has_expired(entry));
        if has_expired {
            self.expire(place);
        }
        Some(place).filter(|_| !has_expired)
    }

    /// As `find`, counted as a hit or a miss.
    pub(crate) fn look_up(&mut self, hash: u64, key: &[u8]) -> Option<(u32, &Entry)> {
        let Some(place) = self.find(hash, key) else {
            self.counts.misses += 1;
            return None;
        };
        self.counts.hits += 1;
        Some((place, self.store.slab.get(place)?))
    }

    pub(crate) fn get(&self, place: u32) -> Option<&Entry> {
        self.store.slab.get(place)
    }

    /// Sets the value of a key, at the place where it has been found, or anew.
    pub(crate) fn set_value(&mut self, hash: u64, key: &[u8], value: &[u8], found: Option<u32>) -> u32 {
        let Some(place) = found else { return self.store.insert(hash, key, value) };
        self.store.set_value(place, value);
        place
    }

    /// Gives a key a deadline, or another one: its timer moves in place if the deadline is later.
    pub(crate) fn set_deadline(&mut self, place: u32, deadline: Deadline) {
        let Self { store, timers, time, .. } = self;
        let due = time.due(deadline);
        store.set_expiry(place, |entry| {
            let moved = entry.timer.and_then(|timer| timers.reschedule(timer, due));
            // Without memory for a timer, the key goes when it is looked at.
            entry.timer = moved.or_else(|| timers.schedule(due, Due::Key(place)).ok());
            entry.expires = Some(deadline);
        });
    }

    /// Takes a key's deadline away. False if it has none.
    pub(crate) fn persist(&mut self, place: u32) -> bool {
        let Self { store, timers, .. } = self;
        let mut had_one = false;
        store.set_expiry(place, |entry| {
            had_one = entry.expires.take().is_some();
            entry.timer.take().and_then(|timer| timers.cancel(timer));
        });
        had_one
    }

    /// Removes a key.
    pub(crate) fn remove(&mut self, hash: u64, place: u32) {
        if let Some(timer) = self.store.remove(hash, place).and_then(|entry| entry.timer) {
            self.timers.cancel(timer);
        }
    }

    /// Reads what the expiry of these keys will read. Nearly all of it is out of the processor's caches;
    /// here the loads of several keys run at the same time, and not one after the other.
    pub(crate) fn warm(&self, places: impl Iterator<Item = u32> + Clone) {
        let entries = places.filter_map(|place| Some((place, self.store.slab.get(place)?)));
        entries.clone().for_each(|(_, entry)| _ = black_box(entry.key().first()));
        let hashes: Vec<_> =
            entries.map(|(place, entry)| (place, self.placement.hash(entry.key()))).collect();
        hashes.iter().for_each(|&(place, hash)| _ = black_box(self.store.index.find(hash, |it| it == place)));
    }

    /// A key's timer has fired.
    pub(crate) fn fired(&mut self, timer: Key, place: u32) {
        // A flush discards keys whose timers are still to be cancelled.
        let Some(entry) = self.store.slab.get(place).filter(|entry| entry.timer == Some(timer)) else {
            return;
        };
        if self.has_expired(entry) {
            return self.expire(place);
        }
        // The wall clock was set back.
        if let Some(deadline) = entry.expires {
            self.set_deadline(place, deadline);
        }
    }

    fn has_expired(&self, entry: &Entry) -> bool {
        entry.expires.is_some_and(|deadline| self.time.has_passed(deadline))
    }

    /// Removes a key that has expired.
    fn expire(&mut self, place: u32) {
        let Some(hash) = self.store.slab.get(place).map(|entry| self.placement.hash(entry.key())) else {
            return;
        };
        let Some(entry) = self.store.remove(hash, place) else { return };
        // It returns nothing if the timer has fired.
        entry.timer.and_then(|timer| self.timers.cancel(timer));
        self.counts.expired += 1;
        self.events.add(Class::EXPIRED, "expired", entry.key());
    }

    /// Removes all keys. Their memory comes back step by step, in `step`.
    pub(crate) fn flush(&mut self) {
        self.discarded.push((std::mem::take(&mut self.store).slab, 0));
        self.recheck = None;
    }

    /// The wall clock was set: dates are at other ticks now.
    pub(crate) fn clock_was_set(&mut self) {
        self.recheck = Some(0);
    }

    /// Does a step of the tasks that take long. True if there is more to do.
    pub(crate) fn step(&mut self) -> bool {
        self.discard();
        self.recheck = self.recheck.and_then(|place| self.recheck_from(place));
        self.recheck.is_some() || !self.discarded.is_empty()
    }

    fn discard(&mut self) {
        let Some((slab, next)) = self.discarded.last_mut() else { return };
        for _ in 0..STEP {
            if let Some(timer) = slab.remove(*next).and_then(|entry| entry.timer) {
                self.timers.cancel(timer);
            }
            *next += 1;
        }
        if slab.len() == 0 {
            self.discarded.pop();
        }
    }

    fn recheck_from(&mut self, mut place: u32) -> Option<u32> {
        for _ in 0..STEP {
            let (entry, next) = self.store.slab.next(place);
            if let Some(date) = entry.and_then(|entry| entry.expires).filter(|it| it.is_date()) {
                self.set_deadline(place, date);
            }
            place = next?;
        }
        Some(place)
    }

    /// Walks over the keys that have not expired, from a place on, until `visit` wants no more or
    /// this many slots have been passed. Returns where to go on.
    pub(crate) fn walk(
        &self,
        mut place: u32,
        slots: usize,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Option<u32> {
        for _ in 0..slots {
            let (entry, next) = self.store.slab.next(place);
            let living = entry.filter(|entry| !self.has_expired(entry));
            let has_enough = living.is_some_and(|entry| !visit(entry.key()));
            place = next?;
            if has_enough {
                break;
            }
        }
        Some(place)
    }

    /// Panics unless each key with a deadline has a timer, and each timer a key.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn check(&self) {
        let mut all = (0, 0);
        let mut at = Some(0);
        while let Some(place) = at {
            let (found, next) = self.store.slab.next(place);
            if let Some(entry) = found {
                assert_eq!(self.store.find(self.placement.hash(entry.key()), entry.key()), Some(place));
                assert_eq!(entry.timer.is_some(), entry.expires.is_some());
                all = (all.0 + 1, all.1 + usize::from(entry.timer.is_some()));
            }
            at = next;
        }
        assert_eq!(all, (self.store.slab.len(), self.store.expiring));
        if self.discarded.is_empty() {
            assert_eq!(self.timers.len(), self.store.expiring, "timers");
        }
    }
}

#[cfg(test)]
mod tests;
