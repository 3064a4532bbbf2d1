//! The user's name for a timer of a `Timer`.

use crate::Key;

/// Names a timer. Small and `Copy`; a stale one is harmless for ever, as is one of another [`Timer`](crate::Timer).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerKey {
    pub(super) key: Key,
    pub(super) shard: u32,
    /// Whether the timer recurs: its node keeps its generation from one occurrence to the next.
    pub(super) recurs: bool,
}
