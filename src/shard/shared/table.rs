//! The wheels that producers add to: one for each level, the overflow wheels made when needed, by
//! compare-and-swap. They stay until the shard ends.

use std::ptr::null_mut;

use crate::config::LIMITS;
use crate::fallible;
use crate::shard::wheel::Wheel;
use crate::shard::wheel::geometry::Geometry;
use crate::sync::plain::AtomicU32;
use crate::sync::{AtomicPtr, Ordering};
use crate::tick::Tick;

/// As many levels as a shard of the smallest wheels has, or more.
const MOST_LEVELS: usize = LIMITS.levels;

pub(crate) struct WheelTable {
    geometry: Geometry,
    /// Null, or from `Box::into_raw`.
    wheels: Box<[AtomicPtr<Wheel>; MOST_LEVELS]>,
    height: AtomicU32,
}

impl WheelTable {
    /// A table with the finest wheel alone.
    pub(super) fn new(geometry: Geometry, start: Tick) -> Self {
        let table = Self { geometry, wheels: fallible::zeroed_array(), height: AtomicU32::new(0) };
        let _ = table.create(0, start);
        table
    }

    /// No level from this one on has ever had a wheel. A producer that has found a wheel is ordered
    /// after the rise of this number, so the advancer sees it where it sees that producer's bit.
    #[inline]
    pub(super) fn height(&self) -> usize {
        // Ordering: Relaxed, as above.
        self.height.load(Ordering::Relaxed) as usize
    }

    #[inline]
    pub(super) fn get(&self, level: usize) -> Option<&Wheel> {
        // Ordering: Acquire, pairs with `create`.
        let wheel = self.wheels.get(level)?.load(Ordering::Acquire);
        // SAFETY: null, or a wheel that lives as long as the table.
        unsafe { wheel.as_ref() }
    }

    /// The wheel of a level, created if it is missing. `None` if there is no memory for it.
    #[inline]
    pub(super) fn get_or_create(&self, level: usize, flushed: Tick) -> Option<&Wheel> {
        match self.get(level) {
            Some(wheel) => Some(wheel),
            None => self.create(level, flushed),
        }
    }

    /// Creates a wheel. Against another producer: the loser drops its own wheel and uses the
    /// winner's.
    ///
    /// The new wheel's lists belong to the round of `tick`, which may be old by now: an empty list
    /// of an older round accepts pushes for any later one.
    #[cold]
    fn create(&self, level: usize, tick: Tick) -> Option<&Wheel> {
        let round = self.geometry.round(self.geometry.slot(level, tick));
        let wheel = Box::into_raw(fallible::boxed(Wheel::new(self.geometry.wheel_size(), round)?)?);
        // Ordering: Relaxed, see `height`.
        self.height.fetch_max(level as u32 + 1, Ordering::Relaxed);
        // Ordering: Release, pairs with `get`; on failure nothing is read.
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        if self.wheels[level].compare_exchange(null_mut(), wheel, success, failure).is_err() {
            // SAFETY: it came from `into_raw` just now, and was not published.
            drop(unsafe { Box::from_raw(wheel) });
        }
        self.get(level)
    }

    /// How many wheels exist.
    pub(super) fn count(&self) -> usize {
        (0..self.geometry.levels()).filter(|&level| self.get(level).is_some()).count()
    }
}

impl Drop for WheelTable {
    fn drop(&mut self) {
        for wheel in self.wheels.iter() {
            // Ordering: Relaxed, the last owner is here.
            let wheel = wheel.load(Ordering::Relaxed);
            if !wheel.is_null() {
                // SAFETY: it came from `into_raw`, and each user borrows the table.
                drop(unsafe { Box::from_raw(wheel) });
            }
        }
    }
}
