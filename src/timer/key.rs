//! The user's name for a timer of a `Timer`.

use crate::shard::Key;

/// Names a timer.
///
/// Small and `Copy`. A stale key finds nothing, for ever; neither does a key of another
/// [`Timer`](crate::Timer).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerKey {
    /// Marked if the timer recurs: its node then keeps its generation over all occurrences.
    key: Key,
}

impl TimerKey {
    #[inline]
    pub(crate) fn once(key: Key) -> Self {
        Self { key }
    }

    pub(in crate::timer) fn recurring(key: Key) -> Self {
        Self { key: key.marked() }
    }

    pub(in crate::timer) fn new(key: Key, recurs: bool) -> Self {
        if recurs { Self::recurring(key) } else { Self::once(key) }
    }

    #[inline]
    pub(in crate::timer) fn recurs(self) -> bool {
        self.key.is_marked()
    }

    /// The key that the shard knows, without the mark.
    #[inline]
    pub(crate) fn key(self) -> Key {
        self.key.unmarked()
    }
}
