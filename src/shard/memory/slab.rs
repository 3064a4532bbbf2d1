//! The slab: the table of segments. Producers take nodes from it, and keys are looked up in it.
//!
//! A node's name is a `u32`: the high bits are the segment's place in the table, the low bits the
//! node's place in the segment. A producer that finds no free node adds a segment by
//! compare-and-swap; the loser of a race drops its segment and uses the winner's. Only the advancer
//! takes segments away.
//!
//! A thread may read a segment if one of these holds:
//!
//! - It owns a node of the segment: a segment with a node in use stays.
//! - It has free nodes of the segment to itself: these are neither in use nor free for the advancer
//!   to take.
//! - It is the advancer: no other thread takes segments away.
//! - It is pinned.
//!
//! # Rights
//!
//! None of these can be copied or made elsewhere, and each names its nodes:
//!
//! | right | to | who has it |
//! |---|---|---|
//! | [`FreeWord`] | free nodes of one word | a lane; the advancer, on the way to the free bits |
//! | [`OwnedNode`] | a node without a payload | a producer within a call |
//! | [`Freed`] | a free node that is in no list | the advancer |
//! | [`InHand`] | reading any node; its payload and link, by the word, if it is in a list that was taken | the advancer |
//! | [`Stay`] | reading a node of a segment that stays meanwhile | a producer within a call |
//!
//! A [`DeadNode`] is no right: the thread that has it wins the node again by the word, or not.

mod freed;
mod retire;
mod rights;
mod supply;
pub(crate) mod walk;

pub(crate) use self::freed::{Freed, FreedNodes};
pub(crate) use self::rights::{DeadNode, FreeWord, InHand, OwnedNode, Stay};
use crate::error::ScheduleErrorKind;
use crate::fallible;
use crate::hardware;
use crate::shard::memory::epochs::{Participant, Reclaimer};
use crate::shard::memory::free_bits::WORD_NODES;
use crate::shard::memory::segment::Segment;
use crate::shard::memory::table::{Keep, Table};
use crate::shard::node::{Node, NodeId};
use crate::size::size;
use crate::sync::plain::AtomicU32 as PlainU32;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, Trace, hint};
use crate::tick::Tick;
use crate::unwind::FirstPanic;

/// Segments of a slab, at most. A fuzzer makes and clears a table for each input.
pub(crate) const SEGMENTS: usize = size(1 << 16, 1 << 6, 4);

/// Whether the first segment is never given back. Models, which test other things, keep it.
pub(crate) const KEEPS_FIRST_SEGMENT: bool = size(false, false, true);

pub(crate) struct Slab<T> {
    segments: Table<Segment<T>, { SEGMENTS }>,
    /// The address of each segment's nodes. It stays when the segment has gone back: a prefetch
    /// needs an address and no guarantee.
    addresses: Box<[AtomicPtr<Node<T>>; SEGMENTS]>,
    /// The era of the next segment. No two segments have the same era. So a segment that replaces
    /// one given back hands out generations that were never used there, whichever thread added it.
    next_era: AtomicU32,
    /// A bit for each segment that may have free nodes; kept like the summary within a segment.
    open: Box<[AtomicU64; SEGMENTS.div_ceil(WORD_NODES)]>,
    /// A bit for each segment all of whose nodes may be free. A thread sets it after it has
    /// completed the segment; the advancer clears it before it looks. So the advancer misses no
    /// empty segment.
    empty: Box<[AtomicU64; SEGMENTS.div_ceil(WORD_NODES)]>,
    /// The number of segments.
    size: PlainU32,
    /// For models: stands for the word of a node, between the advancer's look at it and its firing.
    pub(crate) firing: Trace,
}

impl<T> Slab<T> {
    /// An empty slab; `None` if there is no memory.
    pub(crate) fn new() -> Option<Self> {
        Some(Self {
            segments: Table::new()?,
            addresses: fallible::zeroed_array()?,
            next_era: AtomicU32::new(0),
            open: fallible::zeroed_array()?,
            empty: fallible::zeroed_array()?,
            size: PlainU32::new(0),
            firing: Trace::begin(),
        })
    }

    /// Keeps the node's segment: by the caller's free nodes if they lie there, else by a pin, which
    /// takes longer. A producer with few timers usually finds them in the segment it allocates
    /// from.
    #[inline]
    pub(crate) fn stay<'l>(&self, id: NodeId, free: &'l FreeWord, who: &'l Participant) -> Stay<'l> {
        let segment = free.segment::<T>();
        let is_kept = free.bits != 0 && segment == id as usize >> Segment::<T>::SHIFT;
        Stay::new(id, (!is_kept).then(|| who.pin()))
    }

