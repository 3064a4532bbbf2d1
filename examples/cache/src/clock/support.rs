//! Clocks that tests and fuzzers move.

use super::Time;

impl Time {
    /// Time passes.
    pub(crate) fn skip(&mut self, milliseconds: u64) {
        self.tick = self.tick.saturating_add_unsigned(milliseconds);
    }

    /// Sets the wall clock.
    #[cfg(test)]
    pub(crate) fn set_wall(&mut self, wall: i64) {
        self.offset = wall - self.tick;
        self.checked = i64::MAX;
    }
}
