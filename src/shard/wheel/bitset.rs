//! A set of small numbers in plain memory, for one owner: one bit per number, and a summary bit per
//! word of 64 that is not empty. The summary lets a search skip long empty ranges.

use std::ops::Range;

const WORD: usize = u64::BITS as usize;

/// A set of numbers below 64 x the number of words.
///
/// Invariant: a bit of `summary` is set exactly if its word is not zero.
pub(in crate::shard) struct Bitmap {
    words: Box<[u64]>,
    summary: Box<[u64]>,
}

impl Bitmap {
    /// Makes an empty set with room for 64 x `words` numbers.
    pub(in crate::shard) fn new(words: usize) -> Self {
        Self { words: vec![0; words].into(), summary: vec![0; words.div_ceil(WORD)].into() }
    }

    /// The number of words.
    #[inline]
    pub(in crate::shard) fn len(&self) -> usize {
        self.words.len()
    }

    /// The number of words that are not empty. O(words / 64).
    pub(in crate::shard) fn words_in_use(&self) -> usize {
        self.summary.iter().map(|words| words.count_ones() as usize).sum()
    }

    /// The address of a word, for prefetching only. The word need not exist.
    #[inline]
    pub(in crate::shard) fn address(&self, word: usize) -> *const u64 {
        self.words.as_ptr().wrapping_add(word)
    }

    #[inline]
    pub(in crate::shard) fn contains(&self, number: usize) -> bool {
        (self.words[number / WORD] >> (number % WORD)) & 1 == 1
    }

    #[inline]
    pub(in crate::shard) fn insert(&mut self, number: usize) {
        let word = number / WORD;
        self.words[word] |= 1 << (number % WORD);
        self.summary[word / WORD] |= 1 << (word % WORD);
    }

    #[inline]
    pub(in crate::shard) fn remove(&mut self, number: usize) {
        let word = number / WORD;
        self.words[word] &= !(1 << (number % WORD));
        if self.words[word] == 0 {
            self.summary[word / WORD] &= !(1 << (word % WORD));
        }
    }

    /// Removes all numbers of a word and returns them as bits.
    #[inline]
    pub(in crate::shard) fn take_word(&mut self, word: usize) -> u64 {
        self.summary[word / WORD] &= !(1 << (word % WORD));
        std::mem::take(&mut self.words[word])
    }

    /// Adds the numbers of some of another set's words to this set's words from `to` on. There is
    /// room. O(words).
    pub(in crate::shard) fn absorb(&mut self, other: &Self, words: Range<usize>, to: usize) {
        for (word, &bits) in (to..).zip(&other.words[words]) {
            self.words[word] |= bits;
            self.summary[word / WORD] |= u64::from(bits != 0) << (word % WORD);
        }
    }

    /// The words from the first to the last that is not empty. O(words / 64).
    pub(in crate::shard) fn words_between(&self) -> Range<usize> {
        let last = self.summary.iter().rposition(|&words| words != 0);
        let end = last.map_or(0, |at| at * WORD + self.summary[at].ilog2() as usize + 1);
        self.word_from(0).unwrap_or(0)..end
    }

    /// The first number in the set at or after `from`.
    #[inline]
    pub(in crate::shard) fn first_from(&self, from: usize) -> Option<usize> {
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
    pub(in crate::shard) fn word_from(&self, from: usize) -> Option<usize> {
        let mut at = from / WORD;
        let mut bits = self.summary.get(at)? & (u64::MAX << (from % WORD));
        while bits == 0 {
            at += 1;
            bits = *self.summary.get(at)?;
        }
        Some(at * WORD + bits.trailing_zeros() as usize)
    }

    pub(in crate::shard) fn is_empty(&self) -> bool {
        self.word_from(0).is_none()
    }
}

/// Finds the first set bit at or after `from` in a ring of `words` words of 64 bits, a power of
/// two, which `load` reads. Looks at the word of `from` and at the `steps` words after it.
#[inline]
pub(in crate::shard) fn next_set(
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

    #[test]
    fn a_larger_one_absorbs_a_smaller() {
        let [mut small, mut large] = [80, 100].map(Bitmap::new);
        let far = 70 * WORD + 5;
        [3, 63, far].into_iter().for_each(|number| small.insert(number));
        [4, 6399].into_iter().for_each(|number| large.insert(number));
        assert_eq!((small.words_between(), large.words_between()), (0..71, 0..100));
        large.absorb(&small, 0..80, 0);
        let all = |set: &Bitmap| {
            std::iter::successors(set.first_from(0), |&number| set.first_from(number + 1)).collect::<Vec<_>>()
        };
        assert_eq!(all(&large), [3, 4, 63, far, 6399]);
        for to in [1, 28, 29] {
            let mut later = Bitmap::new(100);
            later.absorb(&small, 70..71, to);
            assert_eq!((all(&later), later.words_between()), (vec![to * WORD + 5], to..to + 1));
        }
        assert_eq!(Bitmap::new(0).words_between(), 0..0);
        assert_eq!((large.len(), large.take_word(0)), (100, 1 << 3 | 1 << 4 | 1 << 63));
    }
}
