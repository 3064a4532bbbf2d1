//! A key with its value and its deadline.

use shardwheel::Key;

use crate::clock::Deadline;
use crate::keyspace::Hash;

/// One piece of memory holds the length of the key, the key, and the value. After a part of the value has been written,
/// there may be room for more behind it: then the length has the mark `ROOMY`, and the last four bytes say how much.
#[derive(Debug)]
pub(crate) struct Entry {
    data: Box<[u8]>,
    pub(crate) timer: Option<Key>,
    pub(crate) expires: Option<Deadline>,
    /// That of the key: its table need not look at keys when it grows.
    pub(super) hash: Hash,
}

const PREFIX: usize = size_of::<u32>();
const ROOMY: u32 = 1 << 31;
const FOOTER: usize = size_of::<u32>();
/// Room is made for as much as there is, but beyond this for a quarter of it: so each byte of a value that grows by many
/// small parts is copied four times on average.
const DOUBLED: usize = 1024 * 1024;
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

    fn prefix(&self) -> u32 {
        self.data.first_chunk().map_or(0, |&len| u32::from_le_bytes(len))
    }

    fn key_end(&self) -> usize {
        PREFIX + (self.prefix() & !ROOMY) as usize
    }

    /// The bytes behind the value, with those that say so.
    fn room(&self) -> usize {
        let is_roomy = self.prefix() & ROOMY != 0;
        self.data.last_chunk().filter(|_| is_roomy).map_or(0, |&len| u32::from_le_bytes(len) as usize)
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.data[PREFIX..self.key_end()]
    }

    pub(crate) fn value(&self) -> &[u8] {
        &self.data[self.key_end()..self.data.len() - self.room()]
    }

    /// Replaces the value; in place if the new one is as long as the old one.
    pub(crate) fn set_value(&mut self, value: &[u8]) {
        if self.value().len() == value.len() {
            self.write(0, value);
        } else {
            self.data = assemble(self.key(), value);
        }
    }

    /// Writes a part of the value, in place if there is room. What is between the value and the part becomes zeros.
    pub(crate) fn write(&mut self, at: usize, part: &[u8]) {
        let (start, len) = (self.key_end(), self.value().len());
        let end = at + part.len();
        if end > len {
            if self.room() == 0 || start + end + FOOTER > self.data.len() {
                let more = if end < DOUBLED { end } else { DOUBLED.max(end / 4) };
                let mut data = vec![0; start + end + more + FOOTER].into_boxed_slice();
                data[..start + len].copy_from_slice(&self.data[..start + len]);
                data[..PREFIX].copy_from_slice(&(self.prefix() | ROOMY).to_le_bytes());
                self.data = data;
            }
            let (room, footer) = (self.data.len() - start - end, self.data.len() - FOOTER);
            self.data[footer..].copy_from_slice(&(room as u32).to_le_bytes());
        }
        self.data[start + at..start + end].copy_from_slice(part);
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

    /// Parts at the end and beyond it, parts in the middle, and whole values in between: the value is the model's, and it
    /// is seldom copied.
    #[test]
    fn a_value_that_grows_by_parts_is_copied_seldom() {
        let key = [b'k'; 100];
        let (mut entry, mut model, mut copies) = (Entry::new(Hash::default(), &key, b""), Vec::new(), 0);
        for round in 0..30_000_usize {
            let (part, before) = ([round as u8; 100], entry.data.as_ptr());
            let part = &part[..1 + round * 7 % 100];
            let at = if round % 3 == 0 { model.len() } else { (round * 7_919) % (model.len() + 50) };
            model.resize(model.len().max(at + part.len()), 0);
            model[at..at + part.len()].copy_from_slice(part);
            entry.write(at, part);
            copies += usize::from(entry.data.as_ptr() != before);
            assert_eq!((entry.key(), entry.value().len()), (&key[..], model.len()));
            if round % 1_000 == 0 {
                assert_eq!(entry.value(), model);
                let same = model.iter().rev().copied().collect::<Vec<_>>();
                entry.set_value(&same);
                model = same;
            }
        }
        assert!(model.len() > 500_000 && copies < 20, "{copies} copies to {}", model.len());
        assert!(entry.data.len() < 2 * model.len() + 200);
    }
}
