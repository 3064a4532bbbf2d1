//! The wheels that producers add to: one for each level, the overflow wheels made when needed.
//!
//! A producer creates an overflow wheel by compare-and-swap. The advancer alone takes one out of
//! the table, and frees it a grace period later. A reader of a wheel that may go is therefore the
//! advancer, or is pinned. Wheels below [`FIRST_TO_GO`] stay until the shard ends.

use crate::fallible;
use crate::shard::memory::epochs::Unlinked;
use crate::shard::wheel::Wheel;
use crate::shard::wheel::geometry::Geometry;
use crate::sync::{AtomicPtr, Ordering};
use crate::tick::Tick;

/// Wheels of this level and of coarser ones are given back when idle.
///
/// The finest overflow wheel stays: a pin is a quarter of the cost of scheduling a timer, and most
/// timers beyond level 0 are due within that wheel. Models and fuzzers reach no further than that
/// wheel, so theirs is given back too.
pub(crate) const FIRST_TO_GO: usize = if cfg!(shardwheel_loom) || crate::config::SMALL { 1 } else { 2 };

const NO_WHEEL: *mut Wheel = std::ptr::null_mut();

pub(crate) struct WheelTable {
    geometry: Geometry,
    /// Null, or a pointer from `Box::into_raw` in [`new_wheel`].
    wheels: Box<[AtomicPtr<Wheel>]>,
}

impl WheelTable {
    /// A table with the finest wheel alone; `None` if there is no memory.
    pub(super) fn new(geometry: Geometry, start: Tick) -> Option<Self> {
        let mut wheels = fallible::slice(geometry.levels(), || AtomicPtr::new(NO_WHEEL))?;
        wheels[0] = AtomicPtr::new(Box::into_raw(new_wheel(geometry, 0, start)?));
        Some(Self { geometry, wheels })
    }

    pub(super) fn levels(&self) -> usize {
        self.wheels.len()
    }

    /// The wheel of a level, if it exists.
    ///
    /// # Safety
    ///
    /// The caller is the advancer, or is pinned for as long as it uses the wheel, or asks for a
    /// level below [`FIRST_TO_GO`].
    #[inline]
    pub(super) unsafe fn get(&self, level: usize) -> Option<&Wheel> {
        // Ordering: Acquire, pairs with the Release in `create`.
        let wheel = self.wheels[level].load(Ordering::Acquire);
        // SAFETY: null, or a wheel that the caller's promise keeps alive.
        unsafe { wheel.as_ref() }
    }

    /// The wheel of a level, created if it is missing; `None` if there is no memory for it.
    ///
    /// # Safety
    ///
    /// As [`get`](Self::get).
    #[inline]
    pub(super) unsafe fn get_or_create(&self, level: usize, flushed: Tick) -> Option<&Wheel> {
        // SAFETY: by the caller's promise.
        match unsafe { self.get(level) } {
            Some(wheel) => Some(wheel),
            // SAFETY: likewise.
            None => unsafe { self.create(level, flushed) },
        }
    }

    /// Creates an overflow wheel. Against another producer: the loser drops its own wheel and uses
    /// the winner's.
    ///
    /// The new wheel's lists belong to the round of `flushed`, which may be old by now: an empty
    /// list of an older round accepts pushes for any later one.
    ///
    /// # Safety
    ///
    /// As [`get`](Self::get).
    #[cold]
    unsafe fn create(&self, level: usize, flushed: Tick) -> Option<&Wheel> {
        let wheel = Box::into_raw(new_wheel(self.geometry, level, flushed)?);
        // Ordering: Release, pairs with `get`; Acquire on failure, for the winner's wheel is used.
        let (success, failure) = (Ordering::Release, Ordering::Acquire);
        let wheel = match self.wheels[level].compare_exchange(NO_WHEEL, wheel, success, failure) {
            Ok(_) => wheel,
            Err(winner) => {
                // SAFETY: it came from `into_raw` just now and was not published.
                drop(unsafe { Box::from_raw(wheel) });
                winner
            }
        };
        // SAFETY: published, and kept by the caller's promise.
        Some(unsafe { &*wheel })
    }

    /// Takes an overflow wheel out of the table; for the advancer, which keeps it until a grace
    /// period has passed.
    pub(super) fn unlink(&self, level: usize) -> Option<Unlinked<Wheel>> {
        debug_assert!(level >= FIRST_TO_GO, "finer wheels stay");
        // Ordering: Relaxed, nothing is published, and only the advancer takes wheels away.
        let wheel = self.wheels[level].swap(NO_WHEEL, Ordering::Relaxed);
        // SAFETY: null, or it came from `into_raw`; the table no longer names it, and it is
        // unlinked once.
        unsafe { Unlinked::new(wheel) }
    }

    /// How many wheels exist.
    pub(super) fn count(&self) -> usize {
        // Ordering: Relaxed, a count.
        self.wheels.iter().filter(|wheel| !wheel.load(Ordering::Relaxed).is_null()).count()
    }
}

/// A wheel whose lists belong to the round of `tick`; `None` if there is no memory.
fn new_wheel(geometry: Geometry, level: usize, tick: Tick) -> Option<Box<Wheel>> {
    let round = geometry.round(geometry.slot(level, tick));
    fallible::boxed(Wheel::new(geometry.wheel_size(), round)?)
}

impl Drop for WheelTable {
    fn drop(&mut self) {
        for wheel in &self.wheels {
            // Ordering: Relaxed, the last owner is here.
            let wheel = wheel.load(Ordering::Relaxed);
            if !wheel.is_null() {
                // SAFETY: it came from `into_raw` in `new_wheel`, and no reader is left.
                drop(unsafe { Box::from_raw(wheel) });
            }
        }
    }
}
