//! A shared wheel: striped, round-tagged lists that accept pushes at any time, and a bit for each
//! list that may hold a node.
//!
//! # Algorithm
//!
//! A bucket is [`STRIPES`] list heads in two cache lines. A head is one atomic word: the low half
//! names the first node, the high half is the *round* that the list belongs to. A push is a
//! compare-and-swap. It succeeds only if the list's round is the one that the producer computed, or
//! if the list is empty and its round is older. A flush is one swap to (next round, empty). Both
//! halves change together.
//!
//! Each list has an occupancy bit. The bits are reliable only together with the shard's clock:
//! [`machine`](crate::shard::machine) has the argument. The steps:
//!
//! | step | by | what it does |
//! |---|---|---|
//! | [`Wheel::mark`] | producer | sets the bit of the list that it is about to push to, and raises [`Wheel::last`] |
//! | [`Wheel::push`] | producer | pushes, unless the list has been flushed past the round |
//! | [`Wheel::flush`] | advancer | clears the bucket's bits, then swaps the heads whose bit was set |
//! | [`Wheel::detach`] | advancer | empties a list within its round (sweep, early cascade) |
//!
//! # Invariants
//!
//! - A push writes the head and the pushed node only, never a node that is already linked. So the
//!   lists need no protection against nodes being freed.
//! - No node is popped alone, so a head that returns to a former value (ABA) does no harm: the new
//!   node links to the current first node.
//! - A bucket whose bit is set has a number of at most `last`.
//! - A list whose round is 2^31 or more rounds old, because it was not used for that long, looks
//!   newer than it is. It refuses pushes until it is flushed. A refused producer uses the shard's
//!   inbox; the advancer, which knows the clock, places such timers in its private wheels.

pub(crate) mod bitset;
pub(crate) mod geometry;
pub(crate) mod private;

use crate::fallible;
use crate::shard::node::{NIL, NodeId};
use crate::size::size;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Producers raise `Wheel::last` by this many buckets at a time: seldom, where each timer is
/// due later than the one before. A power of two.
pub(crate) const MARKED_BUCKETS: u64 = size(64, 1, 1);

/// Lists in a bucket, of either wheel. A node's id selects the list, so a walk visits neighbouring
/// nodes one after the other. The advancer walks the lists in turn, which keeps 16 cache misses in
/// flight: about as many as it takes to wait for none of them.
pub(crate) const STRIPES: usize = size(16, 16, 1);

const BUCKETS_PER_WORD: usize = 64 / STRIPES;
const _: () = assert!(geometry::WINDOW as usize <= BUCKETS_PER_WORD, "one word has the bits of a window");
const STRIPE_MASK: u64 = (1 << STRIPES) - 1;

/// How often [`Wheel::detach`] tries to take a list that producers push to.
const DETACH_ATTEMPTS: usize = 8;

/// The value of a list's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head(u64);

impl Head {
    fn new(round: u32, first: NodeId) -> Self {
        Self((u64::from(round) << u32::BITS) | u64::from(first))
    }

    fn round(self) -> u32 {
        (self.0 >> u32::BITS) as u32
    }

    fn first(self) -> NodeId {
        self.0 as NodeId
    }

    /// Returns whether the list's round comes before `round`. Rounds count modulo 2^32.
    fn is_before(self, round: u32) -> bool {
        (round.wrapping_sub(self.round()) as i32) > 0
    }

    /// The node that a node pushed for `round` must link to; `None` if the list refuses the push.
    fn link_for(self, round: u32) -> Option<NodeId> {
        if self.round() == round {
            return Some(self.first());
        }
        (self.first() == NIL && self.is_before(round)).then_some(NIL)
    }
}

/// The list heads of a bucket, in cache lines of their own.
#[derive(Debug)]
#[repr(align(64))]
struct Bucket([AtomicU64; STRIPES]);

#[derive(Debug)]
pub(crate) struct Wheel {
    buckets: Box<[Bucket]>,
    /// One bit per list. Set by producers, cleared by the advancer.
    occupied: Box<[AtomicU64]>,
    /// No bucket of a later number has ever been marked. Raised by producers, never lowered. (A bit
    /// that says whether the wheel holds anything would have to be cleared, and a producer that has
    /// loaded it before would have to load it once more, after its fence.)
    last: AtomicU64,
}

