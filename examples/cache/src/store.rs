//! A thread's share of the keys: where they are kept, and how they are found.
//!
//! It is many small tables, of which each grows and shrinks by itself: one table of all keys would
//! stand still for as long as it takes to move them all. A key stays in its table, so a walk over
//! the tables meets each key that is there all the time exactly once.

mod entry;

use std::sync::Arc;

use hashbrown::HashTable;
use shardwheel::Key;

use crate::keyspace::Placement;
use crate::stats::{Figure, Stats};
pub(crate) use entry::Entry;

/// A power of two. With ten million keys on two threads, a table holds three hundred. Tests and
/// fuzzers have few keys.
pub(crate) const TABLES: usize = if cfg!(any(test, fuzzing)) { 16 } else { 1 << 14 };
/// A table that holds less than this part of its room is shrunk.
const SPARSE: usize = 8;
/// The memory that an entry takes in a table, which is two thirds full on average, and its timer in
/// the shard.
const SLOT_BYTES: usize = (size_of::<Entry>() + 1) * 3 / 2;
const TIMER_BYTES: usize = 32;

pub(crate) type Table = HashTable<Entry>;

/// What tells a key apart: its table, and its hash there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hash {
    table: u16,
    hash: u32,
}

impl Hash {
    /// The highest bits of a hash choose the thread.
    fn new(hash: u64) -> Self {
        Self { table: (hash % TABLES as u64) as u16, hash: (hash / TABLES as u64) as u32 }
    }

    /// A table takes the lowest bits of a hash, and the seven highest.
    fn spread(self) -> u64 {
        u64::from(self.hash) << 32 | u64::from(self.hash)
    }
}

/// Where an entry is until another one comes to its table or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) hash: Hash,
    bucket: usize,
}

/// Keys with their values. It knows no time.
#[derive(Debug)]
pub(crate) struct Store {
    tables: Vec<Table>,
    pub(crate) placement: Placement,
    stats: Arc<Stats>,
}

/// Why there is an entry at a place: places are used at once.
const PLACE: &str = "an entry stays where it was found";

impl Store {
    pub(crate) fn new(placement: Placement, stats: Arc<Stats>) -> Self {
        Self { tables: empty(), placement, stats }
    }

    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<Place> {
        self.find_by(Hash::new(hash), |entry| entry.key() == key)
    }

    pub(crate) fn find_timer(&self, hash: Hash, timer: Key) -> Option<Place> {
        self.find_by(hash, |entry| entry.timer == Some(timer))
    }

    fn find_by(&self, hash: Hash, is_it: impl Fn(&Entry) -> bool) -> Option<Place> {
        let bucket = self.tables[usize::from(hash.table)].find_bucket_index(hash.spread(), is_it)?;
        Some(Place { hash, bucket })
    }

    pub(crate) fn get(&self, place: Place) -> &Entry {
        self.tables[usize::from(place.hash.table)].get_bucket(place.bucket).expect(PLACE)
    }

    fn get_mut(&mut self, place: Place) -> &mut Entry {
        self.tables[usize::from(place.hash.table)].get_bucket_mut(place.bucket).expect(PLACE)
    }

    /// Adds a key that is not there.
    pub(crate) fn insert(&mut self, hash: u64, key: &[u8], value: &[u8]) -> Place {
        let (entry, hash) = (Entry::new(key, value), Hash::new(hash));
        self.stats.add(Figure::Keys, 1);
        self.stats.add(Figure::KeyBytes, SLOT_BYTES + entry.bytes());
        let spread = |entry: &Entry| Hash::new(self.placement.hash(entry.key())).spread();
        let table = &mut self.tables[usize::from(hash.table)];
        Place { hash, bucket: table.insert_unique(hash.spread(), entry, spread).bucket_index() }
    }

    pub(crate) fn set_value(&mut self, place: Place, value: &[u8]) {
        let entry = self.get_mut(place);
        let before = entry.bytes();
        entry.set_value(value);
        let after = entry.bytes();
        self.stats.sub(Figure::KeyBytes, before);
        self.stats.add(Figure::KeyBytes, after);
    }

    /// Sets or removes the deadline of an entry, together with its timer.
    pub(crate) fn set_expiry(&mut self, place: Place, set: impl FnOnce(&mut Entry)) {
        let entry = self.get_mut(place);
        let before = usize::from(entry.expires.is_some());
        set(entry);
        let after = usize::from(entry.expires.is_some());
        if before != after {
            self.stats.sub(Figure::ExpiringKeys, before);
            self.stats.add(Figure::ExpiringKeys, after);
            self.stats.sub(Figure::KeyBytes, before * TIMER_BYTES);
            self.stats.add(Figure::KeyBytes, after * TIMER_BYTES);
        }
    }

    /// Takes an entry out.
    pub(crate) fn remove(&mut self, place: Place) -> Entry {
        let table = &mut self.tables[usize::from(place.hash.table)];
        let (entry, _) = table.get_bucket_entry(place.bucket).expect(PLACE).remove();
        if table.len() < table.capacity().div_ceil(SPARSE) {
            let spread = |entry: &Entry| Hash::new(self.placement.hash(entry.key())).spread();
            table.shrink_to(table.len() * 2, spread);
        }
        let expires = usize::from(entry.expires.is_some());
        self.stats.sub(Figure::Keys, 1);
        self.stats.sub(Figure::ExpiringKeys, expires);
        self.stats.sub(Figure::KeyBytes, SLOT_BYTES + entry.bytes() + expires * TIMER_BYTES);
        entry
    }

    pub(crate) fn table(&self, number: usize) -> &Table {
        &self.tables[number]
    }

    pub(crate) fn table_mut(&mut self, number: usize) -> &mut Table {
        &mut self.tables[number]
    }

    /// Takes all entries out.
    pub(crate) fn clear(&mut self) -> Vec<Table> {
        for figure in [Figure::Keys, Figure::ExpiringKeys, Figure::KeyBytes] {
            self.stats.sub(figure, self.stats.get(figure));
        }
        std::mem::replace(&mut self.tables, empty())
    }
}

fn empty() -> Vec<Table> {
    (0..TABLES).map(|_| Table::new()).collect()
}

#[cfg(test)]
mod tests;
