//! User code that stalls or panics where a shard calls it.

mod wakers;
