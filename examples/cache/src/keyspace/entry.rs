//! A key with its value and its deadline.

use shardwheel::Key;

use crate::clock::Deadline;
use crate::keyspace::Hash;

/// One piece of memory holds the length of the key, the key, and the value.
#[derive(Debug)]
pub(crate) struct Entry {
    data: Box<[u8]>,
    pub(crate) timer: Option<Key>,
    pub(crate) expires: Option<Deadline>,
    /// That of the key: its table need not look at keys when it grows.
    pub(super) hash: Hash,
}

const PREFIX: usize = size_of::<u32>();
const ALLOCATION: usize = 16;
/// The memory that an entry takes besides its key and value: its own, its place in a table, which is
/// two thirds full on average, and its timer in the shard.
const ENTRY_BYTES: usize = size_of::<Entry>() + (size_of::<usize>() + 1) * 3 / 2;
const TIMER_BYTES: usize = 32;

impl Entry {
    /// Keys end before 4 GiB (`parser::MAX_BULK`).
    pub(crate) fn new(hash: Hash, key: &[u8], value: &[u8]) -> Box<Self> {
        Box::new(Self { data: assemble(key, value), timer: None, expires: None, hash })
    }

    fn key_end(&self) -> usize {
        PREFIX + self.data.first_chunk().map_or(0, |&len| u32::from_le_bytes(len) as usize)
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.data[PREFIX..self.key_end()]
    }

    pub(crate) fn value(&self) -> &[u8] {
        &self.data[self.key_end()..]
    }

    /// Replaces the value; in place if the new one is as long as the old one.
    pub(crate) fn set_value(&mut self, value: &[u8]) {
        if self.value().len() == value.len() {
            let start = self.key_end();
            self.data[start..].copy_from_slice(value);
        } else {
            self.data = assemble(self.key(), value);
        }
    }

    /// What is counted of the entry: itself, whether it has a deadline, and its bytes.
    pub(crate) fn counts(&self) -> [usize; 3] {
        let expires = usize::from(self.expires.is_some());
        let data = self.data.len().next_multiple_of(ALLOCATION);
        [1, expires, ENTRY_BYTES + data + expires * TIMER_BYTES]
    }
}

fn assemble(key: &[u8], value: &[u8]) -> Box<[u8]> {
    [&(key.len() as u32).to_le_bytes()[..], key, value].concat().into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_six_words() {
        assert_eq!(size_of::<Entry>(), 48);
    }
}
