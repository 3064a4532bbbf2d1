//! Entries at places that do not change, in chunks that come and go.
//!
//! A new entry goes into the first chunk with a free place. A chunk that has become empty gives its
//! memory back, unless it is the only one with free places. A place is a chunk's number and a slot's.

use std::collections::BTreeSet;

use slab::Slab as Chunk;

use crate::store::Entry;

/// Slots in a chunk: 40 KiB.
const CHUNK: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Slab {
    chunks: Vec<Chunk<Entry>>,
    /// The chunks with a free slot. A chunk without memory comes after all others.
    open: BTreeSet<(bool, usize)>,
    len: usize,
}

fn parts(place: u32) -> (usize, usize) {
    (place as usize / CHUNK, place as usize % CHUNK)
}

impl Slab {
    pub(crate) fn insert(&mut self, entry: Entry) -> u32 {
        let (is_missing, number) = self.open.first().copied().unwrap_or((true, self.chunks.len()));
        if is_missing {
            self.open.remove(&(true, number));
            self.chunks.resize_with(self.chunks.len().max(number + 1), Chunk::new);
            self.chunks[number].reserve_exact(CHUNK);
            self.open.insert((false, number));
        }
        let chunk = &mut self.chunks[number];
        let slot = chunk.insert(entry);
        if chunk.len() == CHUNK {
            self.open.remove(&(false, number));
        }
        self.len += 1;
        (number * CHUNK + slot) as u32
    }

    pub(crate) fn remove(&mut self, place: u32) -> Option<Entry> {
        let (number, slot) = parts(place);
        let chunk = self.chunks.get_mut(number)?;
        let entry = chunk.try_remove(slot)?;
        self.len -= 1;
        if chunk.len() == CHUNK - 1 {
            self.open.insert((false, number));
        }
        if chunk.is_empty() && self.open.range((false, 0)..(true, 0)).nth(1).is_some() {
            *chunk = Chunk::new();
            self.open.remove(&(false, number));
            self.open.insert((true, number));
        }
        Some(entry)
    }

    pub(crate) fn get(&self, place: u32) -> Option<&Entry> {
        let (number, slot) = parts(place);
        self.chunks.get(number)?.get(slot)
    }

    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut Entry> {
        let (number, slot) = parts(place);
        self.chunks.get_mut(number)?.get_mut(slot)
    }

    /// The chunks for which there is memory.
    #[cfg(test)]
    pub(super) fn chunks(&self) -> usize {
        self.chunks.iter().filter(|chunk| chunk.capacity() > 0).count()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The first place after all entries.
    pub(crate) fn end(&self) -> u32 {
        (self.chunks.len() * CHUNK) as u32
    }

    /// The entry at a place, if there is one, and the next place of a walk; `None` at the end. A chunk
    /// without entries counts as one place.
    pub(crate) fn next(&self, place: u32) -> (Option<&Entry>, Option<u32>) {
        let (number, _) = parts(place);
        let is_empty = self.chunks.get(number).is_none_or(Chunk::is_empty);
        let next = if is_empty { ((number + 1) * CHUNK) as u32 } else { place + 1 };
        (self.get(place), Some(next).filter(|&next| next < self.end()))
    }
}