impl Wheel {
    /// Makes an empty wheel whose lists belong to `round`, which may be older than the clock.
    /// `None` if there is no memory.
    pub(crate) fn new(size: usize, round: u32) -> Option<Self> {
        let empty = Head::new(round, NIL).0;
        let bucket = || Bucket(std::array::from_fn(|_| AtomicU64::new(empty)));
        let words = size.div_ceil(BUCKETS_PER_WORD);
        Some(Self {
            buckets: fallible::slice(size, bucket)?,
            occupied: fallible::zeroed(words)?,
            last: AtomicU64::new(0),
        })
    }

    fn head(&self, index: usize, stripe: usize) -> &AtomicU64 {
        &self.buckets[index].0[stripe]
    }

    /// The word with the bucket's occupancy bits, and their shift in that word.
    fn bits(&self, index: usize) -> (&AtomicU64, u32) {
        let shift = (index % BUCKETS_PER_WORD) * STRIPES;
        (&self.occupied[index / BUCKETS_PER_WORD], shift as u32)
    }

    /// Marks the list of the bucket `number` as one that may hold a node. The caller then passes
    /// its SeqCst fence, loads `sealed`, and pushes if the bucket is not sealed.
    #[inline]
    pub(crate) fn mark(&self, number: u64, index: usize, stripe: usize) {
        // Ordering: Relaxed for both, as below. The word only rises: if the producer finds it high
        // enough, the advancer does, too.
        if self.last.load(Ordering::Relaxed) < number {
            self.last.fetch_max(number | (MARKED_BUCKETS - 1), Ordering::Relaxed);
        }
        let (word, shift) = self.bits(index);
        let bit = 1 << (shift as usize + stripe);
        // Ordering: Relaxed for both, the caller's fence orders them against its load of `sealed`.
        // The load may return a bit that a flush is clearing; then the round in the head decides.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Pushes a node, whose link is `next`. False if the list does not accept the round: it has
    /// been flushed past that round, or holds nodes of another round.
    ///
    /// Lock-free: a failed compare-and-swap means that another push, a flush or a detach has
    /// succeeded.
    #[inline]
    pub(crate) fn push(&self, index: usize, stripe: usize, round: u32, id: NodeId, next: &AtomicU32) -> bool {
        let head = self.head(index, stripe);
        // Ordering: Relaxed, the value is only compared, and the node that it names is not
        // accessed.
        let mut seen = head.load(Ordering::Relaxed);
        loop {
            let Some(link) = Head(seen).link_for(round) else { return false };
            // Ordering: Relaxed, published by the compare-and-swap.
            next.store(link, Ordering::Relaxed);
            let pushed = Head::new(round, id).0;
            // Ordering: Release, pairs with the Acquire of `flush` and `detach`:
            // they see the link. Relaxed on failure: the value is only compared.
            match head.compare_exchange_weak(seen, pushed, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Takes all lists of the bucket, and moves the bucket to the next round. `take` gets the
    /// stripe and the first node of each list that is not empty.
    ///
    /// The bits are cleared first. A producer that pushes after a list's swap has either set the
    /// bit again, for the next round, or fails on the round.
    #[inline]
    pub(crate) fn flush(&self, index: usize, round: u32, mut take: impl FnMut(usize, NodeId)) {
        let (word, shift) = self.bits(index);
        let mut set = self.clear_bits(word, shift);
        let flushed = Head::new(round.wrapping_add(1), NIL).0;
        while set != 0 {
            let stripe = set.trailing_zeros() as usize;
            // Ordering: Acquire, pairs with the Release of each push: the links are visible.
            let first = Head(self.head(index, stripe).swap(flushed, Ordering::Acquire)).first();
            if first != NIL {
                take(stripe, first);
            }
            set &= set - 1;
        }
    }

    fn clear_bits(&self, word: &AtomicU64, shift: u32) -> u64 {
        // Ordering: Relaxed. The advancer sealed the bucket and passed a SeqCst fence before this.
        // So a producer whose bit this misses sees that, and does not push. A producer of the next
        // round has acquired the `flushed` tick that the advancer publishes after this.
        (word.fetch_and(!(STRIPE_MASK << shift), Ordering::Relaxed) >> shift) & STRIPE_MASK
    }

    /// Takes a list and leaves its round and its bit; for the sweep and the early cascade. `None`
    /// if the list is empty, or if a producer pushed to it during each of [`DETACH_ATTEMPTS`]
    /// attempts: a later sweep, early cascade or flush takes it.
    pub(crate) fn detach(&self, index: usize, stripe: usize) -> Option<NodeId> {
        let head = self.head(index, stripe);
        // Ordering: Relaxed, the value is only compared.
        let mut seen = Head(head.load(Ordering::Relaxed));
        for _ in 0..DETACH_ATTEMPTS {
            if seen.first() == NIL {
                return None;
            }
            let empty = Head::new(seen.round(), NIL);
            // Ordering: Acquire, as in `flush`. Relaxed on failure: the value is only compared.
            match head.compare_exchange(seen.0, empty.0, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(seen.first()),
                Err(now) => seen = Head(now),
            }
        }
        None
    }

    /// Takes all lists of a bucket, each as [`detach`](Self::detach) does.
    pub(crate) fn detach_all(&self, index: usize) -> [NodeId; STRIPES] {
        std::array::from_fn(|stripe| self.detach(index, stripe).unwrap_or(NIL))
    }

    /// Returns whether the bucket may hold a node.
    pub(crate) fn is_occupied(&self, index: usize) -> bool {
        let (word, shift) = self.bits(index);
        // Ordering: Relaxed, as in `distance_to_occupied`.
        (word.load(Ordering::Relaxed) >> shift) & STRIPE_MASK != 0
    }

    /// Returns whether a list of the bucket holds a node now.
    pub(crate) fn holds_nodes(&self, index: usize) -> bool {
        // Ordering: Relaxed, a hint.
        let first = |head: &AtomicU64| Head(head.load(Ordering::Relaxed)).first();
        self.buckets[index].0.iter().fold(NIL, |any, head| any | first(head)) != NIL
    }

    /// Returns whether a bucket of this number or of a later one may hold a node. For the advancer,
    /// after its fence.
    #[inline]
    pub(crate) fn may_hold_from(&self, number: u64) -> bool {
        // Ordering: Relaxed, as in `distance_to_occupied`.
        self.last.load(Ordering::Relaxed) >= number
    }

    /// Finds the first bucket that may hold a node, from the bucket `from` on, among `count`
    /// buckets and with wrap-around. Returns its distance from `from`.
    ///
    /// O(count / 4) loads.
    pub(crate) fn distance_to_occupied(&self, from: usize, count: usize) -> Option<usize> {
        let last = count.min(self.size()).saturating_sub(1) + from % BUCKETS_PER_WORD;
        // A shift: both are powers of two, and a division takes longer than all the rest.
        let steps = last >> BUCKETS_PER_WORD.min(self.size()).trailing_zeros();
        // Ordering: Relaxed, the caller's SeqCst fence stands between what it published and this.
        let load = |word: usize| self.occupied[word].load(Ordering::Relaxed);
        let list = bitset::next_set(self.occupied.len(), from * STRIPES, steps, load)?;
        let ahead = (list / STRIPES).wrapping_sub(from) & (self.size() - 1);
        (ahead < count).then_some(ahead)
    }

    /// Finds the first bucket that may hold a node, from the bucket `from` on, among those whose
    /// bits share a word with it. Returns its distance from `from`.
    #[inline]
    pub(crate) fn distance_within_word(&self, from: usize) -> Option<usize> {
        let (word, shift) = self.bits(from);
        // Ordering: Relaxed, as in `distance_to_occupied`.
        let bits = word.load(Ordering::Relaxed) >> shift;
        (bits != 0).then(|| bits.trailing_zeros() as usize / STRIPES)
    }

    /// The lists of a bucket: round, first node, occupancy bit. For invariant checks.
    #[cfg(any(test, debug_assertions, fuzzing, shardwheel_loom))]
    pub(crate) fn lists(&self, index: usize) -> impl Iterator<Item = (u32, NodeId, bool)> + '_ {
        let (word, shift) = self.bits(index);
        // Ordering: Relaxed for both, for checks while no producer adds.
        let bits = word.load(Ordering::Relaxed) >> shift;
        (0..STRIPES).map(move |stripe| {
            let head = Head(self.head(index, stripe).load(Ordering::Relaxed));
            (head.round(), head.first(), (bits >> stripe) & 1 == 1)
        })
    }

    pub(crate) fn size(&self) -> usize {
        self.buckets.len()
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests;
