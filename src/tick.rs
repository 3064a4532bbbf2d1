//! The unit of a shard's time.

/// A point in a shard's time, counted in ticks.
pub type Tick = u64;
