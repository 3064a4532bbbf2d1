//! Finds the place of a key by its hash.
//!
//! It is many small tables, of which each grows by itself: a table of all keys would stand still
//! for as long as it takes to move them all, each time it grows.

use hashbrown::HashTable;

/// A power of two. With ten million keys on two threads, a table holds five thousand.
const TABLES: usize = 1024;
/// A table that is smaller is not shrunk.
const SMALL: usize = 64;
/// A table that holds less than this part of its room is shrunk.
const SPARSE: usize = 8;

/// The place of an entry, and the hash of its key, so that growth need not look at keys.
#[derive(Clone, Copy, Debug)]
struct Spot {
    hash: u32,
    place: u32,
}

#[derive(Debug)]
pub(crate) struct Index {
    tables: Vec<HashTable<Spot>>,
}

impl Default for Index {
    fn default() -> Self {
        Self { tables: (0..TABLES).map(|_| HashTable::new()).collect() }
    }
}

/// The table, and what tells keys apart there. The highest bits of a hash choose the thread.
fn parts(hash: u64) -> (usize, u32) {
    (hash as usize % TABLES, (hash / TABLES as u64) as u32)
}

/// A table takes the lowest bits of a hash, and the seven highest.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

impl Index {
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let (table, hash) = parts(hash);
        let found = self.tables[table].find(spread(hash), |spot| spot.hash == hash && is_it(spot.place));
        found.map(|spot| spot.place)
    }

    pub(crate) fn insert(&mut self, hash: u64, place: u32) {
        let (table, hash) = parts(hash);
        self.tables[table].insert_unique(spread(hash), Spot { hash, place }, |spot| spread(spot.hash));
    }

    pub(crate) fn remove(&mut self, hash: u64, place: u32) {
        let (table, hash) = parts(hash);
        let table = &mut self.tables[table];
        if let Ok(found) = table.find_entry(spread(hash), |spot| spot.place == place) {
            found.remove();
        }
        if table.capacity() > SMALL && table.len() < table.capacity() / SPARSE {
            table.shrink_to(table.len() * 2, |spot| spread(spot.hash));
        }
    }
}
