//! A segment: an array of nodes that never moves, and [the bits](FreeBits) that say which nodes are
//! free.

use crate::shard::memory::free_bits::{FreeBits, WORD_NODES};
use crate::shard::memory::layout::Layout;
use crate::shard::memory::pages::Nodes;

/// A shard of up to this many segments (one of 2 MiB) stays on ordinary pages. The TLB covers them.
/// Where the system has to find a huge page first (a virtual machine whose host backs memory on
/// first use), the first timers would wait for it.
const SMALL_SHARD: usize = 1;

pub(crate) struct Segment<T> {
    pub(super) nodes: Nodes<T>,
    /// The high half of the generations of this segment's nodes. No other segment has the same era,
    /// so a segment that replaces one given back hands out no generation that was handed out there
    /// before.
    pub(crate) era: u32,
    pub(crate) free: FreeBits,
}

impl<T> Segment<T> {
    /// log2 of the number of nodes in a segment.
    pub(crate) const SHIFT: u32 = Layout::<T>::SHIFT;

    pub(crate) const NODES: usize = Layout::<T>::NODES;

    /// Words of free bits in a segment.
    pub(crate) const WORDS: usize = Self::NODES / WORD_NODES;

    /// Makes the segment for place `index` of the table; `None` if there is no memory. The caller
    /// sets its era.
    pub(crate) fn new(index: usize) -> Option<Self> {
        // Node 0 of the first segment would have the name `NIL`.
        let reserved = usize::from(index == 0);
        let free = FreeBits::new(Self::NODES, reserved)?;
        let nodes = Nodes::new(index >= SMALL_SHARD)?;
        Some(Self { nodes, era: 0, free })
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use super::*;
    use crate::shard::node::Node;

    /// Fuzzers use smaller segments.
    #[test]
    #[cfg(not(fuzzing))]
    #[cfg_attr(feature = "introspect", ignore = "nodes are larger")]
    fn segments_suit_the_payload() {
        assert_eq!(Segment::<u64>::NODES, 65_536);
        assert_eq!(Segment::<[u8; 4096]>::NODES, 256);
        assert_eq!(Segment::<[u8; 1 << 20]>::NODES, 64);
    }

    #[test]
    fn nodes_are_aligned() {
        #[repr(align(16384))]
        struct Wide;
        let segment = Segment::<Wide>::new(0).unwrap();
        for id in [0, 1, 63] {
            assert_eq!(std::ptr::from_ref(segment.nodes.at(id)) as usize % 16384, 0);
        }
        let tag = if cfg!(feature = "introspect") { 8 } else { 0 };
        assert_eq!((size_of::<Node<u32>>(), size_of::<Node<u64>>()), (24 + tag, 32 + tag));
        assert_eq!(size_of::<Node<[u64; 5]>>(), 64 + tag); // as a `Timer`'s
    }

    /// A small shard's first segment is not aligned: the alignment is for huge pages.
    #[test]
    fn segments_are_aligned() {
        for index in [SMALL_SHARD, SMALL_SHARD + 1] {
            let segment = Segment::<u32>::new(index).unwrap();
            assert_eq!(segment.nodes.start().cast_const(), std::ptr::from_ref(segment.nodes.at(0)));
            assert_eq!(segment.nodes.start() as usize % (2 << 20), 0);
        }
    }
}
