//! The bound on pending timers, which several shards may share.

use crossbeam_utils::CachePadded;

use crate::error::ScheduleErrorKind;
use crate::sync::{Arc, AtomicUsize, Ordering};

/// How many timers may be pending in all shards that have a clone of it, and how many are. Written by all
/// producers and advancers of those shards, so counted only where there is a bound.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    limit: usize,
    /// None where `limit` is no bound.
    pending: Option<Arc<CachePadded<AtomicUsize>>>,
}

impl Bound {
    /// `usize::MAX` stands for no bound.
    pub(crate) fn new(limit: usize) -> Self {
        let counter = || Arc::new(CachePadded::new(AtomicUsize::new(0)));
        Self { limit, pending: (limit != usize::MAX).then(counter) }
    }

    /// Makes room for one more timer, or says that there is none.
    #[inline]
    pub(crate) fn reserve(&self) -> Result<(), ScheduleErrorKind> {
        self.pending.as_deref().map_or(Ok(()), |pending| self.reserve_one_of(pending))
    }

    fn reserve_one_of(&self, pending: &AtomicUsize) -> Result<(), ScheduleErrorKind> {
        let more = |pending| (pending < self.limit).then_some(pending + 1);
        // Ordering: Relaxed, a count that guards no memory.
        let reserved = pending.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        reserved.map(drop).map_err(|_| ScheduleErrorKind::Full { limit: self.limit })
    }

    /// Gives back what [`reserve`](Self::reserve) took: the timer has ended.
    #[inline]
    pub(crate) fn release(&self) {
        if let Some(pending) = &self.pending {
            // Ordering: Relaxed, as in `reserve_one_of`.
            pending.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
