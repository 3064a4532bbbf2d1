//! The bound on pending timers, which several shards may share.

use crossbeam_utils::CachePadded;

use crate::error::ScheduleErrorKind;
use crate::sync::{Arc, AtomicUsize, Ordering};

/// The limit on pending timers of all shards that have a clone of this, and how many are pending.
/// All producers and advancers of those shards write the count, so it exists only where there is a
/// limit.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    limit: usize,
    /// `None` if there is no limit.
    pending: Option<Arc<CachePadded<AtomicUsize>>>,
}

impl Bound {
    /// Makes a bound; `usize::MAX` means no limit.
    pub(crate) fn new(limit: usize) -> Self {
        let counter = || Arc::new(CachePadded::new(AtomicUsize::new(0)));
        Self { limit, pending: (limit != usize::MAX).then(counter) }
    }

    /// The most timers that may be pending.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Makes room for one more timer; an error if there is none.
    #[inline]
    pub(crate) fn reserve(&self) -> Result<(), ScheduleErrorKind> {
        let Some(pending) = &self.pending else { return Ok(()) };
        let more = |pending| (pending < self.limit).then_some(pending + 1);
        // Ordering: Relaxed, a count that guards no memory.
        let counted = pending.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        counted.map(drop).map_err(|_| ScheduleErrorKind::Full { limit: self.limit })
    }

    /// Gives back the room that [`reserve`](Self::reserve) took: the timer has ended.
    #[inline]
    pub(crate) fn release(&self) {
        if let Some(pending) = &self.pending {
            // Ordering: Relaxed, as in `reserve`.
            pending.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
