//! The consumer's handle: what only the advancer may do with the state that both halves share.

use std::ops::Deref;

use super::Shared;
use crate::shard::memory::batch::Retired;
use crate::shard::memory::epochs::Unlinked;
use crate::shard::node::{NIL, Node, NodeId};
use crate::shard::wheel::Wheel;
use crate::sync::{Arc, Ordering};
use crate::tick::Tick;

/// A shard has one while the advancer lives. Its owner is the advancer, or a walk over the nodes
/// after the advancer has closed the shard. Only the advancer takes segments and wheels away, so
/// what the handle lends stays there.
pub(crate) struct Consumer<T>(Arc<Shared<T>>);

impl<T> Consumer<T> {
    /// Makes the handle of a shard that has none yet.
    pub(crate) fn new(shared: Shared<T>) -> Self {
        Self(Arc::new(shared))
    }

    /// A further reference, for producers.
    pub(crate) fn share(&self) -> Arc<Shared<T>> {
        Arc::clone(&self.0)
    }

    /// A node, and its segment's era.
    ///
    /// # Panics
    ///
    /// If there is no such node. A node that is in use exists.
    #[inline]
    pub(crate) fn node(&self, id: NodeId) -> (&Node<T>, u32) {
        // SAFETY: only the advancer takes segments away, and this is the advancer.
        unsafe { self.0.slab.node(id) }
    }

    /// The shared wheel of a level, if it exists.
    #[inline]
    pub(crate) fn wheel(&self, level: usize) -> Option<&Wheel> {
        // SAFETY: only the advancer takes wheels away, and this is the advancer.
        unsafe { self.0.wheels.get(level) }
    }

    /// Unlinks an overflow wheel: producers no longer reach it.
    pub(crate) fn unlink_wheel(&mut self, level: usize) -> Option<Unlinked<Wheel>> {
        self.0.wheels.unlink(level)
    }

    /// The earliest tick within `from..=to` at which a shared bucket that may hold something
    /// expires.
    pub(crate) fn next_occupied(&self, from: Tick, to: Tick) -> Option<Tick> {
        (0..self.0.wheels.levels()).filter_map(|level| self.next_occupied_at(level, from, to)).min()
    }

    fn next_occupied_at(&self, level: usize, from: Tick, to: Tick) -> Option<Tick> {
        let (wheel, geometry) = (self.wheel(level)?, self.0.geometry);
        let count = geometry.starts_within(level, from, to);
        geometry.expiration_of(level, from, |slot| wheel.next_occupied(geometry.index(slot), count))
    }

    /// Puts a chain of nodes that the advancer owns on the inbox, from `first` to `last`.
    #[cold]
    pub(crate) fn push_to_inbox(&self, first: NodeId, last: NodeId) {
        self.0.push_to_inbox(first, self.node(last).0);
    }

    /// Takes all nodes of the inbox, as a list.
    pub(crate) fn take_inbox(&self) -> NodeId {
        // Ordering: Relaxed; the next advance finds a push that this load misses.
        if self.0.inbox.load(Ordering::Relaxed) == NIL {
            return NIL;
        }
        // Ordering: Acquire, pairs with the Release of each push. Each push is a read-modify-write,
        // so the last one continues the release sequences of those before it.
        self.0.inbox.swap(NIL, Ordering::Acquire)
    }

    /// The first node of the inbox. It stays there.
    pub(crate) fn peek_inbox(&self) -> NodeId {
        // Ordering: Acquire, as in `take_inbox`.
        self.0.inbox.load(Ordering::Acquire)
    }

    /// Keeps what the advancer has unlinked until the last owner of the shard drops it: readers may
    /// still be pinned.
    pub(crate) fn keep(&mut self, remains: Retired<T>) {
        self.0.retired.with_mut(|retired| {
            // SAFETY: only the advancer comes here, at its end; the last owner drops the value
            // after that.
            unsafe { *retired = remains };
        });
    }

    /// A further handle, for a walk over the nodes that ends the shard. From now on neither handle
    /// takes segments or wheels away.
    pub(crate) fn pass_on(&mut self) -> Self {
        Self(self.share())
    }
}

impl<T> Deref for Consumer<T> {
    type Target = Shared<T>;

    #[inline(always)]
    fn deref(&self) -> &Shared<T> {
        &self.0
    }
}
