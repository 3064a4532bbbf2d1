//! The bits that say which nodes of a segment are free.
//!
//! Free nodes are bits in memory order, one word for 64 nodes. A producer takes a whole word by one
//! swap and hands out its nodes in turn. The advancer sets the bits of nodes that it has freed; a
//! producer sets the bits of nodes that it took and did not use. So nodes are handed out in memory
//! order, whatever the order in which their timers ended. (A free *list* hands out nodes in the
//! order in which they were freed; after a round of random timers that order is random.)
//!
//! A summary has one bit for each word that may have free nodes. A thread that gives nodes back
//! sets the word first and the summary's bit second. A producer that takes nodes clears the
//! summary's bit first and takes the word second. So if a word has free nodes and its summary bit
//! is clear, a thread is between its two steps at that word.
//!
//! Nodes are counted after they have become free. So the thread whose nodes complete the segment
//! finds that the count is full, and no other thread does.

use std::iter;

use crate::fallible;
use crate::size::size;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Nodes in one word of free bits.
pub(crate) const WORD_NODES: usize = size(64, 64, 4);

/// The set of free nodes of a segment.
pub(crate) struct FreeBits {
    words: Box<[AtomicU64]>,
    summary: Box<[AtomicU64]>,
    /// How many bits are set. For a moment it lacks nodes that have just become free, or has nodes
    /// that have just been taken; below zero it wraps.
    count: AtomicU32,
    capacity: u32,
}

impl FreeBits {
    /// A set with all nodes free, except the first `reserved` nodes, which are never handed out.
    /// `None` if there is no memory.
    pub(crate) fn new(nodes: usize, reserved: usize) -> Option<Self> {
        let words = nodes / WORD_NODES;
        let capacity = (nodes - reserved) as u32;
        let bits = Self {
            words: fallible::zeroed(words)?,
            summary: fallible::zeroed(words.div_ceil(WORD_NODES))?,
            count: AtomicU32::new(0),
            capacity,
        };
        for word in 0..words {
            bits.give(word, bits.all_of(word));
        }
        Some(bits)
    }

    /// All nodes of a word that are ever handed out.
    fn all_of(&self, word: usize) -> u64 {
        let reserved = if word == 0 { self.words() * WORD_NODES - self.capacity() } else { 0 };
        lowest(WORD_NODES) & !lowest(reserved)
    }

    pub(crate) fn words(&self) -> usize {
        self.words.len()
    }

    pub(crate) fn count(&self) -> usize {
        // Ordering: Relaxed, an estimate.
        (self.count.load(Ordering::Relaxed) as i32).max(0) as usize
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity as usize
    }

    pub(crate) fn are_all_free(&self) -> bool {
        self.count() == self.capacity()
    }

    /// The nodes of a word that are not free.
    pub(crate) fn taken(&self, word: usize) -> u64 {
        // Ordering: Relaxed, the caller's fence orders it, or no other thread is at work.
        !self.words[word].load(Ordering::Relaxed) & lowest(WORD_NODES)
    }

    /// Makes the nodes free. The caller owns them: the advancer that freed them, or a producer that
    /// took them and did not use them. True if they complete the segment: all nodes are free now.
    pub(crate) fn give(&self, word: usize, bits: u64) -> bool {
        self.set(word, bits);
        let nodes = bits.count_ones();
        // Ordering: Relaxed. The count's own order decides which addition completes the segment;
        // `take_all` acquires the words.
        self.count.fetch_add(nodes, Ordering::Relaxed).wrapping_add(nodes) == self.capacity
    }

    fn set(&self, word: usize, bits: u64) {
        // Ordering: Release, pairs with the Acquire in `take`: the caller no longer uses the nodes.
        self.words[word].fetch_or(bits, Ordering::Release);
        // Ordering: Release, pairs with the Acquire in `take`: a thread that clears this bit sees
        // the word.
        self.summary[word / WORD_NODES].fetch_or(1 << (word % WORD_NODES), Ordering::Release);
    }

    /// Takes all free nodes of the first word that has any. Returns the word's index and its bits.
    pub(crate) fn take_word(&self) -> Option<(usize, u64)> {
        marked(&self.summary).find_map(|word| Some((word, self.take(word)?)))
    }

