//! A thread's share of the keys, with the timers of those that expire.
//!
//! The keys are in many small tables, each of which grows by itself: to move the keys of one large
//! table would take long. A key never changes its table, so a walk over the tables meets each key
//! that is there all the time exactly once.
//!
//! Each key with a deadline has a timer in the thread's shard. When the timer fires, or a look-up finds
//! the key after its deadline, the key goes, with its memory and its event.

mod entry;
mod expiry;
#[cfg(any(test, fuzzing))]
mod support;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::{HashMap, HashTable};
use shardwheel::{Advancer, Config, Scheduler, shard};

use crate::clock::{TICK, Time};
use crate::events::{Class, Events};
use crate::stats::{Figure, Stats};
use entry::Entry;

/// A power of two. With ten million keys on two threads, a table holds three hundred. Tests and
/// fuzzers have few keys.
pub(crate) const TABLES: usize = if cfg!(any(test, fuzzing)) { 16 } else { 1 << 14 };
/// A table that holds less than this part of its room is shrunk.
const SPARSE: usize = 4;
/// Keys, and empty tables, that a thread looks at in one round of a longer task.
const STEP: usize = 512;
/// Versions that a thread has. One more, and all are forgotten: to those who watch, each key has changed.
const VERSIONS: usize = 1 << 16;

const COUNTED: [Figure; 3] = [Figure::Keys, Figure::ExpiringKeys, Figure::KeyBytes];

type Table = HashTable<Box<Entry>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// A key with this hash, which has this timer.
    Key(Hash),
    /// The connection in this slot has been silent for too long.
    Idle(u32),
}

pub(crate) fn timers() -> (Scheduler<Due>, Advancer<Due>) {
    // The default tick is a millisecond.
    debug_assert_eq!(Config::default().tick(), TICK);
    shard(&Config::default())
}

#[derive(Clone, Debug)]
pub(crate) struct Placement {
    hasher: RandomState,
    threads: usize,
    /// All keys have the same slot.
    is_one: bool,
}

impl Placement {
    pub(crate) fn new(threads: usize, is_one: bool) -> Self {
        Self { hasher: RandomState::new(), threads, is_one }
    }

    /// The hash of a key, and its thread: keys with the same tag, `{tag}`, have the same thread.
    pub(crate) fn of(&self, key: &[u8]) -> (Hash, usize) {
        let hash = self.hasher.hash_one(key);
        let placed = tag(key).map_or(hash, |tag| self.hasher.hash_one(tag));
        let table = (hash % TABLES as u64) as u16;
        (Hash { table, hash: (hash / TABLES as u64) as u32 }, self.thread(placed))
    }

    /// What commands that need all of their keys in one thread go by, however many threads there are: the hash of the
    /// tag, or of a key without one.
    pub(crate) fn slot(&self, key: &[u8]) -> u64 {
        if self.is_one { 0 } else { self.hasher.hash_one(tag(key).unwrap_or(key)) }
    }

    pub(crate) fn thread(&self, slot: u64) -> usize {
        ((u128::from(slot) * self.threads as u128) >> u64::BITS) as usize
    }
}

/// What stands between the first `{` and the next `}`, if anything does: as in a cluster of Redis.
fn tag(key: &[u8]) -> Option<&[u8]> {
    let rest = &key[memchr::memchr(b'{', key)? + 1..];
    memchr::memchr(b'}', rest).filter(|&len| len > 0).map(|len| &rest[..len])
}

/// What tells a key apart: its table, and its hash there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Hash {
    table: u16,
    hash: u32,
}

impl Hash {
    /// For a table, which takes the lowest bits, and the seven highest.
    fn spread(self) -> u64 {
        u64::from(self.hash) << 32 | u64::from(self.hash)
    }
}

/// Where a key is until another one comes to its table or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    hash: Hash,
    bucket: usize,
}

/// Places are used at once.
const PLACE: &str = "an entry stays where it was found";

pub(crate) struct Keyspace {
    tables: Vec<Table>,
    pub(crate) timers: Scheduler<Due>,
    pub(crate) time: Time,
    pub(crate) events: Events,
    stats: Arc<Stats>,
    /// What a flush has left to be dropped, a step a round.
    discarded: Vec<Table>,
    /// The keys that have come since the last step: as many more are dropped in the next one, so that keys
    /// do not come faster than flushed ones go.
    inserted: usize,
    /// The versions of keys that are watched, whether they are there or not. A change takes a key's away.
    versions: HashMap<Hash, u64>,
    /// After the wall clock was set: the next table whose deadlines may have other ticks now.
    recheck: usize,
}

impl Keyspace {
    pub(crate) fn new(time: Time, timers: Scheduler<Due>, stats: Arc<Stats>) -> Self {
        let (events, discarded, versions) = Default::default();
        let tables = (0..TABLES).map(|_| Table::new()).collect();
        Self { tables, timers, time, events, stats, discarded, inserted: 0, versions, recheck: TABLES }
    }

    pub(crate) fn find(&mut self, hash: Hash, key: &[u8]) -> Option<Place> {
        let place = self.find_by(hash, |entry| entry.key() == key)?;
        if self.has_expired(self.get(place)) {
            self.expire(place);
            return None;
        }
        Some(place)
    }

