//! The slab: the table of segments, from which producers take nodes and in which keys are looked up.
//!
//! A node's name is a `u32`: the high bits are the segment's place in the table, the low ones the node's
//! place in the segment. Segments are added by whichever producer finds no free node (compare-and-swap; the
//! loser of a race gives its segment back and uses the winner's) and taken away by the advancer alone.
//!
//! Who may look at a segment: its nodes' owners, because a segment with a node in use stays; who has free nodes of it
//! to himself, because they are neither in use nor free for the advancer to take; the advancer, because nobody else
//! takes segments away; everybody else while pinned.

pub(in crate::shard) mod walk;

use std::io;
use std::marker::PhantomData;

use crate::error::ScheduleErrorKind;
use crate::fallible;
use crate::hardware;
use crate::shard::memory::epochs::{Guard, Participant, Unlinked};
use crate::shard::memory::segment::{Segment, WORD_NODES};
use crate::shard::node::{Node, NodeId};
use crate::sync::plain::AtomicU32 as PlainU32;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::unwind::FirstPanic;

/// The most segments; a fuzzer, whose shards are small, makes and clears a table for each input.
#[cfg(not(shardwheel_loom))]
const TABLE: usize = if crate::config::SMALL { 1 << 6 } else { 1 << 16 };
#[cfg(shardwheel_loom)]
const TABLE: usize = 4;

/// How many segments are looked at in the search for one to be given back.
const LOOKED_AT: usize = if crate::config::SMALL { 3 } else { 64 };

/// Segments are given back only while so many eras are left that they cannot run out after.
const LAST_ERA_GIVEN_BACK: u32 = u32::MAX / 2;

/// Free nodes that a lane has to itself: those of one word that are still to be handed out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FreeWord {
    /// Counted over all segments.
    word: u32,
    bits: u64,
}

/// Why the segment of a node stays while somebody looks at it who does not own the node.
pub(crate) struct Stay<'l> {
    /// Protects: the segment, where nothing else does.
    _pinned: Option<Guard>,
    /// The caller's free nodes, which lie in the same segment otherwise, and are not handed out meanwhile.
    free: PhantomData<&'l FreeWord>,
}

impl Stay<'static> {
    #[inline]
    pub(crate) fn pinned(who: &Participant) -> Self {
        Self { _pinned: Some(who.pin()), free: PhantomData }
    }
}

pub(crate) struct Slab<T> {
    table: Box<[AtomicPtr<Segment<T>>; TABLE]>,
    /// Where each segment's nodes are, or were: for prefetching, which needs an address and no promise.
    addresses: Box<[AtomicPtr<Node<T>>; TABLE]>,
    /// The era of the next segment. No two segments have the same, so a segment that takes the place of one
    /// given back hands out generations that were never used there, whoever raced to add it.
    next_era: AtomicU32,
    /// A bit per segment that may have free nodes; kept like the summary within a segment.
    open: Box<[AtomicU64]>,
    /// One past the highest place that was ever used.
    height: AtomicU32,
    /// How many segments there are.
    size: PlainU32,
    /// How often a producer has given free nodes back.
    given_back: AtomicU64,
}

// SAFETY: segments are owned through the table's pointers and are Send and Sync for a payload that is
// Send.
unsafe impl<T: Send> Send for Slab<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Slab<T> {}

impl<T> Slab<T> {
    /// An empty slab; none if there is no memory for its table.
    pub(crate) fn new() -> Option<Self> {
        Some(Self {
            table: fallible::zeroed(TABLE)?.try_into().ok()?,
            addresses: fallible::zeroed(TABLE)?.try_into().ok()?,
            next_era: AtomicU32::new(0),
            open: fallible::zeroed(TABLE.div_ceil(WORD_NODES))?,
            height: AtomicU32::new(0),
            size: PlainU32::new(0),
            given_back: AtomicU64::new(0),
        })
    }

    /// The most nodes there can be.
    fn limit() -> usize {
        (TABLE << Segment::<T>::SHIFT).min(u32::MAX as usize)
    }

