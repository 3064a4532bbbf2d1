//! One wheel: striped, round-tagged lists, and the bits that say which of them may hold something.
//!
//! A bucket is two cache lines of [`STRIPES`] list heads. A head is one word: the low half names the first
//! node, the high half is the *round* that the list belongs to. A push is a compare-and-swap that succeeds
//! only where the round is the one that the adder computed, or the list is empty and its round older; a
//! flush is one swap to (next round, empty). The two halves cannot get out of step with each other.
//!
//! Each list has an occupancy bit beside it. The protocol that makes the bits trustworthy needs the shard's
//! clock and is told in [`shared`](crate::shard::shared); here is what each step does.
//!
//! | step | by | what |
//! |---|---|---|
//! | [`Wheel::mark`] | adder | sets the bit of the list that it is about to push to |
//! | [`Wheel::push`] | adder | pushes, unless the list has been flushed past the adder's round |
//! | [`Wheel::flush`] | advancer | clears the bucket's bits, then swaps the heads whose bit was set |
//! | [`Wheel::detach`] | advancer | the sweep, and drawing ahead: takes a list out of its round |
//! | [`Wheel::close`], [`Wheel::drain_closed`] | advancer | gives the wheel up: see [`overflow`](crate::shard::advancer::idle_wheels) |
//!
//! A push touches only the head and the node that is pushed, never a node that is already linked, so the
//! stack needs no protection against nodes being freed; and nothing is popped singly, so the head coming
//! back to a former value (ABA) does no harm: the new node links to whatever stands first now.
//!
//! An empty list that nobody has used while its 32-bit round wrapped looks newer than it is, and refuses
//! pushes until it is flushed. An adder that is refused has the shard's inbox; the advancer, which knows the
//! clock, puts such timers into its own wheels.

pub(crate) mod bitset;
pub(crate) mod geometry;
pub(crate) mod private;

use crate::fallible;
use crate::shard::node::{NIL, NodeId};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Life, Ordering};

/// Lists per bucket. Sixteen chains walked in turn keep sixteen cache misses in flight, about as many as it takes for
/// none of them to be waited for; an adder picks its list by its node, so nodes that lie side by side are walked so.
#[cfg(not(shardwheel_loom))]
pub(crate) const STRIPES: usize = 16;
#[cfg(shardwheel_loom)]
pub(crate) const STRIPES: usize = 1;

const BUCKETS_PER_WORD: usize = 64 / STRIPES;
const STRIPE_MASK: u64 = (1 << STRIPES) - 1;
const ROUND_SHIFT: u32 = 32;

/// How often the advancer tries to take a list that is being pushed to.
const DETACH_ATTEMPTS: usize = 8;

/// A value of a list's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head(u64);

impl Head {
    fn new(round: u32, first: NodeId) -> Self {
        Self((u64::from(round) << ROUND_SHIFT) | u64::from(first))
    }

    fn round(self) -> u32 {
        (self.0 >> ROUND_SHIFT) as u32
    }

    fn first(self) -> NodeId {
        self.0 as NodeId
    }

    /// Whether the list's round comes before `round`, rounds being counted modulo 2^32.
    fn is_before(self, round: u32) -> bool {
        (round.wrapping_sub(self.round()) as i32) > 0
    }

    /// The node that one pushed for `round` must link to, if a push may go here.
    fn link_for(self, round: u32) -> Option<NodeId> {
        if self.round() == round {
            return Some(self.first());
        }
        (self.first() == NIL && self.is_before(round)).then_some(NIL)
    }
}

/// One list of a wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListSlot {
    pub(crate) index: usize,
    pub(crate) stripe: usize,
    pub(crate) round: u32,
}

/// A bucket's heads, in cache lines of their own.
#[derive(Debug)]
#[repr(align(64))]
struct Bucket([AtomicU64; STRIPES]);

#[derive(Debug)]
pub(crate) struct Wheel {
    buckets: Box<[Bucket]>,
    /// One bit per list. Set by adders, cleared by the advancer.
    occupied: Box<[AtomicU64]>,
    /// The advancer is giving the wheel up.
    closed: AtomicBool,
    life: Life,
}

