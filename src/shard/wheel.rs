//! One wheel: striped, round-tagged lists, and the bits that say which of them may hold something.
//!
//! A bucket is one cache line of [`STRIPES`] list heads. A head is one word: the low half names the first
//! node, the high half is the *round* that the list belongs to. A push is a compare-and-swap that succeeds
//! only where the round is the one that the adder computed, or the list is empty and its round older; a
//! flush is one swap to (next round, empty). The two halves cannot get out of step with each other.
//!
//! Each list has an occupancy bit beside it. The protocol that makes the bits trustworthy needs the shard's
//! clock and is told in [`shared`](super::shared); here is what each step does.
//!
//! | step | by | what |
//! |---|---|---|
//! | [`Wheel::mark`] | adder | sets the bit of the list that it is about to push to |
//! | [`Wheel::push`] | adder | pushes, unless the list has been flushed past the adder's round |
//! | [`Wheel::flush`] | advancer | clears the bucket's bits, then swaps the heads whose bit was set |
//! | [`Wheel::detach`], [`Wheel::splice`] | advancer | the sweep: takes a list out of its round and puts what lives back |
//!
//! A push touches only the head and the node that is pushed, never a node that is already linked, so the
//! stack needs no protection against nodes being freed; and nothing is popped singly, so the head coming
//! back to a former value (ABA) does no harm: the new node links to whatever stands first now.

use crossbeam_utils::CachePadded;

use super::node::{NIL, NodeId};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Lists per bucket. Eight heads fill a cache line, and eight chains walked in turn keep eight cache
/// misses in flight; an adder picks its list by its node, so nodes that lie side by side are walked so.
#[cfg(not(shardwheel_loom))]
pub(crate) const STRIPES: usize = 8;
#[cfg(shardwheel_loom)]
pub(crate) const STRIPES: usize = 1;

const BUCKETS_PER_WORD: usize = 64 / STRIPES;
const STRIPE_MASK: u64 = (1 << STRIPES) - 1;
const ROUND_SHIFT: u32 = 32;

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
    fn link_for(self, round: u32, right: Right) -> Option<NodeId> {
        if self.round() == round {
            return Some(self.first());
        }
        let empty = self.first() == NIL;
        (empty && (right == Right::Advancer || self.is_before(round))).then_some(NIL)
    }
}

/// By what right somebody pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// An adder's view of the clock may be old: it must not push to a list that was flushed past its round.
    Adder,
    /// The advancer knows the clock. It has the last word where an empty list's round looks newer only
    /// because the 32 bits have wrapped since the list was last used.
    Advancer,
}

/// One list of a wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) index: usize,
    pub(crate) stripe: usize,
    pub(crate) round: u32,
}

#[derive(Debug)]
pub(crate) struct Wheel {
    buckets: Box<[CachePadded<[AtomicU64; STRIPES]>]>,
    /// One bit per list. Set by adders, cleared by the advancer.
    occupied: Box<[AtomicU64]>,
}