    /// Sees to it that the node's segment stays: by the caller's free nodes, if they lie there, or by a pin, which takes
    /// longer. Most timers of who has few are where his free nodes are.
    #[inline]
    pub(crate) fn stay<'l>(&self, id: NodeId, free: &'l FreeWord, who: &Participant) -> Stay<'l> {
        let segment = free.word as usize / Segment::<T>::WORDS;
        let is_kept = free.bits != 0 && segment == id as usize >> Segment::<T>::SHIFT;
        Stay { _pinned: (!is_kept).then(|| who.pin()), free: PhantomData }
    }

    /// The node and its segment's era, if there is a segment. O(1).
    #[inline]
    pub(crate) fn get<'g>(&'g self, id: NodeId, _stay: &'g Stay<'_>) -> Option<(&'g Node<T>, u32)> {
        let segment = self.load(id as usize >> Segment::<T>::SHIFT)?;
        Some((segment.node(id), segment.era))
    }

    /// Asks for the node's cache line, for the caller will write to it. Safe for any name, at any time.
    #[inline]
    pub(crate) fn prefetch(&self, id: NodeId) {
        if cfg!(shardwheel_loom) {
            // One more load to interleave with everything else, for nothing.
            return;
        }
        if let Some(address) = self.addresses.get(id as usize >> Segment::<T>::SHIFT) {
            // Ordering: Relaxed, an old address does no harm.
            let nodes = address.load(Ordering::Relaxed).cast_const();
            hardware::prefetch_for_writing(nodes.wrapping_add(id as usize & (Segment::<T>::NODES - 1)));
        }
    }

    /// The node and its segment's era.
    ///
    /// # Safety
    ///
    /// The caller owns the node or is the advancer, and the node is in use: its segment stays.
    #[inline]
    pub(crate) unsafe fn owned(&self, id: NodeId) -> (&Node<T>, u32) {
        let place = &self.table[id as usize >> Segment::<T>::SHIFT];
        // Ordering: Relaxed, whoever gave the caller the node had acquired the pointer.
        let segment = place.load(Ordering::Relaxed);
        // SAFETY: a segment with a node in use is in the table and stays there, by the caller's promise.
        let segment = unsafe { &*segment };
        (segment.node(id), segment.era)
    }

    /// The node and its segment's era.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    ///
    /// # Safety
    ///
    /// The caller is the advancer, which alone takes segments away, for as long as it uses the node.
    #[inline]
    pub(in crate::shard) unsafe fn node(&self, id: NodeId) -> (&Node<T>, u32) {
        let segment = self.load(id as usize >> Segment::<T>::SHIFT).expect("a node in hand exists");
        (segment.node(id), segment.era)
    }

    #[inline]
    fn load(&self, index: usize) -> Option<&Segment<T>> {
        // Ordering: Acquire, pairs with the Release of `grow`.
        let segment = self.table.get(index)?.load(Ordering::Acquire);
        // SAFETY: the callers are pinned, or are the advancer or the last owner, and say so.
        unsafe { segment.as_ref() }
    }

    /// A free node. Lock-free; O(1) but for one call in up to 64, which looks for the next word with free
    /// nodes, and one in a segment's worth, which asks the system for memory.
    #[inline]
    pub(crate) fn take(&self, free: &mut FreeWord, who: &Participant) -> Result<NodeId, ScheduleErrorKind> {
        if free.bits == 0 {
            self.refill(free, who)?;
        }
        let id = free.word * WORD_NODES as u32 + free.bits.trailing_zeros();
        free.bits &= free.bits - 1;
        Ok(id)
    }

    /// Gives back the node that was taken last.
    pub(crate) fn put_back(free: &mut FreeWord, id: NodeId) {
        debug_assert_eq!(id / WORD_NODES as u32, free.word);
        free.bits |= 1 << (id as usize % WORD_NODES);
    }

    #[cold]
    fn refill(&self, free: &mut FreeWord, who: &Participant) -> Result<(), ScheduleErrorKind> {
        // Protects: segments that the search looks into while the advancer gives them back.
        let guard = who.pin();
        loop {
            if let Some(found) = self.find_free(free.word as usize, &guard) {
                *free = found;
                return Ok(());
            }
            self.grow()?;
        }
    }

    /// The next word with free nodes after `word`, going round the segments.
    fn find_free(&self, word: usize, _pinned: &Guard) -> Option<FreeWord> {
        let words = Segment::<T>::WORDS;
        let height = self.height();
        let start = word / words;
        (0..=height).find_map(|step| {
            let index =
                if start + step < height { start + step } else { (start + step).checked_sub(height)? };
            let from = if step == 0 { word % words } else { 0 };
            let (word, bits) = self.take_from(index, from)?;
            Some(FreeWord { word: (index * words + word) as u32, bits })
        })
    }

    fn take_from(&self, index: usize, from: usize) -> Option<(usize, u64)> {
        let (open, bit) = (self.open.get(index / WORD_NODES)?, 1 << (index % WORD_NODES));
        // Ordering: Relaxed, a look.
        if open.load(Ordering::Relaxed) & bit == 0 {
            return None;
        }
        let free = &self.load(index)?.free;
        let found = free.take_word(from);
        if found.is_none() && !free.may_have_any() {
            // Ordering: Acquire, as in a segment's summary: who clears this bit after the advancer set it
            // sees the summary that was set before.
            open.fetch_and(!bit, Ordering::Acquire);
            // Another segment may stand there by now.
            if self.load(index)?.free.may_have_any() {
                self.reopen(index);
            }
        }
        found
    }

    /// Says that a segment may have free nodes.
    pub(crate) fn reopen(&self, index: usize) {
        // Ordering: Release, pairs with `take_from`.
        self.open[index / WORD_NODES].fetch_or(1 << (index % WORD_NODES), Ordering::Release);
    }

    /// Adds a segment in the first empty place. Against another producer: the loser drops its own.
    fn grow(&self) -> Result<(), ScheduleErrorKind> {
        // Ordering: Relaxed, the compare-and-swap below decides.
        let empty = |at: &AtomicPtr<Segment<T>>| at.load(Ordering::Relaxed).is_null();
        let full = ScheduleErrorKind::Full { limit: Self::limit() };
        let index = self.table.iter().position(empty).ok_or(full)?;
        let no_memory = |_: io::Error| ScheduleErrorKind::OutOfMemory { bytes: Segment::<T>::bytes() };
        let segment = fallible::boxed(Segment::new(index).map_err(no_memory)?);
        let mut segment = segment.ok_or_else(|| no_memory(io::ErrorKind::OutOfMemory.into()))?;
        // Once there is memory, so that a failure uses none up.
        // Ordering: Relaxed, the number alone matters.
        segment.era = self.next_era.fetch_add(1, Ordering::Relaxed);
        let (nodes, segment) = (segment.nodes(), Box::into_raw(segment));
        let (null, place) = (std::ptr::null_mut(), &self.table[index]);
        // Before the advancer can take it away: the count is never too low.
        // Ordering: Relaxed, a count; the Release below keeps the order.
        self.size.fetch_add(1, Ordering::Relaxed);
        // Ordering: Release, pairs with `load`; on failure nothing is read.
        if place.compare_exchange(null, segment, Ordering::Release, Ordering::Relaxed).is_err() {
            // Ordering: as above.
            self.size.fetch_sub(1, Ordering::Relaxed);
            // SAFETY: it came from `into_raw` just now and was not published.
            drop(unsafe { Box::from_raw(segment) });
            return Ok(());
        }
        // Ordering: Relaxed, for prefetching only.
        self.addresses[index].store(nodes, Ordering::Relaxed);
        // Ordering: Relaxed, see `height`.
        self.height.fetch_max(index as u32 + 1, Ordering::Relaxed);
        self.reopen(index);
        Ok(())
    }

    /// Makes the free nodes that a lane has left over free for all; false if there are none. For the advancer, or an owner
    /// that is pinned: the segment may be empty from then on.
    pub(crate) fn give_back(&self, free: FreeWord) -> bool {
        if free.bits != 0 {
            self.give(free.word as usize, free.bits);
            self.reopen(free.word as usize / Segment::<T>::WORDS);
        }
        free.bits != 0
    }

    /// As [`give_back`](Self::give_back), for a producer.
    #[cold]
    pub(crate) fn hand_back(&self, free: &mut FreeWord, who: &Participant) {
        // Protects: the segment.
        let _pinned = who.pin();
        // The next search begins there.
        let given = std::mem::replace(free, FreeWord { bits: 0, ..*free });
        if self.give_back(given) {
            // Ordering: Relaxed, a hint for the recycler.
            self.given_back.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often a producer has given free nodes back.
    pub(crate) fn given_back(&self) -> u64 {
        // Ordering: Relaxed, a hint.
        self.given_back.load(Ordering::Relaxed)
    }

    /// Says that a node which the caller has taken is worn out.
    #[cold]
    pub(crate) fn wear_out(&self, id: NodeId) {
        // It stays until then: the caller owns a node of it.
        if let Some(segment) = self.load(id as usize >> Segment::<T>::SHIFT) {
            segment.free.wear_out();
        }
    }

    /// Makes nodes of one word free; [`reopen`](Self::reopen) comes after. For their owner.
    pub(crate) fn give(&self, word: usize, bits: u64) {
        let words = Segment::<T>::WORDS;
        if let Some(segment) = self.load(word / words) {
            segment.free.give(word % words, bits);
        }
    }

    /// Takes an empty segment out of the table, the highest of the next few below `above`; for the advancer, which
    /// keeps it until a grace period has passed. If there is none, says below which to look next.
    pub(crate) fn unlink_one(&self, above: usize) -> Result<Unlinked<Segment<T>>, usize> {
        // Ordering: Relaxed, the number alone matters.
        if self.next_era.load(Ordering::Relaxed) > LAST_ERA_GIVEN_BACK {
            return Err(staying());
        }
        let above = above.min(self.height());
        let below = above.saturating_sub(LOOKED_AT).max(staying());
        let is_empty = |&index: &usize| self.load(index).is_some_and(|segment| segment.free.are_all_free());
        let Some(index) = (below..above).rev().find(is_empty) else { return Err(below) };
        self.take_away(index).ok_or(index)
    }

    /// Takes a segment out of the table, unless somebody has got a node of it since it was found empty.
    fn take_away(&self, index: usize) -> Option<Unlinked<Segment<T>>> {
        if self.load(index)?.free.take_all() {
            return self.unlink(index);
        }
        // Who looked for a node meanwhile may have found none and said so.
        self.reopen(index);
        None
    }

    fn unlink(&self, index: usize) -> Option<Unlinked<Segment<T>>> {
        // Ordering: Relaxed, nothing is published; the grace period orders the readers.
        let segment = self.table[index].swap(std::ptr::null_mut(), Ordering::Relaxed);
        // Ordering: Relaxed, a count.
        self.size.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: it came from `into_raw` in `grow`, nobody finds it any more, and it is unlinked once.
        unsafe { Unlinked::new(segment) }
    }

    fn height(&self) -> usize {
        // Ordering: Relaxed, how far to look; what is there is acquired place by place. That the shard's end looks far
        // enough is seen to by the pair of fences with which every timer is refused or found, and by the old node of
        // one that was moved.
        self.height.load(Ordering::Relaxed) as usize
    }

    /// How many segments there are; for a moment too many. O(1).
    pub(crate) fn size(&self) -> usize {
        // Ordering: Relaxed, a count.
        self.size.load(Ordering::Relaxed) as usize
    }
}

/// How many segments stay for good once there is one: none. Models, which are about other things, keep the first.
pub(crate) fn staying() -> usize {
    usize::from(cfg!(shardwheel_loom))
}

impl<T> Drop for Slab<T> {
    /// Payloads that panic when they are dropped keep nothing from being dropped; the first panic goes on at the end.
    fn drop(&mut self) {
        let mut panics = FirstPanic::new();
        if std::mem::needs_drop::<T>() {
            for id in (0..self.words()).flat_map(|word| self.taken(word)) {
                // SAFETY: the last owner is here, and the node is not free.
                let (node, _) = unsafe { self.owned(id) };
                panics.catch_drop(node.take_pending());
            }
        }
        for place in &self.table[..self.height()] {
            // Ordering: Relaxed, the last owner is here.
            let segment = place.load(Ordering::Relaxed);
            if !segment.is_null() {
                // SAFETY: it came from `into_raw` in `grow`, and nobody can reach it any more.
                drop(unsafe { Box::from_raw(segment) });
            }
        }
        panics.resume();
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
