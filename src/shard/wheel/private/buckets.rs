//! The lists of all buckets of a private wheel. They are cleared in groups, when they are first
//! used: to clear the 256 KiB of a whole wheel can take an advance 100 µs, for the allocator may
//! give memory that is not zero, and that the system has yet to back.

use std::mem::MaybeUninit;

use crate::shard::node::{NIL, NodeId};
use crate::shard::wheel::STRIPES;
use crate::shard::wheel::bitset::Bitmap;

/// The buckets of a group, which take 4 KiB.
const GROUP: usize = 64;

/// Invariant: each bucket of a group in `cleared` is initialized.
pub(super) struct Buckets {
    lists: Box<[MaybeUninit<[NodeId; STRIPES]>]>,
    cleared: Bitmap,
}

impl Buckets {
    pub(super) fn new(size: usize) -> Self {
        let cleared = Bitmap::new(size.div_ceil(GROUP).div_ceil(u64::BITS as usize));
        Self { lists: Box::new_uninit_slice(size), cleared }
    }

    /// The lists of a bucket. All are empty if its group has not been cleared.
    pub(super) fn get(&self, index: usize) -> [NodeId; STRIPES] {
        match self.cleared.contains(index / GROUP) {
            // SAFETY: the group is in `cleared`.
            true => unsafe { self.lists[index].assume_init() },
            false => [NIL; STRIPES],
        }
    }

    /// The lists of a bucket, whose group is cleared if it has not been.
    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> &mut [NodeId; STRIPES] {
        if !self.cleared.contains(index / GROUP) {
            self.clear(index / GROUP);
        }
        // SAFETY: the group is in `cleared`.
        unsafe { self.lists[index].assume_init_mut() }
    }

    #[cold]
    fn clear(&mut self, group: usize) {
        for lists in self.lists.iter_mut().skip(group * GROUP).take(GROUP) {
            lists.write([NIL; STRIPES]);
        }
        self.cleared.insert(group);
    }
}

#[cfg(all(test, not(shardwheel_loom)))]
mod tests {
    use super::*;

    /// No call clears more than one group.
    #[test]
    fn groups_are_cleared_when_needed() {
        let mut buckets = Buckets::new(4 * GROUP);
        let cleared =
            |buckets: &Buckets| (0..4).map(|group| buckets.cleared.contains(group)).collect::<Vec<_>>();
        assert_eq!((buckets.get(GROUP), cleared(&buckets)), ([NIL; STRIPES], vec![false; 4]));
        buckets.get_mut(3 * GROUP - 1)[5] = 7;
        assert_eq!(*buckets.get_mut(2 * GROUP), [NIL; STRIPES]);
        assert_eq!(cleared(&buckets), [false, false, true, false]);
        assert_eq!(buckets.get(3 * GROUP - 1)[5], 7);
    }
}
