//! Zeroed memory for a segment's nodes.
//!
//! Where the system has mappings, the memory comes directly from the system, and goes back to it on
//! drop. An allocator might keep it, and would not zero it lazily. On WebAssembly, which has no
//! mappings, the allocator provides it.

use std::io;

pub(super) use imp::IS_LAZY;

/// Owns the memory, which does not move.
pub(super) struct Pages {
    _memory: imp::Memory,
}

/// The size of the pages that a segment asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PageSize {
    Ordinary,
    /// Huge pages save a page table walk on most accesses. A hint: where the system refuses or does
    /// not know it, ordinary pages serve.
    Huge,
}

impl Pages {
    /// Makes `bytes` zeroed bytes, and returns their start, a multiple of `align`.
    pub(super) fn new(bytes: usize, align: usize, size: PageSize) -> io::Result<(Self, *mut u8)> {
        let align = align.max(imp::wanted_align(size));
        let slack = if align > imp::SURE_ALIGN { align } else { 0 };
        let bytes = bytes.checked_add(slack).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut memory = imp::allocate(bytes, size)?;
        let start = memory.as_mut_ptr().cast::<u8>();
        let start = start.wrapping_add(start.align_offset(align));
        Ok((Self { _memory: memory }, start))
    }
}

#[cfg(any(unix, windows))]
mod imp {
    use std::io;

    use super::PageSize;

    pub(super) type Memory = memmap2::MmapMut;

    /// Whether the system backs only the part that has been used.
    pub(in super::super) const IS_LAZY: bool = true;

    /// The least page size: the start of a mapping is aligned to it.
    pub(super) const SURE_ALIGN: usize = 4096;

    const HUGE_PAGE: usize = if cfg!(miri) { SURE_ALIGN } else { 2 << 20 };

    pub(super) fn wanted_align(size: PageSize) -> usize {
        if size == PageSize::Huge { HUGE_PAGE } else { SURE_ALIGN }
    }

    pub(super) fn allocate(bytes: usize, size: PageSize) -> io::Result<Memory> {
        let pages = Memory::map_anon(bytes)?;
        if size == PageSize::Huge {
            ask_for_huge_pages(&pages);
        }
        Ok(pages)
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
    use std::io;

    use super::PageSize;
    use crate::fallible;

    /// Not a box, which must not be moved while pointers into it are in use.
    pub(super) type Memory = Vec<u64>;

    pub(in super::super) const IS_LAZY: bool = false;

    pub(super) const SURE_ALIGN: usize = align_of::<u64>();

    const CACHE_LINE: usize = 64;

    pub(super) fn wanted_align(_: PageSize) -> usize {
        CACHE_LINE
    }

    pub(super) fn allocate(bytes: usize, _: PageSize) -> io::Result<Memory> {
        let words = fallible::zeroed::<u64>(bytes.div_ceil(size_of::<u64>()));
        Ok(words.ok_or(io::ErrorKind::OutOfMemory)?.into_vec())
    }
}