impl Wheel {
    /// An empty wheel whose lists belong to `round`, which may be older than the clock.
    pub(crate) fn new(size: usize, round: u32) -> Self {
        let empty = Head::new(round, NIL).0;
        let bucket = || CachePadded::new(std::array::from_fn(|_| AtomicU64::new(empty)));
        let words = size.div_ceil(BUCKETS_PER_WORD);
        Self {
            buckets: (0..size).map(|_| bucket()).collect(),
            occupied: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn head(&self, index: usize, stripe: usize) -> &AtomicU64 {
        &self.buckets[index][stripe]
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
    pub(crate) fn push(&self, place: Place, id: NodeId, next: &AtomicU32, right: Right) -> bool {
        let head = self.head(place.index, place.stripe);
        // Ordering: Relaxed, the value is only compared, and the node it names is not looked at.
        let mut seen = head.load(Ordering::Relaxed);
        loop {
            let Some(link) = Head(seen).link_for(place.round, right) else { return false };
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

    /// Takes one list out, leaving the round and the bit as they are; for the sweep.
    pub(crate) fn detach(&self, index: usize, stripe: usize) -> Option<(Place, NodeId)> {
        let head = self.head(index, stripe);
        // Ordering: Relaxed, only the advancer, who is here, changes a round.
        let round = Head(head.load(Ordering::Relaxed)).round();
        // Ordering: Acquire, as in `flush`.
        let first = Head(head.swap(Head::new(round, NIL).0, Ordering::Acquire)).first();
        (first != NIL).then_some((Place { index, stripe, round }, first))
    }

    /// Puts the chain from `first` to the node whose link is `last` in front of the list again.
    pub(crate) fn splice(&self, place: Place, first: NodeId, last: &AtomicU32) {
        let spliced = self.push(place, first, last, Right::Advancer);
        debug_assert!(spliced, "only the advancer changes a round");
    }

    /// Whether the bucket may hold something.
    pub(crate) fn is_occupied(&self, index: usize) -> bool {
        let (word, shift) = self.bits(index);
        // Ordering: Relaxed, as in `next_occupied`.
        (word.load(Ordering::Relaxed) >> shift) & STRIPE_MASK != 0
    }

    /// How many buckets after `from`, going round, the first one stands that may hold something.
    ///
    /// O(wheel size / 8) loads at worst.
    pub(crate) fn next_occupied(&self, from: usize) -> Option<usize> {
        let words = self.occupied.len();
        let (_, shift) = self.bits(from);
        let first = from / BUCKETS_PER_WORD;
        (0..=words).find_map(|step| {
            let word = (first + step) % words;
            // Ordering: Relaxed, the caller's SeqCst fence stands between what it published and this.
            let mut bits = self.occupied[word].load(Ordering::Relaxed);
            if step == 0 {
                bits &= u64::MAX << shift;
            }
            if bits == 0 {
                return None;
            }
            let index = word * BUCKETS_PER_WORD + bits.trailing_zeros() as usize / STRIPES;
            Some(index.wrapping_sub(from) & (self.buckets.len() - 1))
        })
    }

    /// The lists of a bucket as they stand: round and first node; for invariant checks and the sweep.
    pub(crate) fn lists(&self, index: usize) -> impl Iterator<Item = (Place, NodeId, bool)> + '_ {
        let (word, shift) = self.bits(index);
        // Ordering: Relaxed, for checks while nobody adds.
        let bits = word.load(Ordering::Relaxed) >> shift;
        (0..STRIPES).map(move |stripe| {
            // Ordering: Acquire, pairs with the Release of a push.
            let head = Head(self.head(index, stripe).load(Ordering::Acquire));
            (Place { index, stripe, round: head.round() }, head.first(), (bits >> stripe) & 1 == 1)
        })
    }

    pub(crate) fn size(&self) -> usize {
        self.buckets.len()
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use super::*;

    fn place(index: usize, stripe: usize, round: u32) -> Place {
        Place { index, stripe, round }
    }

    fn push(wheel: &Wheel, at: Place, id: NodeId, link: &AtomicU32) -> bool {
        wheel.mark(at.index, at.stripe);
        wheel.push(at, id, link, Right::Adder)
    }

    #[test]
    fn a_flush_takes_what_was_pushed_and_ends_the_round() {
        let wheel = Wheel::new(16, 0);
        let (a, b, c) = (AtomicU32::new(9), AtomicU32::new(9), AtomicU32::new(9));
        assert!(push(&wheel, place(3, 1, 7), 1, &a));
        assert!(push(&wheel, place(3, 1, 7), 2, &b));
        let chains = wheel.flush(3, 7);
        assert_eq!(chains[1], 2);
        assert_eq!((b.load(Ordering::Relaxed), a.load(Ordering::Relaxed)), (1, NIL));
        assert!(!push(&wheel, place(3, 1, 7), 3, &c), "the round is over");
        assert!(push(&wheel, place(3, 1, 8), 3, &c));
    }

    #[test]
    fn a_list_that_holds_a_round_takes_no_other() {
        let wheel = Wheel::new(16, 0);
        let (a, b) = (AtomicU32::new(NIL), AtomicU32::new(NIL));
        assert!(push(&wheel, place(0, 0, 5), 1, &a));
        for round in [4, 6] {
            assert!(!wheel.push(place(0, 0, round), 2, &b, Right::Adder));
            assert!(!wheel.push(place(0, 0, round), 2, &b, Right::Advancer));
        }
    }

    #[test]
    fn an_empty_list_whose_round_wrapped_is_the_advancers() {
        let wheel = Wheel::new(16, 0);
        let link = AtomicU32::new(NIL);
        let far = place(0, 0, 1 << 31);
        assert!(!wheel.push(far, 1, &link, Right::Adder));
        assert!(wheel.push(far, 1, &link, Right::Advancer));
    }

    #[test]
    fn next_occupied_goes_round() {
        for size in [2, 4, 8, 16, 64] {
            let wheel = Wheel::new(size, 0);
            assert_eq!(wheel.next_occupied(1), None);
            for index in [0, size / 2, size - 1] {
                wheel.mark(index, STRIPES - 1);
                for from in 0..size {
                    let expected = (index + size - from) % size;
                    assert_eq!(wheel.next_occupied(from), Some(expected), "{index} from {from} of {size}");
                }
                wheel.flush(index, 0);
            }
        }
    }

    #[test]
    fn a_detached_list_can_be_spliced_back_before_new_ones() {
        let wheel = Wheel::new(4, 0);
        let (a, b, c) = (AtomicU32::new(NIL), AtomicU32::new(NIL), AtomicU32::new(NIL));
        assert!(push(&wheel, place(2, 3, 0), 1, &a));
        assert!(push(&wheel, place(2, 3, 0), 2, &b));
        let (at, first) = wheel.detach(2, 3).unwrap();
        assert_eq!(first, 2);
        assert!(push(&wheel, place(2, 3, 0), 3, &c));
        wheel.splice(at, first, &a);
        assert_eq!(wheel.flush(2, 0)[3], 2);
        assert_eq!(a.load(Ordering::Relaxed), 3);
    }
}
