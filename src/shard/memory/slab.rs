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

mod unlink;
pub(in crate::shard) mod walk;

use std::io;
use std::marker::PhantomData;

use crate::error::ScheduleErrorKind;
use crate::fallible;
use crate::hardware;
use crate::shard::memory::epochs::{Guard, Participant};
use crate::shard::memory::segment::{Segment, WORD_NODES};
use crate::shard::node::{Node, NodeId};
use crate::sync::plain::AtomicU32 as PlainU32;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::unwind::FirstPanic;

/// The greatest number of segments. A fuzzer, whose shards are small, makes and clears a table for
/// each input.
#[cfg(not(shardwheel_loom))]
const TABLE: usize = if crate::config::SMALL { 1 << 6 } else { 1 << 16 };
#[cfg(shardwheel_loom)]
const TABLE: usize = 4;

/// Free nodes that a lane has to itself: the nodes of one word that have not been handed out yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FreeWord {
    /// The word's index, counted over all segments.
    word: u32,
    bits: u64,
}

/// Keeps the segment of a node while a thread that does not own the node reads it.
pub(crate) struct Stay<'l> {
    /// Protects: the segment, if the caller's free nodes do not.
    _pinned: Option<Guard>,
    /// Otherwise the caller's free nodes, which lie in the same segment. The borrow prevents
    /// handing them out meanwhile.
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
    /// The address of each segment's nodes, now or formerly. For prefetching, which needs an
    /// address and no guarantee.
    addresses: Box<[AtomicPtr<Node<T>>; TABLE]>,
    /// The era of the next segment. No two segments have the same era. So a segment that replaces
    /// one given back hands out generations that were never used there, whichever thread added it.
    next_era: AtomicU32,
    /// A bit for each segment that may have free nodes; kept like the summary within a segment.
    open: Box<[AtomicU64]>,
    /// One past the highest place that was ever used.
    height: AtomicU32,
    /// The number of segments.
    size: PlainU32,
    /// How often a producer has given free nodes back.
    given_back: AtomicU64,
}

// SAFETY: the table's pointers own the segments, which are Send and Sync for a payload that is
// Send.
unsafe impl<T: Send> Send for Slab<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Slab<T> {}

impl<T> Slab<T> {
    /// An empty slab; `None` if there is no memory for its table.
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

    /// The greatest possible number of nodes.
    fn limit() -> usize {
        (TABLE << Segment::<T>::SHIFT).min(u32::MAX as usize)
    }

