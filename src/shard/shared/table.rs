//! The wheels that producers add to: one for each level, the overflow wheels made when needed, by
//! compare-and-swap. They stay until the shard ends.

use crate::fallible;
use crate::shard::memory::slot::Keep;
use crate::shard::shared::Shared;
use crate::shard::wheel::Wheel;
use crate::tick::Tick;

impl<T> Shared<T> {
    /// No level from this one on has ever had a wheel. A producer that has found a wheel is ordered
    /// after the rise of this number, so the advancer sees it where it sees that producer's bit.
    #[inline]
    pub(crate) fn height(&self) -> usize {
        self.wheels.height()
    }

    /// The shared wheel of a level, if it exists.
    #[inline]
    pub(crate) fn wheel(&self, level: usize) -> Option<&Wheel> {
        // SAFETY: no wheel is taken out of its slot.
        self.wheels.get(level, unsafe { Keep::owned() })
    }

    /// The wheel of a level, made if it is missing. `None` if there is no memory for it.
    ///
    /// The new wheel's lists belong to the round of `tick`, which may be old by now: an empty list
    /// of an older round accepts pushes for any later one.
    #[inline]
    pub(super) fn wheel_or_new(&self, level: usize, tick: Tick) -> Option<&Wheel> {
        self.wheel(level).or_else(|| self.make_wheel(level, tick))
    }

    #[cold]
    fn make_wheel(&self, level: usize, tick: Tick) -> Option<&Wheel> {
        let round = self.geometry.round(self.geometry.slot(level, tick));
        let wheel = fallible::boxed(Wheel::new(self.geometry.wheel_size(), round)?)?;
        // Against another producer: the loser drops its own wheel and uses the winner's.
        drop(self.wheels.fill(level, wheel));
        self.wheel(level)
    }

    /// How many wheels exist.
    pub(super) fn count_wheels(&self) -> usize {
        (0..self.height()).filter(|&level| self.wheel(level).is_some()).count()
    }
}
