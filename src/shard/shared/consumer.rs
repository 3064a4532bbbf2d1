//! The consumer's handle: what only the advancer may do with the state that both halves share.

use std::ops::Deref;

use super::Shared;
use crate::shard::memory::epochs::{Participant, Reclaimer};
use crate::shard::memory::slab::InHand;
use crate::shard::memory::table::Keep;
use crate::shard::node::NodeId;
use crate::shard::wheel::geometry::Slot;
use crate::sync::Arc;
use crate::tick::Tick;

/// A shard has one, which its advancer owns. Only its reclaimer takes segments away, so what the
/// handle lends stays there.
pub(crate) struct Consumer<T> {
    /// Dropped first: what it has deferred then goes to lists that still exist.
    reclaimer: Reclaimer,
    shared: Arc<Shared<T>>,
}

impl<T> Consumer<T> {
    /// Makes the handle of a new shard.
    pub(crate) fn new((shared, reclaimer): (Shared<T>, Reclaimer)) -> Self {
        Self { shared: Arc::new(shared), reclaimer }
    }

    /// A further reference, for producers.
    pub(crate) fn share(&self) -> Arc<Shared<T>> {
        Arc::clone(&self.shared)
    }

    /// The shard, and the right to take memory away.
    pub(crate) fn parts(&mut self) -> (&Shared<T>, &mut Reclaimer) {
        (&self.shared, &mut self.reclaimer)
    }

    /// The advancer as a participant of the epochs.
    pub(crate) fn participant(&self) -> &Participant {
        self.reclaimer.participant()
    }

    /// Keeps all segments.
    pub(crate) fn keep(&self) -> Keep<'_> {
        Keep::by(&self.reclaimer)
    }

    /// A node.
    ///
    /// # Panics
    ///
    /// If there is no such node. A node that is in use exists.
    #[inline]
    pub(crate) fn node(&self, id: NodeId) -> InHand<'_, T> {
        self.shared.slab.in_hand(id, &self.reclaimer)
    }

    /// The earliest tick within `from..=to` at which a shared bucket that may hold something
    /// expires.
    #[inline]
    pub(crate) fn next_expiration(&self, from: Tick, to: Tick) -> Option<Tick> {
        let geometry = self.shared.geometry;
        let only_finest = !geometry.has_overflow_start(from, to);
        if only_finest && self.wheel(0).is_none_or(|finest| !finest.may_hold_from(from)) {
            None
        } else if only_finest && to <= geometry.end_of_window(from) {
            self.search_window(from, to)
        } else {
            self.search_wheels(from, to, only_finest)
        }
    }

    /// As [`next_expiration`](Self::next_expiration). If `only_finest`, no overflow bucket starts
    /// within `from..=to`. What a level has found ends the search of the next one: a whole wheel is
    /// looked through only if nothing finer is due.
    #[inline(never)]
    fn search_wheels(&self, from: Tick, to: Tick, only_finest: bool) -> Option<Tick> {
        let levels = if only_finest { 1 } else { self.height() };
        let mut earliest = None;
        for level in 0..levels {
            let until = earliest.unwrap_or(to);
            earliest = self.next_expiration_at(level, from, until).or(earliest);
        }
        earliest
    }

    /// As [`next_expiration`](Self::next_expiration), of the finest wheel and within one window.
    #[inline]
    fn search_window(&self, from: Tick, to: Tick) -> Option<Tick> {
        let geometry = self.shared.geometry;
        let index = geometry.index(geometry.slot(0, from));
        let ahead = self.wheel(0)?.distance_within_word(index)? as Tick;
        (ahead <= to - from).then_some(from + ahead)
    }

    /// Whether a list of that shared bucket holds a node.
    pub(crate) fn holds_nodes(&self, slot: Slot) -> bool {
        let index = self.shared.geometry.index(slot);
        self.wheel(slot.level).is_some_and(|wheel| wheel.is_occupied(index) && wheel.holds_nodes(index))
    }

    /// As [`next_expiration`](Self::next_expiration), of one level.
    #[inline]
    pub(crate) fn next_expiration_at(&self, level: usize, from: Tick, to: Tick) -> Option<Tick> {
        let (wheel, geometry) = (self.wheel(level)?, self.shared.geometry);
        geometry.expiration_of(level, from, |first| {
            if !wheel.may_hold_from(first.number) {
                return None;
            }
            wheel.distance_to_occupied(geometry.index(first), geometry.starts_within(level, from, to))
        })
    }
}

impl<T> Deref for Consumer<T> {
    type Target = Shared<T>;

    #[inline(always)]
    fn deref(&self) -> &Shared<T> {
        &self.shared
    }
}