    /// Keeps the node's segment: by the caller's free nodes if they lie there, else by a pin, which
    /// takes longer. A producer with few timers usually finds them in the segment it allocates
    /// from.
    #[inline]
    pub(crate) fn stay<'l>(&self, id: NodeId, free: &'l FreeWord, who: &Participant) -> Stay<'l> {
        let segment = free.word as usize / Segment::<T>::WORDS;
        let is_kept = free.bits != 0 && segment == id as usize >> Segment::<T>::SHIFT;
        Stay { _pinned: (!is_kept).then(|| who.pin()), free: PhantomData }
    }

    /// The node and its segment's era, if the segment exists. O(1). The caller has made `stay` for
    /// this node.
    #[inline]
    pub(crate) fn get<'g>(&'g self, id: NodeId, _stay: &'g Stay<'_>) -> Option<(&'g Node<T>, u32)> {
        let segment = self.load(id as usize >> Segment::<T>::SHIFT)?;
        Some((segment.node(id), segment.era))
    }

    /// Prefetches the node's cache line for writing. Safe for any name, at any time.
    #[inline]
    pub(crate) fn prefetch(&self, id: NodeId) {
        if cfg!(shardwheel_loom) {
            // A further load would only multiply the interleavings.
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
    /// The caller owns the node or is the advancer, and the node is in use, so its segment stays.
    #[inline]
    pub(crate) unsafe fn owned(&self, id: NodeId) -> (&Node<T>, u32) {
        let place = &self.table[id as usize >> Segment::<T>::SHIFT];
        // Ordering: Relaxed, the thread that gave the caller the node had acquired the pointer.
        let segment = place.load(Ordering::Relaxed);
        // SAFETY: a segment with a node in use is in the table and stays there, by the caller's
        // promise.
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
    /// The caller is the advancer, for as long as it uses the node: only the advancer takes
    /// segments away.
    #[inline]
    pub(in crate::shard) unsafe fn node(&self, id: NodeId) -> (&Node<T>, u32) {
        let segment = self.load(id as usize >> Segment::<T>::SHIFT).expect("a node in hand exists");
        (segment.node(id), segment.era)
    }

    #[inline]
    fn load(&self, index: usize) -> Option<&Segment<T>> {
        // Ordering: Acquire, pairs with the Release of `grow`.
        let segment = self.table.get(index)?.load(Ordering::Acquire);
        // SAFETY: each caller keeps the segment and says so: it is pinned, or has nodes of the
        // segment to itself, or is the advancer or the last owner.
        unsafe { segment.as_ref() }
    }

    /// Takes a free node. Lock-free. O(1), except for one call in up to 64, which searches for the
    /// next word with free nodes, and one call per segment of nodes, which requests memory from the
    /// system.
    #[inline]
    pub(crate) fn take(&self, free: &mut FreeWord, who: &Participant) -> Result<NodeId, ScheduleErrorKind> {
        if free.bits == 0 {
            self.refill(free, who)?;
        }
        let id = free.word * WORD_NODES as u32 + free.bits.trailing_zeros();
        free.bits &= free.bits - 1;
        Ok(id)
    }

    /// Puts back the node that was taken last.
    pub(crate) fn put_back(free: &mut FreeWord, id: NodeId) {
        debug_assert_eq!(id / WORD_NODES as u32, free.word);
        free.bits |= 1 << (id as usize % WORD_NODES);
    }

    #[cold]
    fn refill(&self, free: &mut FreeWord, who: &Participant) -> Result<(), ScheduleErrorKind> {
        // Protects: segments that the search reads while the advancer gives them back.
        let guard = who.pin();
        loop {
            if let Some(found) = self.find_free(free.word as usize, &guard) {
                *free = found;
                return Ok(());
            }
            self.grow()?;
        }
    }

    /// The next word with free nodes, from `word` on and round all segments.
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
        // Ordering: Relaxed, a hint.
        if open.load(Ordering::Relaxed) & bit == 0 {
            return None;
        }
        let free = &self.load(index)?.free;
        let found = free.take_word(from);
        if found.is_none() && !free.may_have_any() {
            // Ordering: Acquire, as in a segment's summary: a thread that clears this bit after
            // another thread set it sees the summary that was set before.
            open.fetch_and(!bit, Ordering::Acquire);
            // Another segment may be in this place by now.
            if self.load(index)?.free.may_have_any() {
                self.reopen(index);
            }
        }
        found
    }

    /// Marks a segment as one that may have free nodes.
    pub(crate) fn reopen(&self, index: usize) {
        // Ordering: Release, pairs with the Acquire in `take_from`.
        self.open[index / WORD_NODES].fetch_or(1 << (index % WORD_NODES), Ordering::Release);
    }

    /// Adds a segment in the first empty place. If another producer wins the race, this one drops
    /// its segment.
    fn grow(&self) -> Result<(), ScheduleErrorKind> {
        // Ordering: Relaxed, the compare-and-swap below decides.
        let empty = |at: &AtomicPtr<Segment<T>>| at.load(Ordering::Relaxed).is_null();
        let full = ScheduleErrorKind::Full { limit: Self::limit() };
        let index = self.table.iter().position(empty).ok_or(full)?;
        let no_memory = |_: io::Error| ScheduleErrorKind::OutOfMemory { bytes: Segment::<T>::bytes() };
        let segment = fallible::boxed(Segment::new(index).map_err(no_memory)?);
        let mut segment = segment.ok_or_else(|| no_memory(io::ErrorKind::OutOfMemory.into()))?;
        // After the memory request, so that a failed request uses up no era.
        // Ordering: Relaxed, only the number matters.
        segment.era = self.next_era.fetch_add(1, Ordering::Relaxed);
        let (nodes, segment) = (segment.nodes(), Box::into_raw(segment));
        let (null, place) = (std::ptr::null_mut(), &self.table[index]);
        // Before the advancer can take the segment away, so that the count is never too low.
        // Ordering: Relaxed, a count; the Release below keeps the order.
        self.size.fetch_add(1, Ordering::Relaxed);
        // Ordering: Release, pairs with `load`; on failure nothing is read.
        if place.compare_exchange(null, segment, Ordering::Release, Ordering::Relaxed).is_err() {
            // Ordering: Relaxed, as above.
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

    /// Gives a lane's leftover free nodes back to all producers; false if there are none. For the
    /// advancer, or for an owner that is pinned: afterwards the segment may be empty.
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
        // Protects: the segment, which may be empty once the nodes are given back.
        let _pinned = who.pin();
        // The word stays: the next search begins there.
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

    /// Counts a node that the caller has taken as worn out.
    #[cold]
    pub(crate) fn wear_out(&self, id: NodeId) {
        // The segment stays until then: the caller owns a node of it.
        if let Some(segment) = self.load(id as usize >> Segment::<T>::SHIFT) {
            segment.free.wear_out();
        }
    }

    /// Makes nodes of one word free; [`reopen`](Self::reopen) comes next. The caller owns the
    /// nodes.
    pub(crate) fn give(&self, word: usize, bits: u64) {
        let words = Segment::<T>::WORDS;
        if let Some(segment) = self.load(word / words) {
            segment.free.give(word % words, bits);
        }
    }

    fn height(&self) -> usize {
        // Ordering: Relaxed, it says only how far to look; each place is acquired separately. The
        // walk at the shard's end looks far enough: the fences in `close` and `insert` refuse a
        // timer or let the walk find it, and a timer that is moved is found by its old node.
        self.height.load(Ordering::Relaxed) as usize
    }

    /// The number of segments; too high for a moment at times. O(1).
    pub(crate) fn size(&self) -> usize {
        // Ordering: Relaxed, a count.
        self.size.load(Ordering::Relaxed) as usize
    }
}

/// How many segments are never given back: none. Models, which test other things, keep the first.
pub(crate) fn staying() -> usize {
    usize::from(cfg!(shardwheel_loom))
}

impl<T> Drop for Slab<T> {
    /// Drops every payload even if some panic; the first panic resumes at the end.
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
                // SAFETY: it came from `into_raw` in `grow`, and no other thread can reach it any
                // more.
                drop(unsafe { Box::from_raw(segment) });
            }
        }
        panics.resume();
    }
}

#[cfg(all(test, not(any(shardwheel_loom, fuzzing))))]
mod tests;
