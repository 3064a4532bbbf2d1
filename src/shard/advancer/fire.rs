//! What an advance yields.

use std::fmt;
use std::iter::FusedIterator;

use crate::shard::advancer::Advancer;
use crate::shard::key::Key;
use crate::tick::Tick;

/// A timer that has fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired<T> {
    /// The key that the timer had. It finds nothing any more.
    pub key: Key,
    /// The tick that the timer was scheduled, or last rescheduled, for.
    pub deadline: Tick,
    /// What was scheduled.
    pub payload: T,
}

/// Yields the timers that are due, made by [`Advancer::advance`].
///
/// Deadlines never decrease. A timer is fired when it is yielded: until then it is pending, counts in
/// `len` and can be cancelled or rescheduled. What is not taken stays due and comes first at the next
/// advance, so a budget is `take(n)`, and a caller's loop that panics loses the item in hand only.
///
/// A timer scheduled meanwhile for a tick that has been reached comes in this advance or the next.
#[must_use = "timers fire as they are taken from the iterator"]
pub struct Expired<'a, T> {
    advancer: &'a mut Advancer<T>,
}

impl<'a, T> Expired<'a, T> {
    pub(super) fn new(advancer: &'a mut Advancer<T>) -> Self {
        Self { advancer }
    }
}

impl<T> Iterator for Expired<'_, T> {
    type Item = Fired<T>;

    #[inline]
    fn next(&mut self) -> Option<Fired<T>> {
        self.advancer.next_fired()
    }
}

impl<T> FusedIterator for Expired<'_, T> {}

impl<T> Drop for Expired<'_, T> {
    fn drop(&mut self) {
        self.advancer.end_drain();
    }
}

impl<T> fmt::Debug for Expired<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expired").field("advancer", &self.advancer).finish()
    }
}