    /// The node for which the caller has made `stay`, and its segment's era, if the segment exists.
    /// O(1).
    #[inline]
    pub(crate) fn get<'g>(&'g self, stay: &'g Stay<'_>) -> Option<(&'g Node<T>, u32)> {
        self.firing.model_look();
        // SAFETY: the caller is pinned, or has free nodes of this segment, which keep it.
        let segment = self.segments.get(stay.id as usize >> Segment::<T>::SHIFT, unsafe { Keep::owned() })?;
        Some((segment.nodes.at(stay.id), segment.era))
    }

    /// Takes a dead node that the advancer has not met since the cancel, for a timer due at
    /// `deadline`. The caller uses it where it is linked.
    #[inline]
    pub(crate) fn reuse(
        &self,
        dead: &DeadNode,
        free: &FreeWord,
        who: &Participant,
        deadline: Tick,
    ) -> Option<OwnedNode<'_, T>> {
        // Protects: the node. The advancer may have freed it, and given its segment back.
        let stay = self.stay(dead.node, free, who);
        let (node, era) = self.get(&stay)?;
        let vacant = if era == dead.era { node.reuse(dead.word, deadline)? } else { return None };
        // SAFETY: the caller has just taken the node, so it is in use, and its segment stays.
        let vacant = unsafe { vacant.outlive_stay() };
        Some(OwnedNode { id: dead.node, era, vacant, is_linked: true })
    }

    /// Prefetches the node's cache line for writing. Safe for any name, at any time.
    #[inline]
    pub(crate) fn prefetch(&self, id: NodeId) {
        if let Some(address) = self.addresses.get(id as usize >> Segment::<T>::SHIFT)
            // Ordering: Relaxed, an old address does no harm.
            && let Some(nodes) = hint(|| address.load(Ordering::Relaxed).cast_const())
        {
            hardware::prefetch_for_writing(nodes.wrapping_add(id as usize & (Segment::<T>::NODES - 1)));
        }
    }

    /// The node and its segment's era.
    ///
    /// # Safety
    ///
    /// The node is in use as long as the result is used, so its segment stays.
    #[inline]
    unsafe fn owned(&self, id: NodeId) -> (&Node<T>, u32) {
        // SAFETY: by the caller's promise.
        let segment = self.segments.get(id as usize >> Segment::<T>::SHIFT, unsafe { Keep::owned() });
        let segment = segment.expect("a segment with a node in use stays");
        (segment.nodes.at(id), segment.era)
    }

    /// A node, for the advancer.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    #[inline]
    pub(crate) fn in_hand<'s>(&'s self, id: NodeId, reclaimer: &'s Reclaimer) -> InHand<'s, T> {
        let segment = self.segments.get(id as usize >> Segment::<T>::SHIFT, Keep::by(reclaimer));
        let segment = segment.expect("a node in hand exists");
        InHand { id, era: segment.era, node: segment.nodes.at(id) }
    }

    /// Takes a free node. Lock-free. O(1), except for one call in up to 64, which searches for the
    /// first word with free nodes, and one call per segment of nodes, which requests memory from
    /// the system.
    #[inline]
    pub(crate) fn take(
        &self,
        free: &mut FreeWord,
        who: &Participant,
        deadline: Tick,
    ) -> Result<OwnedNode<'_, T>, ScheduleErrorKind> {
        loop {
            if free.bits == 0 {
                self.refill(free, who)?;
            }
            let id = free.word * WORD_NODES as u32 + free.bits.trailing_zeros();
            free.bits &= free.bits - 1;
            // SAFETY: the node is now the caller's, so its segment stays.
            let (node, era) = unsafe { self.owned(id) };
            // For a later call: a store that misses the caches holds up the fence of its push.
            hardware::prefetch_for_writing(std::ptr::from_ref(node).wrapping_add(32));
            // SAFETY: the node was among the caller's free nodes, and is not any more.
            if let Some(vacant) = unsafe { node.prepare(deadline) } {
                return Ok(OwnedNode { id, era, vacant, is_linked: false });
            }
            // A worn-out node stays in use, and its segment stays for it.
        }
    }

    /// Puts back, unused, the node that was taken last.
    ///
    /// # Panics
    ///
    /// If it is a node of another word.
    pub(crate) fn put_back(free: &mut FreeWord, owned: OwnedNode<'_, T>) {
        assert_eq!(owned.id / WORD_NODES as u32, free.word, "it was taken last");
        free.bits |= 1 << (owned.id as usize % WORD_NODES);
    }

    /// The number of segments; too high for a moment at times. O(1).
    pub(crate) fn size(&self) -> usize {
        // Ordering: Relaxed, a count.
        self.size.load(Ordering::Relaxed) as usize
    }
}

impl<T> Drop for Slab<T> {
    /// Drops every payload even if some panic; the first panic resumes at the end.
    fn drop(&mut self) {
        let mut panics = FirstPanic::default();
        if std::mem::needs_drop::<T>() {
            // SAFETY: the slab is borrowed exclusively: no segment is taken away.
            let keep = unsafe { Keep::owned() };
            for id in (0..self.words()).flat_map(|word| self.taken(word, keep)) {
                let segment = self.segments.get(id as usize >> Segment::<T>::SHIFT, keep);
                segment
                    .into_iter()
                    .for_each(|segment| panics.catch_drop(segment.nodes.at(id).take_pending()));
            }
        }
        panics.resume();
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
