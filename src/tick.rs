//! The unit of a shard's time.

/// A point in a shard's time, counted in ticks.
pub type Tick = u64;

/// The earlier of two ticks, if there are any.
#[inline]
pub(crate) fn earlier(a: Option<Tick>, b: Option<Tick>) -> Option<Tick> {
    a.map_or(b, |a| Some(b.map_or(a, |b| a.min(b))))
}
