//! The slot arithmetic, for a fuzz target. Not part of the API: it changes without notice.

use std::ops::RangeInclusive;

use crate::shard::{Geometry, Slot};
use crate::tick::Tick;

/// A bucket, in absolute terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WheelSlot {
    /// The level; 0 is the finest.
    pub level: usize,
    /// The bucket's first tick, divided by the span of a bucket of its level.
    pub number: u64,
}

impl From<Slot> for WheelSlot {
    fn from(Slot { level, number }: Slot) -> Self {
        Self { level, number }
    }
}

impl From<WheelSlot> for Slot {
    fn from(WheelSlot { level, number }: WheelSlot) -> Self {
        Self { level, number }
    }
}

/// Wraps `Geometry`.
#[derive(Clone, Copy, Debug)]
pub struct SlotArithmetic(Geometry);

impl SlotArithmetic {
    /// Calls `Geometry::new`.
    #[must_use]
    pub fn new(wheel_size: usize) -> Self {
        Self(Geometry::new(wheel_size))
    }

    /// Calls `Geometry::wheel_size`.
    #[must_use]
    pub fn wheel_size(self) -> usize {
        self.0.wheel_size()
    }

    /// Calls `Geometry::levels`.
    #[must_use]
    pub fn levels(self) -> usize {
        self.0.levels()
    }

    /// Calls `Geometry::place`.
    #[must_use]
    pub fn place(self, from: Tick, deadline: Tick) -> WheelSlot {
        self.0.place(from, deadline).into()
    }

    /// Calls `Geometry::place_private`.
    #[must_use]
    pub fn place_private(self, from: Tick, deadline: Tick) -> WheelSlot {
        self.0.place_private(from, deadline).into()
    }

    /// Calls `Geometry::slot_ahead` for the bucket of the private wheel that `place` has.
    #[must_use]
    pub fn own_ahead(self, place: WheelSlot, flushed: Tick) -> WheelSlot {
        let (index, size) = (self.0.private_index(place.into()), self.0.private_wheel_size());
        self.0.slot_ahead(place.level, index, size, flushed).into()
    }

    /// Calls `Geometry::expiration`.
    #[must_use]
    pub fn expiration(self, place: WheelSlot) -> Tick {
        self.0.expiration(place.into())
    }

    /// Calls `Geometry::index`.
    #[must_use]
    pub fn index(self, place: WheelSlot) -> usize {
        self.0.index(place.into())
    }

    /// Calls `Geometry::round`.
    #[must_use]
    pub fn round(self, place: WheelSlot) -> u32 {
        self.0.round(place.into())
    }

    /// Calls `Geometry::starts_within`.
    #[must_use]
    pub fn starts_within(self, level: usize, from: Tick, to: Tick) -> usize {
        self.0.starts_within(level, from, to)
    }

    /// Calls `Geometry::expiration_of`.
    #[must_use]
    pub fn expiration_of(
        self,
        level: usize,
        from: Tick,
        next: impl FnOnce(usize) -> Option<usize>,
    ) -> Option<Tick> {
        self.0.expiration_of(level, from, |slot| next(self.0.index(slot)))
    }

    /// Calls `Geometry::choose`.
    #[must_use]
    pub fn choose(self, from: Tick, window: RangeInclusive<Tick>) -> Tick {
        self.0.choose(from, window)
    }
}
