//! Free nodes: where a producer finds some, where a segment is added, and how nodes come back.

use super::{FreeWord, Slab};
use crate::error::ScheduleErrorKind;
use crate::fallible;
use crate::shard::memory::epochs::Participant;
use crate::shard::memory::free_bits::{WORD_NODES, marked};
use crate::shard::memory::layout::Layout;
use crate::shard::memory::segment::Segment;
use crate::shard::memory::slab::SEGMENTS;
use crate::shard::memory::table::Keep;
use crate::sync::Ordering;

impl<T> Slab<T> {
    /// The greatest possible number of nodes.
    pub(super) fn limit() -> usize {
        // Saturating: on 32-bit systems the product is one more than `usize::MAX`.
        SEGMENTS.saturating_mul(Segment::<T>::NODES).min(u32::MAX as usize)
    }

    #[cold]
    pub(super) fn refill(&self, free: &mut FreeWord, who: &Participant) -> Result<(), ScheduleErrorKind> {
        // Protects: segments that the search reads while the advancer gives them back.
        let guard = who.pin();
        loop {
            // The first word with free nodes. New timers are in few segments that way, which stay in
            // the caches; the others become empty.
            let open = &self.open[..self.segments.height().div_ceil(WORD_NODES)];
            if let Some(found) = marked(open).find_map(|index| self.take_from(index, Keep::pinned(&guard))) {
                *free = found;
                return Ok(());
            }
            self.grow()?;
        }
    }

    fn take_from(&self, index: usize, keep: Keep<'_>) -> Option<FreeWord> {
        let free = &self.segments.get(index, keep)?.free;
        let found = free.take_word();
        if found.is_none() && !free.may_have_any() {
            // Ordering: Acquire, as in a segment's summary: a thread that clears this bit after
            // another thread set it sees the summary that was set before.
            self.open[index / WORD_NODES].fetch_and(!(1 << (index % WORD_NODES)), Ordering::Acquire);
            // Another segment may be in this place by now.
            if self.segments.get(index, keep)?.free.may_have_any() {
                self.reopen(index);
            }
        }
        found.map(|(word, bits)| FreeWord { word: (index * Segment::<T>::WORDS + word) as u32, bits })
    }

    /// Marks a segment as one that may have free nodes.
    pub(super) fn reopen(&self, index: usize) {
        // Ordering: Release, pairs with the Acquire in `take_from`.
        self.open[index / WORD_NODES].fetch_or(1 << (index % WORD_NODES), Ordering::Release);
    }

    /// Adds a segment in the first empty place. If another producer wins the race, this one drops
    /// its segment.
    fn grow(&self) -> Result<(), ScheduleErrorKind> {
        let full = ScheduleErrorKind::Full { limit: Self::limit() };
        let index = (0..SEGMENTS).find(|&index| self.segments.is_empty(index)).ok_or(full)?;
        let no_memory = ScheduleErrorKind::OutOfMemory { bytes: Layout::<T>::BYTES };
        let mut segment = Segment::new(index).and_then(fallible::boxed).ok_or(no_memory)?;
        // After the memory request, so that a failed request uses up no era.
        // Ordering: Relaxed, only the number matters.
        segment.era = self.next_era.fetch_add(1, Ordering::Relaxed);
        let nodes = segment.nodes.start();
        // Before the advancer can take the segment away, so that the count is never too low.
        // Ordering: Relaxed, a count; the Release of `Table::fill` keeps the order.
        self.size.fetch_add(1, Ordering::Relaxed);
        if self.segments.fill(index, segment).is_err() {
            // Ordering: Relaxed, as above.
            self.size.fetch_sub(1, Ordering::Relaxed);
            return Ok(());
        }
        // Ordering: Relaxed, for prefetching only.
        self.addresses[index].store(nodes, Ordering::Relaxed);
        self.reopen(index);
        self.mark_empty(index);
        Ok(())
    }

    /// Gives words of free nodes, in memory order, to all producers. Marks the segments that they
    /// complete as empty.
    pub(crate) fn give_words(&self, words: impl Iterator<Item = FreeWord>, keep: Keep<'_>) {
        // The segment of the previous word. It is reopened once all its words are given.
        let mut to_open = None;
        for free in words.filter(|free| free.bits != 0) {
            let segment = free.segment::<T>();
            self.give(free, keep);
            if let Some(former) = to_open.replace(segment).filter(|&former| former != segment) {
                self.reopen(former);
            }
        }
        if let Some(last) = to_open {
            self.reopen(last);
        }
    }

    /// As [`give_words`](Self::give_words), of what a producer has left over.
    #[cold]
    pub(crate) fn hand_back(&self, free: &mut FreeWord, who: &Participant) {
        // Protects: the segment, which may be empty once the nodes are given back.
        let pinned = who.pin();
        let given = FreeWord { word: free.word, bits: std::mem::take(&mut free.bits) };
        self.give_words(std::iter::once(given), Keep::pinned(&pinned));
    }

    /// Makes nodes of one word free; [`reopen`](Self::reopen) comes next.
    pub(super) fn give(&self, free: FreeWord, keep: Keep<'_>) {
        let (word, words) = (free.word as usize, Segment::<T>::WORDS);
        if let Some(segment) = self.segments.get(word / words, keep) {
            let is_empty = segment.free.give(word % words, free.bits);
            if is_empty {
                self.mark_empty(word / words);
            }
        }
    }
}