    /// As `find`, counted as a hit or a miss, which is an event.
    pub(crate) fn look_up(&mut self, hash: Hash, key: &[u8]) -> Option<Place> {
        let found = self.find(hash, key);
        self.stats.add(if found.is_some() { Figure::Hits } else { Figure::Misses }, 1);
        if found.is_none() {
            self.events.add(Class::MISS, "keymiss", key);
        }
        found
    }

    fn find_by(&self, hash: Hash, is_it: impl Fn(&Entry) -> bool) -> Option<Place> {
        let bucket =
            self.tables[usize::from(hash.table)].find_bucket_index(hash.spread(), |entry| is_it(entry))?;
        Some(Place { hash, bucket })
    }

    /// The version of a key that is watched: another one, if it has changed since.
    pub(crate) fn version(&mut self, hash: Hash) -> u64 {
        let found = self.find_by(hash, |entry| entry.hash == hash);
        if let Some(place) = found.filter(|&place| self.has_expired(self.get(place))) {
            self.expire(place);
        }
        if self.versions.len() >= VERSIONS {
            self.versions.clear();
        }
        *self.versions.entry(hash).or_insert_with(|| fastrand::u64(..))
    }

    /// A key has changed: those who watch it find another version. Nearly always no key is watched.
    fn changed(&mut self, hash: Hash) {
        if !self.versions.is_empty() {
            self.versions.remove(&hash);
        }
    }

    pub(crate) fn get(&self, place: Place) -> &Entry {
        self.tables[usize::from(place.hash.table)].get_bucket(place.bucket).expect(PLACE)
    }

    fn change(&mut self, place: Place, change: impl FnOnce(&mut Entry, &Scheduler<Due>)) {
        let table = &mut self.tables[usize::from(place.hash.table)];
        let entry = table.get_bucket_mut(place.bucket).expect(PLACE);
        let before = entry.counts();
        change(entry, &self.timers);
        let after = entry.counts();
        self.count(before, after);
        self.changed(place.hash);
    }

    fn count(&self, before: [usize; 3], after: [usize; 3]) {
        for ((figure, before), after) in COUNTED.into_iter().zip(before).zip(after) {
            // In one store: other threads skip a thread without keys.
            if after < before {
                self.stats.sub(figure, before - after);
            } else {
                self.stats.add(figure, after - before);
            }
        }
    }

    /// Sets the value of a key, at the place where it has been found, or anew.
    pub(crate) fn set_value(&mut self, hash: Hash, key: &[u8], value: &[u8], found: Option<Place>) -> Place {
        if let Some(place) = found {
            self.change(place, |entry, _| entry.set_value(value));
            return place;
        }
        self.events.add(Class::NEW, "new", key);
        self.inserted += 1;
        self.changed(hash);
        let entry = Entry::new(hash, key, value);
        self.count([0; 3], entry.counts());
        let table = &mut self.tables[usize::from(hash.table)];
        let entry = table.insert_unique(hash.spread(), entry, |entry| entry.hash.spread());
        Place { hash, bucket: entry.bucket_index() }
    }

    /// Writes a part of a key's value.
    pub(crate) fn write(&mut self, place: Place, at: usize, part: &[u8]) {
        self.change(place, |entry, _| entry.write(at, part));
    }

    pub(crate) fn remove(&mut self, place: Place) -> Box<Entry> {
        let table = &mut self.tables[usize::from(place.hash.table)];
        let (entry, _) = table.get_bucket_entry(place.bucket).expect(PLACE).remove();
        if table.len() < table.capacity().div_ceil(SPARSE) {
            table.shrink_to(table.len() * 2, |entry| entry.hash.spread());
        }
        self.count(entry.counts(), [0; 3]);
        self.changed(place.hash);
        // It returns nothing if the timer has fired.
        entry.timer.and_then(|timer| self.timers.cancel(timer));
        entry
    }

    pub(crate) fn living(&self, table: usize) -> impl Iterator<Item = &[u8]> {
        self.tables[table].iter().filter(|entry| !self.has_expired(entry)).map(|entry| entry.key())
    }

    /// Removes all keys. Their memory comes back step by step, in `step`.
    pub(crate) fn flush(&mut self) {
        let is_there =
            |hash: Hash| self.tables[usize::from(hash.table)].find(hash.spread(), |it| it.hash == hash);
        self.versions.retain(|&hash, _| is_there(hash).is_none());
        self.discarded.extend(self.tables.iter_mut().filter(|table| !table.is_empty()).map(std::mem::take));
        self.count(COUNTED.map(|figure| self.stats.get(figure)), [0; 3]);
    }

    /// Does a step of the tasks that take long. True if there is more to do.
    pub(crate) fn step(&mut self) -> bool {
        let mut left = STEP + std::mem::take(&mut self.inserted);
        while left > 0
            && let Some(mut table) = self.discarded.pop()
        {
            left = left.saturating_sub(1 + table.len());
            for entry in table.drain() {
                entry.timer.and_then(|timer| self.timers.cancel(timer));
            }
        }
        while left > 0 && self.recheck < TABLES {
            left = left.saturating_sub(1 + self.tables[self.recheck].len());
            self.follow_clock(self.recheck);
            self.recheck += 1;
        }
        !self.discarded.is_empty() || self.recheck < TABLES
    }
}

#[cfg(test)]
mod tests;