    /// Takes the free nodes of a word; `None` if it has none.
    fn take(&self, word: usize) -> Option<u64> {
        // Ordering: Acquire, pairs with the Release in `set`. The summary's bit first, then the
        // word.
        self.summary[word / WORD_NODES].fetch_and(!(1 << (word % WORD_NODES)), Ordering::Acquire);
        // Ordering: Acquire, pairs with the Release in `set`.
        let bits = self.words[word].swap(0, Ordering::Acquire);
        // Ordering: Relaxed, an estimate.
        self.count.fetch_sub(bits.count_ones(), Ordering::Relaxed);
        (bits != 0).then_some(bits)
    }

    /// Takes every node, or none. For the advancer, before it gives the segment back. The count has
    /// the nodes until all are taken, so a thread that completes the segment meanwhile finds it
    /// full.
    pub(crate) fn take_all(&self) -> bool {
        for word in 0..self.words() {
            // The bits of the summary stay: a producer that finds nothing in their words clears
            // them.
            // Ordering: Acquire, pairs with the Release in `set`.
            let bits = self.words[word].swap(0, Ordering::Acquire);
            if bits != self.all_of(word) {
                self.set(word, bits);
                for whole in 0..word {
                    self.set(whole, self.all_of(whole));
                }
                return false;
            }
        }
        // Ordering: Relaxed, as in `give`.
        self.count.fetch_sub(self.capacity, Ordering::Relaxed);
        true
    }

    /// Whether any word may have free nodes.
    pub(crate) fn may_have_any(&self) -> bool {
        // Ordering: Relaxed, a hint. Where the answer matters, it follows the caller's Acquire on
        // the table's bit.
        self.summary.iter().any(|words| words.load(Ordering::Relaxed) != 0)
    }
}

/// The numbers of the bits that are set, the lowest first.
pub(crate) fn marked(words: &[AtomicU64]) -> impl Iterator<Item = usize> {
    words.iter().enumerate().flat_map(|(at, word)| {
        // Ordering: Relaxed, a hint; what a bit promises is taken by read-modify-writes.
        let mut bits = word.load(Ordering::Relaxed);
        iter::from_fn(move || {
            let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
            bits &= bits - 1;
            Some(at * WORD_NODES + bit)
        })
    })
}

/// A mask of the lowest `n` bits; all 64 bits for a larger `n`.
fn lowest(n: usize) -> u64 {
    if n >= u64::BITS as usize { u64::MAX } else { (1 << n) - 1 }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_has_been_emptied_meanwhile_is_passed_over() {
        let free = FreeBits::new(192, 0).expect("there is memory");
        (0..3).for_each(|word| assert_eq!(free.take_word(), Some((word, !0))));
        // The summary has a bit for each of the three words; only one of them has nodes.
        for (word, bits) in [0, 0, 6].into_iter().enumerate() {
            free.give(word, bits);
        }
        assert_eq!((free.take_word(), free.take_word()), (Some((2, 6)), None));
    }

    #[test]
    fn what_cannot_be_taken_whole_is_put_back_whole() {
        let free = FreeBits::new(192, 0).expect("there is memory");
        (0..3).for_each(|_| assert!(free.take_word().is_some()));
        let given = [(0, !0), (1, !0), (2, 6)];
        given.into_iter().for_each(|(word, bits)| _ = free.give(word, bits));
        assert!(!free.take_all());
        assert_eq!(iter::from_fn(|| free.take_word()).collect::<Vec<_>>(), given);
    }

    #[test]
    fn all_or_nothing() {
        let free = FreeBits::new(128, 0).expect("there is memory");
        let (word, bits) = free.take_word().unwrap();
        assert!(!free.take_all());
        assert_eq!(free.count(), 64);
        assert!(!free.give(word, bits & 1));
        assert!(free.give(word, bits & !1), "these complete the segment");
        assert!(free.are_all_free() && free.take_all());
        assert_eq!(free.count(), 0);
        assert_eq!(free.take_word(), None);
    }
}
