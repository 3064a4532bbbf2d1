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
pub(super) const PART: usize = 1 << 18;

/// Owns the memory, which does not move.
struct Pages {
    memory: imp::Memory,
    bytes: usize,
    /// Whether it asked for huge pages, which save a page table walk on most accesses. A hint:
    /// where the system refuses or does not know it, ordinary pages serve.
    is_huge: bool,
    /// The bytes before this one have gone back to the system.
    given: usize,
}

impl Pages {
    /// Makes `bytes` zeroed bytes, and returns their start, a multiple of `align`. `None` if there
    /// is no memory.
    fn new(bytes: usize, align: usize, is_huge: bool) -> Option<(Self, *mut u8)> {
        let align = align.max(imp::wanted_align(is_huge));
        let slack = if align > imp::SURE_ALIGN { align } else { 0 };
        let bytes = bytes.checked_add(slack)?;
        let mut memory = imp::allocate(bytes, is_huge)?;
        let start = memory.as_mut_ptr().cast::<u8>();
        let start = start.wrapping_add(start.align_offset(align));
        Some((Self { memory, bytes, is_huge, given: 0 }, start))
    }

    /// Gives the next [`PART`] of the memory back to the system; false if it has to go with all
    /// that is left, by a drop. A part of a huge page would have to be cut out of it, which takes
    /// longer than to unmap the whole page.
    ///
    /// # Safety
    ///
    /// Nothing in the memory is borrowed, and nothing is read there any more.
    unsafe fn give_part(&mut self) -> bool {
        let end = self.given + PART;
        // SAFETY: by the caller's promise.
        let gives = !self.is_huge && end < self.bytes && unsafe { imp::give(&self.memory, self.given, PART) };
        if gives {
            self.given = end;
        }
        gives
    }
}

/// The nodes of a segment, in pages.
pub(crate) struct Nodes<T> {
    first: NonNull<Node<T>>,
    pages: Pages,
}

impl<T> Nodes<T> {
    /// `many` says that the shard is large, so this segment will be filled: it asks for huge pages.
    pub(super) fn new(many: bool) -> Option<Self> {
        let (pages, start) = Pages::new(Layout::<T>::BYTES, align_of::<Node<T>>(), many)?;
        Some(Self { first: NonNull::new(start.cast())?, pages })
    }

    pub(super) fn start(&self) -> *mut Node<T> {
        self.first.as_ptr()
    }

    /// Gives a part of the memory to the system; returns the rest.
    pub(super) fn give_part(mut self) -> Option<Self> {
        // SAFETY: nodes are reached through a borrow of `self` only, and it is not borrowed.
        unsafe { self.pages.give_part() }.then_some(self)
    }

    /// The node of that name: its low bits are the offset.
    #[inline]
    pub(super) fn at(&self, id: NodeId) -> &Node<T> {
        let offset = id as usize & (Layout::<T>::NODES - 1);
        // SAFETY: the pages hold `NODES` nodes from `first` on, and the mask keeps the offset below
        // that.
        let node = unsafe { self.first.add(offset) };
        // SAFETY: a zeroed node is valid. Nodes are changed only through their atomics and their
        // cell, and they live as long as the pages.
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

    /// Ordinary pages go in parts of bounded size, from the beginning on; the last part goes with
    /// the mapping, and so do huge pages.
    #[test]
    fn ordinary_pages_go_back_in_parts() {
        const BYTES: usize = 1 << 20;
        for (is_huge, parts) in [(false, BYTES / PART - 1), (true, 0)] {
            let (mut pages, start) = Pages::new(BYTES, 8, is_huge).expect("there is memory");
            // SAFETY: the memory has `BYTES` bytes, and is not borrowed elsewhere.
            let bytes = || unsafe { std::slice::from_raw_parts_mut(start, BYTES) };
            bytes().fill(1);
            for part in 1..=parts {
                // SAFETY: the slice is not used any more.
                assert!(unsafe { pages.give_part() }, "part {part} of {parts}");
                let (given, left) = bytes().split_at(part * PART);
                assert!(given.iter().all(|&byte| byte == 0) && left.iter().all(|&byte| byte == 1));
            }
            // SAFETY: as above.
            assert!(!unsafe { pages.give_part() }, "the rest goes with the mapping");
        }
    }
}
