//! A key with its value and its deadline.

use shardwheel::Key;

use crate::clock::Deadline;

/// One piece of memory holds the length of the key, the key, and the value.
#[derive(Debug)]
pub(crate) struct Entry {
    data: Box<[u8]>,
    /// The timer in the thread's shard. `None` if the key has no deadline.
    pub(crate) timer: Option<Key>,
    pub(crate) expires: Option<Deadline>,
}

/// The bits of a length that a byte holds; its highest bit says that more follow.
const BITS: u32 = 7;
const MORE: u8 = 1 << BITS;

impl Entry {
    pub(crate) fn new(key: &[u8], value: &[u8]) -> Self {
        Self { data: pack(key, value), timer: None, expires: None }
    }

    pub(crate) fn key(&self) -> &[u8] {
        let (start, len) = self.key_span();
        &self.data[start..start + len]
    }

    pub(crate) fn value(&self) -> &[u8] {
        let (start, len) = self.key_span();
        &self.data[start + len..]
    }

    /// Replaces the value; in place if the new one is as long as the old one.
    pub(crate) fn set_value(&mut self, value: &[u8]) {
        let (start, len) = self.key_span();
        let old = &mut self.data[start + len..];
        if old.len() == value.len() {
            old.copy_from_slice(value);
        } else {
            self.data = pack(self.key(), value);
        }
    }

    /// The memory that the key and the value take.
    pub(crate) fn bytes(&self) -> usize {
        self.data.len().next_multiple_of(ALLOCATION)
    }

    /// Where the key starts, and its length.
    fn key_span(&self) -> (usize, usize) {
        let mut len = 0;
        for (at, &byte) in self.data.iter().enumerate() {
            len |= usize::from(byte & !MORE) << (at as u32 * BITS);
            if byte & MORE == 0 {
                return (at + 1, len);
            }
        }
        (0, 0)
    }
}

/// The allocator's sizes are multiples of this.
const ALLOCATION: usize = 8;

fn pack(key: &[u8], value: &[u8]) -> Box<[u8]> {
    let mut data = Vec::with_capacity(prefix_len(key.len()) + key.len() + value.len());
    let mut rest = key.len();
    while rest >= usize::from(MORE) {
        data.push(rest as u8 | MORE);
        rest >>= BITS;
    }
    data.push(rest as u8);
    data.extend_from_slice(key);
    data.extend_from_slice(value);
    data.into_boxed_slice()
}

fn prefix_len(len: usize) -> usize {
    (usize::BITS - len.leading_zeros()).div_ceil(BITS).max(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_of_any_length_come_back() {
        for len in [0, 1, 127, 128, 16_383, 16_384, 100_000] {
            let (key, value) = (vec![b'k'; len], vec![b'v'; len / 2]);
            let mut entry = Entry::new(&key, &value);
            assert_eq!((entry.key(), entry.value()), (&key[..], &value[..]));
            assert_eq!(entry.data.len(), prefix_len(len) + len + len / 2);
            for other in [vec![b'w'; len / 2], vec![b'x'; len / 2 + 1], Vec::new()] {
                entry.set_value(&other);
                assert_eq!((entry.key(), entry.value()), (&key[..], &other[..]));
            }
        }
    }

    #[test]
    fn an_entry_is_five_words() {
        assert_eq!(size_of::<Option<Entry>>(), 40);
    }
}
