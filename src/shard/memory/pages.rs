//! Zeroed memory for a segment's nodes.
//!
//! Where the system has mappings, the memory comes directly from the system, and goes back to it on
//! drop. An allocator might keep it, and would not zero it lazily. On WebAssembly, which has no
//! mappings, the allocator provides it.
//!
//! Memory can go back in parts, each of a bounded number of pages, where the system can do that.

use std::ptr::NonNull;

use crate::shard::memory::layout::Layout;
use crate::shard::node::{Node, NodeId};

/// Bytes that go back to the system at once, if the pages are ordinary ones. It takes as long to
/// unmap 64 pages of 4 KiB as to give 512 words of free bits.
const PART: usize = 1 << 18;

/// The nodes of a segment, in memory that does not move.
pub(crate) struct Nodes<T> {
    first: NonNull<Node<T>>,
    memory: imp::Memory,
    /// How many parts, from the start of the memory on, can still go back alone. A part of a huge
    /// page would have to be cut out of it, which takes longer than to unmap the whole page.
    parts: usize,
}

impl<T> Nodes<T> {
    /// Makes zeroed nodes; `None` if there is no memory. `many` says that the shard is large, so
    /// this segment will be filled: it asks for huge pages, which save a page table walk on most
    /// accesses. Where the system refuses or does not know them, ordinary pages serve.
    pub(super) fn new(many: bool) -> Option<Self> {
        let align = align_of::<Node<T>>().max(imp::wanted_align(many));
        let slack = if align > imp::SURE_ALIGN { align } else { 0 };
        let bytes = Layout::<T>::BYTES.checked_add(slack)?;
        let mut memory = imp::allocate(bytes, many)?;
        let start = memory.as_mut_ptr().cast::<u8>();
        let start = start.wrapping_add(start.align_offset(align));
        let parts = if many { 0 } else { bytes / PART };
        Some(Self { first: NonNull::new(start.cast())?, memory, parts })
    }

    /// Gives a part of the memory to the system, and returns the rest. If there is no part that can
    /// go alone, all goes.
    pub(super) fn give_part(mut self) -> Option<Self> {
        self.parts = self.parts.checked_sub(1)?;
        // SAFETY: nodes are reached through a borrow of `self` only, and it is not borrowed.
        unsafe { imp::give(&self.memory, self.parts * PART, PART) }.then_some(self)
    }

    pub(super) fn start(&self) -> *mut Node<T> {
        self.first.as_ptr()
    }

    /// The node of that name: its low bits are the offset.
    #[inline]
    pub(super) fn at(&self, id: NodeId) -> &Node<T> {
        let offset = id as usize & (Layout::<T>::NODES - 1);
        // SAFETY: the memory holds `NODES` nodes from `first` on, and the mask keeps the offset below
        // that.
        let node = unsafe { self.first.add(offset) };
        // SAFETY: a zeroed node is valid. Nodes are changed only through their atomics and their
        // cell, and they live as long as the memory.
        unsafe { node.as_ref() }
    }
}

// SAFETY: the memory is owned, and threads share nodes by the protocol of the node's word.
unsafe impl<T: Send> Send for Nodes<T> {}
// SAFETY: as above. Only the thread that won a payload moves it out; a payload is never shared.
unsafe impl<T: Send> Sync for Nodes<T> {}

#[cfg(any(unix, windows))]
mod imp {
    pub(super) use memmap2::MmapMut as Memory;

    /// The least page size: the start of a mapping is aligned to it.
    pub(super) const SURE_ALIGN: usize = 4096;

    const HUGE_PAGE: usize = if cfg!(miri) { SURE_ALIGN } else { 2 << 20 };

    pub(super) fn wanted_align(is_huge: bool) -> usize {
        if is_huge { HUGE_PAGE } else { SURE_ALIGN }
    }

    pub(super) fn allocate(bytes: usize, is_huge: bool) -> Option<Memory> {
        let pages = Memory::map_anon(bytes).ok()?;
        if is_huge {
            ask_for_huge_pages(&pages);
        }
        Some(pages)
    }

    /// Gives a range of the memory back; false if the system cannot, or refuses, as it does if the
    /// program has locked its memory.
    ///
    /// # Safety
    ///
    /// Nothing in the memory is borrowed. Afterwards the range is zeroed.
    pub(super) unsafe fn give(pages: &Memory, from: usize, bytes: usize) -> bool {
        #[cfg(all(target_os = "linux", not(miri)))]
        {
            let advice = memmap2::UncheckedAdvice::DontNeed;
            // SAFETY: the mapping is private and has no file, so its pages become zeroed ones. By
            // the caller's promise they are not borrowed.
            unsafe { pages.unchecked_advise_range(advice, from, bytes) }.is_ok()
        }
        #[cfg(not(all(target_os = "linux", not(miri))))]
        {
            let _ = (pages, from, bytes);
            false
        }
    }

    fn ask_for_huge_pages(pages: &Memory) {
        #[cfg(all(target_os = "linux", not(miri)))]
        drop(pages.advise(memmap2::Advice::HugePage));
        #[cfg(not(all(target_os = "linux", not(miri))))]
        let _ = pages;
    }
}

#[cfg(not(any(unix, windows)))]
mod imp {
    use crate::fallible;

    /// Not a box, which must not be moved while pointers into it are in use.
    pub(super) type Memory = Vec<u64>;

    pub(super) const SURE_ALIGN: usize = align_of::<u64>();

    const CACHE_LINE: usize = 64;

    pub(super) fn wanted_align(_: bool) -> usize {
        CACHE_LINE
    }

    /// An allocator takes memory back as a whole.
    ///
    /// # Safety
    ///
    /// None is needed.
    pub(super) unsafe fn give(_: &Memory, _: usize, _: usize) -> bool {
        false
    }

    pub(super) fn allocate(bytes: usize, _: bool) -> Option<Memory> {
        fallible::zeroed::<u64>(bytes.div_ceil(size_of::<u64>())).map(Vec::from)
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    /// Ordinary pages go in parts of bounded size, the first ones last; huge pages go with the mapping.
    #[test]
    fn ordinary_pages_go_back_in_parts() {
        let bytes = Layout::<u64>::BYTES;
        for (is_huge, parts) in [(false, bytes / PART), (true, 0)] {
            let mut nodes = Nodes::<u64>::new(is_huge).expect("there is memory");
            let start = nodes.start().cast::<u8>();
            // SAFETY: the memory has that many bytes, and is not borrowed elsewhere.
            let of_nodes = || unsafe { std::slice::from_raw_parts_mut(start, bytes) };
            of_nodes().fill(1);
            for part in (0..parts).rev() {
                nodes = nodes.give_part().unwrap_or_else(|| panic!("part {part} of {parts}"));
                let (left, given) = of_nodes().split_at(part * PART);
                assert!(left.iter().all(|&byte| byte == 1) && given.iter().all(|&byte| byte == 0));
            }
            assert!(nodes.give_part().is_none(), "the rest goes with the mapping");
        }
    }
}
