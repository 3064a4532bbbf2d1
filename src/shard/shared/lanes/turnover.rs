//! How often the lanes of a shard change their owner, and how many of them threads own.

use super::KEEPERS;
use crate::shard::shared::advancer_waker::AdvancerWaker;
use crate::sync::Ordering;
use crate::sync::plain::{Arc, AtomicU32, AtomicU64};

/// The changes of ownership in all lanes of a shard. Written by threads that take lanes over or
/// give them up, read by those threads and the advancer.
pub(super) struct Turnover {
    /// How often a lane has been taken over or given up.
    changes: AtomicU64,
    /// How many lanes threads own, or are about to own.
    owned: AtomicU32,
    pub(super) waker: Arc<AdvancerWaker>,
}

impl Turnover {
    pub(super) fn new(waker: Arc<AdvancerWaker>) -> Self {
        Self { changes: AtomicU64::new(0), owned: AtomicU32::new(0), waker }
    }

    /// How often a lane has been taken over or given up.
    #[inline]
    pub(super) fn changes(&self) -> u64 {
        // Ordering: Acquire, pairs with `note`: the lane that was taken over is in the list.
        self.changes.load(Ordering::Acquire)
    }

    /// Makes the advancer recount its lane totals.
    pub(super) fn note(&self) {
        // Ordering: Release, pairs with `changes`. The fence with which the lane's owner inserts
        // its first timer comes after it.
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Notes that a thread no longer owns its lane.
    pub(super) fn note_given_up(&self) {
        // Ordering: Relaxed, only the number matters; the lane's state says whether the lane is
        // free.
        self.owned.fetch_sub(1, Ordering::Relaxed);
        self.note();
    }

    /// Whether one more thread may own a lane.
    pub(super) fn has_place(&self) -> bool {
        // Ordering: Relaxed, as above.
        self.owned.load(Ordering::Relaxed) < KEEPERS
    }

    /// Takes one of the [`KEEPERS`] places; false if all are taken.
    pub(super) fn take_place(&self) -> bool {
        // Ordering: Relaxed, as above.
        if self.owned.fetch_add(1, Ordering::Relaxed) < KEEPERS {
            return true;
        }
        // Ordering: Relaxed, as above.
        self.owned.fetch_sub(1, Ordering::Relaxed);
        false
    }
}