impl Wheel {
    /// An empty wheel whose lists belong to `round`, which may be older than the clock; none if there is no memory.
    pub(crate) fn new(size: usize, round: u32) -> Option<Self> {
        let empty = Head::new(round, NIL).0;
        let bucket = || Bucket(std::array::from_fn(|_| AtomicU64::new(empty)));
        let words = size.div_ceil(BUCKETS_PER_WORD);
        Some(Self {
            buckets: fallible::slice(size, bucket)?,
            occupied: fallible::zeroed(words)?,
            closed: AtomicBool::new(false),
            life: Life::begin(),
        })
    }

    fn head(&self, index: usize, stripe: usize) -> &AtomicU64 {
        &self.buckets[index].0[stripe]
    }

    /// The word of occupancy bits that holds the bucket's, and how far they are shifted in it.
    fn bits(&self, index: usize) -> (&AtomicU64, u32) {
        let shift = (index % BUCKETS_PER_WORD) * STRIPES;
        (&self.occupied[index / BUCKETS_PER_WORD], shift as u32)
    }

    /// Says that the list may hold something. The caller's SeqCst fence comes next, then its second look at
    /// the clock, then the push.
    #[inline]
    pub(crate) fn mark(&self, index: usize, stripe: usize) {
        self.life.note_use();
        let (word, shift) = self.bits(index);
        let bit = 1 << (shift as usize + stripe);
        // Ordering: Relaxed for both. The caller's fence orders them against its next look at the clock;
        // whether the bit that a load shows is already being cleared is decided by the head's round.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Pushes a node, whose link is `next`; false if the list has gone past the round meant.
    ///
    /// Lock-free: a failed compare-and-swap means that another push or a flush has succeeded.
    #[inline]
    pub(crate) fn push(&self, place: ListSlot, id: NodeId, next: &AtomicU32) -> bool {
        self.life.note_use();
        let head = self.head(place.index, place.stripe);
        // Ordering: Relaxed, the value is only compared, and the node it names is not looked at.
        let mut seen = head.load(Ordering::Relaxed);
        loop {
            let Some(link) = Head(seen).link_for(place.round) else { return false };
            // Ordering: Relaxed, published by the compare-and-swap.
            next.store(link, Ordering::Relaxed);
            let pushed = Head::new(place.round, id).0;
            // Ordering: Release, pairs with the Acquire of `flush` and `detach`: they see the link. A
            // failure is looked at anew.
            match head.compare_exchange_weak(seen, pushed, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Takes all that the bucket holds and gives its lists to the next round.
    ///
    /// The bits go first: what is pushed after a list's swap sets its bit again, or fails on the round.
    pub(crate) fn flush(&self, index: usize, round: u32) -> [NodeId; STRIPES] {
        let (word, shift) = self.bits(index);
        let mut set = self.clear_bits(word, shift);
        let mut chains = [NIL; STRIPES];
        let flushed = Head::new(round.wrapping_add(1), NIL).0;
        while set != 0 {
            let stripe = set.trailing_zeros() as usize;
            // Ordering: Acquire, pairs with the Release of each push: the links are visible.
            chains[stripe] = Head(self.head(index, stripe).swap(flushed, Ordering::Acquire)).first();
            set &= set - 1;
        }
        chains
    }

    fn clear_bits(&self, word: &AtomicU64, shift: u32) -> u64 {
        // Ordering: Relaxed. The advancer published its clock and passed a SeqCst fence before it came
        // here, so an adder whose bit this misses sees that clock; and an adder for the next round has
        // acquired the `flushed` tick that the advancer publishes after this.
        (word.fetch_and(!(STRIPE_MASK << shift), Ordering::Relaxed) >> shift) & STRIPE_MASK
    }

    /// Takes one list out, leaving the round and the bit as they are; for the sweep and for drawing ahead. `None` if the list is empty,
    /// or so busy that it was pushed to at each of a few attempts: the sweep comes by again.
    pub(crate) fn detach(&self, index: usize, stripe: usize) -> Option<NodeId> {
        let head = self.head(index, stripe);
        // Ordering: Relaxed, only compared.
        let mut seen = Head(head.load(Ordering::Relaxed));
        for _ in 0..DETACH_ATTEMPTS {
            if seen.first() == NIL {
                return None;
            }
            let empty = Head::new(seen.round(), NIL);
            // Ordering: Acquire, as in `flush`; a failure is looked at anew.
            match head.compare_exchange(seen.0, empty.0, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(seen.first()),
                Err(now) => seen = Head(now),
            }
        }
        None
    }

    /// Takes out all lists of a bucket, as [`detach`](Self::detach) does.
    pub(crate) fn detach_all(&self, index: usize) -> [NodeId; STRIPES] {
        std::array::from_fn(|stripe| self.detach(index, stripe).unwrap_or(NIL))
    }

    /// Refuses pushes from now on; the advancer's SeqCst fence comes next, then [`drain_closed`].
    ///
    /// [`drain_closed`]: Self::drain_closed
    pub(crate) fn close(&self) {
        // Ordering: Relaxed, the caller's fence orders it.
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Whether the advancer gives the wheel up; for adders, after their fence.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        // Ordering: Relaxed, the caller's fence orders it.
        self.closed.load(Ordering::Relaxed)
    }

    /// Gives `take` all lists that a closed wheel holds, and closes the lists that an adder may still be about to
    /// push to: those whose bit is set, since who sets one after the fence sees that the wheel is closed.
    ///
    /// `round` is that of the last tick flushed, and adders' rounds are near it, whatever stands in the heads;
    /// one that is a quarter of the circle ahead takes no push.
    pub(crate) fn drain_closed(&self, round: u32, mut take: impl FnMut(NodeId)) {
        let shut = Head::new(round.wrapping_add(1 << 30), NIL).0;
        for index in 0..self.size() {
            let (word, shift) = self.bits(index);
            let mut set = self.clear_bits(word, shift);
            while set != 0 {
                // Ordering: Acquire, as in `flush`.
                let swapped = self.head(index, set.trailing_zeros() as usize).swap(shut, Ordering::Acquire);
                Some(Head(swapped).first()).filter(|&first| first != NIL).into_iter().for_each(&mut take);
                set &= set - 1;
            }
        }
    }

    /// Whether no list can hold anything.
    pub(crate) fn is_empty(&self) -> bool {
        // Ordering: Relaxed, a look.
        self.occupied.iter().all(|bits| bits.load(Ordering::Relaxed) == 0)
    }

    /// Whether the bucket may hold something.
    pub(crate) fn is_occupied(&self, index: usize) -> bool {
        let (word, shift) = self.bits(index);
        // Ordering: Relaxed, as in `next_occupied`.
        (word.load(Ordering::Relaxed) >> shift) & STRIPE_MASK != 0
    }

    /// How many buckets after `from`, going round, the first one stands that may hold something, of the next
    /// `count`.
    ///
    /// O(count / 4) loads.
    pub(crate) fn next_occupied(&self, from: usize, count: usize) -> Option<usize> {
        let last = count.min(self.size()).saturating_sub(1) + from % BUCKETS_PER_WORD;
        let steps = last / BUCKETS_PER_WORD.min(self.size());
        // Ordering: Relaxed, the caller's SeqCst fence stands between what it published and this.
        let load = |word: usize| self.occupied[word].load(Ordering::Relaxed);
        let list = bitset::next_set(self.occupied.len(), from * STRIPES, steps, load)?;
        let ahead = (list / STRIPES).wrapping_sub(from) & (self.size() - 1);
        (ahead < count).then_some(ahead)
    }

    /// The lists of a bucket as they stand: round and first node; for invariant checks.
    pub(crate) fn lists(&self, index: usize) -> impl Iterator<Item = (ListSlot, NodeId, bool)> + '_ {
        let (word, shift) = self.bits(index);
        // Ordering: Relaxed for both, for checks while nobody adds.
        let bits = word.load(Ordering::Relaxed) >> shift;
        (0..STRIPES).map(move |stripe| {
            let head = Head(self.head(index, stripe).load(Ordering::Relaxed));
            (ListSlot { index, stripe, round: head.round() }, head.first(), (bits >> stripe) & 1 == 1)
        })
    }

    pub(crate) fn size(&self) -> usize {
        self.buckets.len()
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests;
