//! How large a segment is: so many nodes, and so many words of free bits.

use std::marker::PhantomData;

use crate::shard::memory::free_bits::WORD_NODES;
use crate::shard::node::Node;
use crate::size::size;

/// Whether the system backs only the part that has been used: it has mappings.
const IS_LAZY: bool = cfg!(any(unix, windows, shardwheel_loom, shardwheel_shuttle));

/// Bytes of node memory in a segment, at most, unless the payload is large. A fuzzer makes a shard
/// for each input and fills little of it; its segments are small, so they are made quickly and
/// often given back. Where all of the memory is backed at once, a shard of few timers should not
/// take two megabytes.
const SEGMENT_BYTES: usize = size(2 << 20, 1 << 11, 0) / if IS_LAZY { 1 } else { 16 };

/// The sizes of a segment whose payload is a `T`.
pub(crate) struct Layout<T>(PhantomData<T>);

impl<T> Layout<T> {
    /// log2 of the number of nodes.
    pub(crate) const SHIFT: u32 = {
        let nodes = SEGMENT_BYTES / size_of::<Node<T>>();
        let shift = if nodes == 0 { 0 } else { nodes.ilog2() };
        // At least one word of free bits. At most 2^16 nodes: a 32-bit name then allows as many
        // segments as a segment has nodes.
        if shift < WORD_NODES.ilog2() {
            WORD_NODES.ilog2()
        } else if shift > 16 {
            16
        } else {
            shift
        }
    };

    pub(crate) const NODES: usize = 1 << Self::SHIFT;

    /// Bytes of memory for the nodes.
    pub(crate) const BYTES: usize = Self::NODES * size_of::<Node<T>>();
}
