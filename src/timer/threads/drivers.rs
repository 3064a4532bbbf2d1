//! Which threads drive the shards: the user's choice, and the times that follow from the tick.

use crate::timer::time::Nanos;

/// Which threads drive the shards of a [`Timer`](crate::Timer), for
/// [`TimerBuilder::drivers`](crate::TimerBuilder::drivers).
///
/// A `Timer` has as many threads as shards, but they need not all be awake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Drivers {
    /// One thread drives all shards while that takes it less than a tick. When it leaves a shard a
    /// tick late, another thread helps until both have nothing left to do. So the thread that runs
    /// a shard's callbacks changes.
    ///
    /// A callback that blocks holds up the other timers of its own shard. It holds up those of
    /// other shards for at most 10 ms, or two ticks if these are longer: another thread then takes
    /// these shards, within the time that the system needs to wake that thread. To notice this
    /// costs one wake-up per 10 ms while timers of several shards fire.
    #[default]
    AsNeeded,
    /// Each shard has a thread of its own. A callback never holds up another shard, and each thread
    /// wakes for its own shard's timers only.
    OnePerShard,
}

/// The patience and the leeway of a [`Notifier`](crate::timer::threads::Notifier) for a tick of that
/// length. Together they are no more than the 10 ms, or two ticks, for which a callback may hold up
/// other shards.
pub(crate) fn patience_and_leeway(tick: Nanos) -> (Nanos, Nanos) {
    const BOUND: Nanos = 10_000_000;
    (BOUND.saturating_sub(tick).max(tick), tick.min(BOUND / 2))
}
