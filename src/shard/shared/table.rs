//! The wheels that producers add to: one for each level, the overflow wheels made when needed.
//!
//! A producer creates an overflow wheel by compare-and-swap. The advancer alone takes one out of
//! the table, and frees it a grace period later. Wheels below [`FIRST_TO_GO`] stay until the shard
//! ends.

use crate::fallible;
use crate::shard::memory::epochs::{Guard, Participant, Reclaimer};
use crate::shard::memory::slot::{Keep, Slots, Unlinked};
use crate::shard::wheel::Wheel;
use crate::shard::wheel::geometry::Geometry;
use crate::tick::Tick;

/// Wheels of this level and of coarser ones are given back when idle.
///
/// The finest overflow wheel stays: a pin is a quarter of the cost of scheduling a timer, and most
/// timers beyond level 0 are due within that wheel. Models and fuzzers reach no further than that
/// wheel, so theirs is given back too.
pub(crate) const FIRST_TO_GO: usize = if cfg!(shardwheel_loom) || crate::config::SMALL { 1 } else { 2 };

/// As many levels as a shard of the smallest wheels has, or more.
const MOST_LEVELS: usize = if cfg!(shardwheel_loom) { 3 } else { 64 };

pub(crate) struct WheelTable {
    geometry: Geometry,
    wheels: Slots<Wheel, MOST_LEVELS, FIRST_TO_GO>,
}

impl WheelTable {
    /// A table with the finest wheel alone; `None` if there is no memory.
    pub(super) fn new(geometry: Geometry, start: Tick) -> Option<Self> {
        let wheels = Slots::new()?;
        let _ = wheels.fill(0, new_wheel(geometry, 0, start)?);
        Some(Self { geometry, wheels })
    }

    pub(super) fn levels(&self) -> usize {
        self.geometry.levels()
    }

    /// No level from this one on has ever had a wheel. A producer that has found a wheel is ordered
    /// after the rise of this number, so the advancer sees it where it sees that producer's bit.
    #[inline]
    pub(super) fn height(&self) -> usize {
        self.wheels.height()
    }

    /// The wheel of a level, if it exists.
    #[inline]
    pub(super) fn get<'g>(&'g self, level: usize, keep: Keep<'g>) -> Option<&'g Wheel> {
        self.wheels.get(level, keep)
    }

    /// Keeps the wheel of a level while a producer uses it.
    #[inline]
    pub(super) fn stay(level: usize, who: &Participant) -> Option<Guard<'_>> {
        (level >= FIRST_TO_GO).then(|| who.pin())
    }

    /// The wheel of a level, created if it is missing. `None` if there is no memory for it, or it
    /// may go and the caller has not pinned.
    #[inline]
    pub(super) fn get_or_create<'g>(
        &'g self,
        level: usize,
        flushed: Tick,
        pinned: Option<&'g Guard<'g>>,
    ) -> Option<&'g Wheel> {
        let keep = pinned.map(Keep::pinned);
        match self.wheels.get_or_permanent(level, keep) {
            Some(wheel) => Some(wheel),
            None => {
                self.create(level, flushed)?;
                self.wheels.get_or_permanent(level, keep)
            }
        }
    }

    /// Creates an overflow wheel. Against another producer: the loser drops its own wheel and uses
    /// the winner's.
    ///
    /// The new wheel's lists belong to the round of `flushed`, which may be old by now: an empty
    /// list of an older round accepts pushes for any later one.
    #[cold]
    fn create(&self, level: usize, flushed: Tick) -> Option<()> {
        let _ = self.wheels.fill(level, new_wheel(self.geometry, level, flushed)?);
        Some(())
    }

    /// Takes an overflow wheel out of the table.
    pub(super) fn unlink(&self, level: usize, reclaimer: &mut Reclaimer) -> Option<Unlinked<Wheel>> {
        self.wheels.replace(level, None, reclaimer)
    }

    /// Takes what was unlinked and could not be reclaimed when the advancer ended.
    pub(super) fn bury(&self, wheels: Vec<Unlinked<Wheel>>) {
        self.wheels.bury(wheels);
    }

    /// How many wheels exist.
    pub(super) fn count(&self) -> usize {
        (0..self.levels()).filter(|&level| !self.wheels.is_empty(level)).count()
    }
}

/// A wheel whose lists belong to the round of `tick`; `None` if there is no memory.
fn new_wheel(geometry: Geometry, level: usize, tick: Tick) -> Option<Box<Wheel>> {
    let round = geometry.round(geometry.slot(level, tick));
    fallible::boxed(Wheel::new(geometry.wheel_size(), round)?)
}
