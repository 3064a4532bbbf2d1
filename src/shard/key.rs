//! The user's name for a timer.

use std::num::NonZeroU32;

use super::node::NodeId;
use crate::sync::Ordering;
use crate::sync::plain::AtomicU32;

/// Names a timer of one shard. Small and `Copy`; a stale one is harmless.
///
/// A key holds the shard, the node that the timer lives in, and a generation of 64 bits that tells the
/// timer from all others that the node has held or will hold. A key whose timer has ended finds nothing,
/// for ever; so does one that is given to another shard (shards are told apart by a number of 32 bits,
/// which comes round after four thousand million shards in one process).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub(super) shard: ShardId,
    pub(super) node: NodeId,
    pub(super) generation: u64,
}

/// Tells the shards of a process apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ShardId(NonZeroU32);

impl ShardId {
    pub(super) fn next() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        loop {
            // Ordering: Relaxed, the number alone matters.
            let id = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if let Some(id) = NonZeroU32::new(id) {
                return Self(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_small_and_so_is_its_option() {
        assert_eq!(size_of::<Key>(), 16);
        assert_eq!(size_of::<Option<Key>>(), 16);
    }

    #[test]
    fn shard_ids_differ() {
        assert_ne!(ShardId::next(), ShardId::next());
    }
}
