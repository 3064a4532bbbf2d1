//! Slot arithmetic, within reach of a fuzz target. Not part of the API: it changes without notice.

use std::ops::RangeInclusive;

use crate::shard::{Geometry, Slot};
use crate::tick::Tick;

/// A bucket in absolute terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// 0 is the finest.
    pub level: usize,
    /// The bucket's first tick divided by the span of a bucket of its level.
    pub number: u64,
}

impl From<Slot> for Place {
    fn from(Slot { level, number }: Slot) -> Self {
        Self { level, number }
    }
}

impl From<Place> for Slot {
    fn from(Place { level, number }: Place) -> Self {
        Self { level, number }
    }
}

/// `Geometry`.
#[derive(Clone, Copy, Debug)]
pub struct Slots(Geometry);

impl Slots {
    /// `Geometry::new`.
    #[must_use]
    pub fn new(wheel_size: usize) -> Self {
        Self(Geometry::new(wheel_size))
    }

    /// `Geometry::wheel_size`.
    #[must_use]
    pub fn wheel_size(self) -> usize {
        self.0.wheel_size()
    }

    /// `Geometry::levels`.
    #[must_use]
    pub fn levels(self) -> usize {
        self.0.levels()
    }

    /// `Geometry::place`.
    #[must_use]
    pub fn place(self, from: Tick, deadline: Tick) -> Place {
        self.0.place(from, deadline).into()
    }

    /// `Geometry::place_private`.
    #[must_use]
    pub fn place_private(self, from: Tick, deadline: Tick) -> Place {
        self.0.place_private(from, deadline).into()
    }

    /// `Geometry::slot_ahead`, for the bucket of the advancer's own wheel that the place has.
    #[must_use]
    pub fn own_ahead(self, place: Place, flushed: Tick) -> Place {
        let (index, size) = (self.0.private_index(place.into()), self.0.private_wheel_size());
        self.0.slot_ahead(place.level, index, size, flushed).into()
    }

    /// `Geometry::expiration`.
    #[must_use]
    pub fn expiration(self, place: Place) -> Tick {
        self.0.expiration(place.into())
    }

    /// `Geometry::index`.
    #[must_use]
    pub fn index(self, place: Place) -> usize {
        self.0.index(place.into())
    }

    /// `Geometry::round`.
    #[must_use]
    pub fn round(self, place: Place) -> u32 {
        self.0.round(place.into())
    }

    /// `Geometry::starts_within`.
    #[must_use]
    pub fn starts_within(self, level: usize, from: Tick, to: Tick) -> usize {
        self.0.starts_within(level, from, to)
    }

    /// `Geometry::expiration_of`.
    #[must_use]
    pub fn expiration_of(
        self,
        level: usize,
        from: Tick,
        next: impl FnOnce(usize) -> Option<usize>,
    ) -> Option<Tick> {
        self.0.expiration_of(level, from, |slot| next(self.0.index(slot)))
    }

    /// `Geometry::choose`.
    #[must_use]
    pub fn choose(self, from: Tick, window: RangeInclusive<Tick>) -> Tick {
        self.0.choose(from, window)
    }
}
