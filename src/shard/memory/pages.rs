//! Zeroed memory for a segment's nodes.
//!
//! Where the system has mappings, the memory comes directly from the system, and goes back to it on
//! drop. An allocator might keep it, and would not zero it lazily. On WebAssembly, which has no
//! mappings, the allocator provides it.

use std::ptr::NonNull;

use crate::shard::memory::layout::Layout;
use crate::shard::node::{Node, NodeId};

/// The nodes of a segment, in memory that does not move.
pub(crate) struct Nodes<T> {
    first: NonNull<Node<T>>,
    /// Unmapped with the nodes.
    _memory: imp::Memory,
}

impl<T> Nodes<T> {
    /// Makes zeroed nodes; `None` if there is no memory. `many` says that the shard is large, so
    /// this segment will be filled: it asks for huge pages, which save a page table walk on most
    /// accesses. Where the system refuses or does not know them, ordinary pages serve.
    pub(super) fn new(many: bool) -> Option<Self> {
        let align = align_of::<Node<T>>().max(imp::wanted_align(many));
        let slack = if align > imp::SURE_ALIGN { align } else { 0 };
        let mut memory = imp::allocate(Layout::<T>::BYTES.checked_add(slack)?, many)?;
        let start = memory.as_mut_ptr().cast::<u8>();
        let start = start.wrapping_add(start.align_offset(align));
        Some(Self { first: NonNull::new(start.cast())?, _memory: memory })
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

    pub(super) fn allocate(bytes: usize, _: bool) -> Option<Memory> {
        fallible::zeroed::<u64>(bytes.div_ceil(size_of::<u64>())).map(Vec::from)
    }
}
