//! A set of small numbers in plain memory, for one owner: one bit per number, and a summary bit per
//! word of 64 that is not empty. The summary lets a search skip long empty ranges.

const WORD: usize = u64::BITS as usize;

/// A set of numbers below 64 x the number of words.
///
/// Invariant: a bit of `summary` is set exactly if its word is not zero.
pub(crate) struct Bitmap {
    words: Box<[u64]>,
    summary: Box<[u64]>,
}

impl Bitmap {
    /// Makes an empty set with room for 64 x `words` numbers.
    pub(crate) fn new(words: usize) -> Self {
        Self { words: vec![0; words].into(), summary: vec![0; words.div_ceil(WORD)].into() }
    }

    /// The number of words.
    #[inline]
    pub(crate) fn words(&self) -> usize {
        self.words.len()
    }

    #[inline]
    pub(crate) fn contains(&self, number: usize) -> bool {
        (self.words[number / WORD] >> (number % WORD)) & 1 == 1
    }

    #[inline]
    pub(crate) fn insert(&mut self, number: usize) {
        let word = number / WORD;
        self.words[word] |= 1 << (number % WORD);
        self.summary[word / WORD] |= 1 << (word % WORD);
    }

    #[inline]
    pub(crate) fn remove(&mut self, number: usize) {
        let word = number / WORD;
        self.words[word] &= !(1 << (number % WORD));
        if self.words[word] == 0 {
            self.summary[word / WORD] &= !(1 << (word % WORD));
        }
    }

    /// Removes all numbers of a word and returns them as bits.
    #[inline]
    pub(crate) fn take_word(&mut self, word: usize) -> u64 {
        self.summary[word / WORD] &= !(1 << (word % WORD));
        std::mem::take(&mut self.words[word])
    }

    /// The first number in the set at or after `from`.
    #[inline]
    pub(crate) fn first_from(&self, from: usize) -> Option<usize> {
        let word = from / WORD;
        let bits = self.words.get(word)? & (u64::MAX << (from % WORD));
        if bits != 0 {
            return Some(word * WORD + bits.trailing_zeros() as usize);
        }
        let word = self.word_from(word + 1)?;
        Some(word * WORD + self.words[word].trailing_zeros() as usize)
    }

    /// The first word at or after `from` that is not empty.
    #[inline]
    pub(crate) fn word_from(&self, from: usize) -> Option<usize> {
        let mut at = from / WORD;
        let mut bits = self.summary.get(at)? & (u64::MAX << (from % WORD));
        while bits == 0 {
            at += 1;
            bits = *self.summary.get(at)?;
        }
        Some(at * WORD + bits.trailing_zeros() as usize)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.word_from(0).is_none()
    }
}

/// Finds the first set bit at or after `from` in a ring of `words` words of 64 bits, a power of
/// two, which `load` reads. Looks at the word of `from` and at the `steps` words after it.
#[inline]
pub(crate) fn next_set(
    words: usize,
    from: usize,
    steps: usize,
    load: impl Fn(usize) -> u64,
) -> Option<usize> {
    let first = from / 64;
    let word = |step: usize| load((first + step) & (words - 1));
    let mut bits = load(first) & (u64::MAX << (from % 64));
    let mut step = 0;
    if bits == 0 {
        // Four words at a time, while they are empty.
        while step + 4 <= steps && (1..=4).fold(0, |any, ahead| any | word(step + ahead)) == 0 {
            step += 4;
        }
    }
    while bits == 0 {
        if step == steps {
            return None;
        }
        step += 1;
        bits = word(step);
    }
    Some(((first + step) & (words - 1)) * 64 + bits.trailing_zeros() as usize)
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_agrees_with_a_tree() {
        let (words, mut seed) = (200, 12345_u64);
        let mut bitmap = Bitmap::new(words);
        let mut tree = BTreeSet::new();
        for step in 0..20_000 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let number = seed as usize % (words * WORD);
            match seed >> 61 {
                // The set grows and shrinks by turns.
                0..=3 if step % 4000 < 2000 => {
                    bitmap.insert(number);
                    tree.insert(number);
                }
                4 => {
                    let bits = bitmap.take_word(number / WORD);
                    let base = number / WORD * WORD;
                    let taken = tree.range(base..base + WORD).fold(0, |bits, n| bits | 1 << (n - base));
                    tree.retain(|n| n / WORD != number / WORD);
                    assert_eq!(bits, taken);
                }
                _ => {
                    bitmap.remove(number);
                    tree.remove(&number);
                }
            }
            assert_eq!(bitmap.first_from(number), tree.range(number..).next().copied());
            assert_eq!(
                bitmap.word_from(number / WORD),
                tree.range(number / WORD * WORD..).next().map(|n| n / WORD)
            );
            assert_eq!(bitmap.contains(number), tree.contains(&number));
            assert_eq!(bitmap.is_empty(), tree.is_empty());
        }
    }
}
