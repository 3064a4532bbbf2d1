//! A thread's share of the keys: where they are kept, and how they are found.
//!
//! Entries stand in a [`slab`], at places that do not change while they live. So a timer
//! names its key by the place, and SCAN walks the places. The [`index`] finds the place of a
//! key. Both grow and shrink in small pieces: no step of theirs takes longer for more keys.

mod entry;
mod index;
mod slab;

pub(crate) use entry::Entry;
pub(crate) use slab::Slab;

use index::Index;

/// The memory that an entry takes in the slab, the index and, if it expires, the shard of timers.
/// The index has room for up to two and a quarter times what it holds.
const SLOT_BYTES: usize = size_of::<Option<Entry>>() + 14;
pub(crate) const TIMER_BYTES: usize = 32;

/// Keys with their values. It knows no time.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) index: Index,
    pub(crate) slab: Slab,
    /// The memory that the keys take, estimated without the allocator.
    pub(crate) bytes: usize,
    /// How many keys have a deadline.
    pub(crate) expiring: usize,
}

impl Store {
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<u32> {
        self.index.find(hash, |place| self.slab.get(place).is_some_and(|entry| entry.key() == key))
    }

    /// Adds a key that is not there, and returns its place.
    pub(crate) fn insert(&mut self, hash: u64, key: &[u8], value: &[u8]) -> u32 {
        let entry = Entry::new(key, value);
        self.bytes += SLOT_BYTES + entry.bytes();
        let place = self.slab.insert(entry);
        self.index.insert(hash, place);
        place
    }

    /// Replaces a value.
    pub(crate) fn set_value(&mut self, place: u32, value: &[u8]) {
        let Some(entry) = self.slab.get_mut(place) else { return };
        self.bytes -= entry.bytes();
        entry.set_value(value);
        self.bytes += entry.bytes();
    }

    /// Sets or removes the deadline of an entry, together with its timer.
    pub(crate) fn set_expiry(&mut self, place: u32, set: impl FnOnce(&mut Entry)) {
        let Some(entry) = self.slab.get_mut(place) else { return };
        let before = usize::from(entry.expires.is_some());
        set(entry);
        let after = usize::from(entry.expires.is_some());
        self.expiring = self.expiring + after - before;
        self.bytes = self.bytes + after * TIMER_BYTES - before * TIMER_BYTES;
    }

    /// Takes an entry out. `hash` is that of its key.
    pub(crate) fn remove(&mut self, hash: u64, place: u32) -> Option<Entry> {
        let entry = self.slab.remove(place)?;
        self.index.remove(hash, place);
        let expires = usize::from(entry.expires.is_some());
        self.expiring -= expires;
        self.bytes -= SLOT_BYTES + entry.bytes() + expires * TIMER_BYTES;
        Some(entry)
    }
}

#[cfg(test)]
mod tests;
