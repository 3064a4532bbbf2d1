//! A stack of nodes for the next advance: those whose bucket is sealed or of another round, or for
//! whose wheel there was no memory.

use crossbeam_utils::CachePadded;

use crate::shard::node::{NIL, NodeId};
use crate::sync::{AtomicU32, Ordering};

/// Producers push to it, the advancer takes all.
pub(crate) struct Inbox(CachePadded<AtomicU32>);

impl Inbox {
    pub(crate) fn new() -> Self {
        Self(CachePadded::new(AtomicU32::new(NIL)))
    }

    /// Pushes a node, whose link is `next`. The caller owns it. Lock-free.
    #[cold]
    pub(crate) fn push(&self, id: NodeId, next: &AtomicU32) {
        // The inbox is nearly always empty. There is no load first: loom remembers only the last
        // access to an atomic, and with a load would miss an interleaving (see `Trace`).
        let mut seen = NIL;
        loop {
            // Ordering: Relaxed, published by the compare-and-swap.
            next.store(seen, Ordering::Relaxed);
            // Ordering: Release, pairs with the Acquire of `take`.
            match self.0.compare_exchange_weak(seen, id, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Whether it holds a node; for the advancer, as what follows.
    #[inline]
    pub(crate) fn holds_any(&self) -> bool {
        // Ordering: Relaxed; the next advance finds a push that this load misses.
        self.0.load(Ordering::Relaxed) != NIL
    }

    /// Takes all nodes, as a list.
    pub(crate) fn take(&self) -> NodeId {
        if !self.holds_any() {
            return NIL;
        }
        // Ordering: Acquire, pairs with the Release of each push. Each push is a read-modify-write,
        // so the last one continues the release sequences of those before it.
        self.0.swap(NIL, Ordering::Acquire)
    }

    /// The first node, which stays there.
    pub(crate) fn peek(&self) -> NodeId {
        // Ordering: Acquire, as in `take`.
        self.0.load(Ordering::Acquire)
    }
}
